"""Which Qdrant is configured, and how a client of it is made. Nothing is imported or connected before it is asked.

To import the client costs 0.45 s of processor time and 50 MB of memory on top of numpy and pydantic.
"""

import os
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from kalito_mcp.errors import ConfigurationError, VectorsUnreachable

MODULE: Final = "qdrant_client"
_URL: Final = re.compile(r"https?://[^\s/@?#\\]+(?:/[^\s@?#\\]*)?", re.I)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_REQUEST_S: Final = 30


class QdrantPlace:
    """A server, or a folder of the client's local mode, which only one process can use at a time."""

    def __init__(self, address: str, *, api_key_env: str = "") -> None:
        """Raises ConfigurationError: the address or the variable's name is none, or the extra is not installed."""
        self.is_local = "://" not in address
        if not self.is_local and not _URL.fullmatch(address):
            # The value is not repeated: it may contain credentials.
            raise ConfigurationError(
                "models.qdrant must look like http://localhost:6333, without user name, password, query or fragment, "
                "or be a folder; a key goes into the environment variable that models.qdrant_api_key_env names"
            )
        if api_key_env and not _VARIABLE.fullmatch(api_key_env):
            raise ConfigurationError(
                "models.qdrant_api_key_env must be the name of an environment variable, not the key itself"
            )
        if find_spec(MODULE) is None:
            raise ConfigurationError(
                "models.qdrant needs the package qdrant-client; install kalito-mcp[qdrant], or remove the setting to "
                "keep vectors in the database"
            )
        self._address = str(Path(address).expanduser().absolute()) if self.is_local else address.rstrip("/")
        self._api_key_env = api_key_env
        self.name = f"Qdrant's folder {self._address}" if self.is_local else f"Qdrant at {self._address}"

    def connect(self) -> Any:
        """A new client.

        Raises:
            VectorsUnreachable: the variable with the key is not set.
        """
        client = import_module(MODULE).QdrantClient
        if self.is_local:
            return client(path=self._address, force_disable_check_same_thread=True)
        key = os.environ.get(self._api_key_env) if self._api_key_env else None
        if self._api_key_env and not key:
            raise VectorsUnreachable(
                f"the environment variable {self._api_key_env} with the key of {self.name} is not set"
            )
        # As with model servers, nothing but this address is asked: no proxy of the environment, no redirect.
        return client(
            url=self._address,
            api_key=key,
            timeout=_LONGEST_REQUEST_S,
            check_compatibility=False,
            trust_env=False,
            follow_redirects=False,
        )
