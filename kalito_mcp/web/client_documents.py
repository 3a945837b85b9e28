"""Descriptions of clients, which they publish under the URL that is their id.

Method: OAuth Client ID Metadata Document (draft-ietf-oauth-client-id-metadata-document).
"""

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import AnyUrl, ValidationError

from kalito_mcp.access.clients import Clients
from kalito_mcp.domain.sign_in import Client
from kalito_mcp.errors import InvalidInput
from kalito_mcp.http_client import Resolve, resolve_host
from kalito_mcp.safety.addresses import LOOPBACK_HOSTS, is_public
from kalito_mcp.web.fetching import NotFetched, fetch_json

_HOST: Final = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_PATH: Final = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]+")
_LONGEST_URL: Final = 500
_MOST_BYTES: Final = 16_384
_TIMEOUT_S: Final = 5.0
_SHARED_SECRETS: Final = frozenset({"client_secret_post", "client_secret_basic", "client_secret_jwt"})


class ClientDocuments:
    """Reads descriptions: only https, only from public addresses, without redirects, at most 16 KB within 5 s.

    Tests set `allows_loopback`: then also http, and only this machine.
    """

    def __init__(self, *, allows_loopback: bool = False, resolve: Resolve = resolve_host) -> None:
        self.allows_loopback = allows_loopback
        self._resolve = resolve

    async def client(self, clients: Clients, client_id: str, *, address: str) -> Client | None:
        """The client with this id, which asks for access now. If the id is a URL, its description is read.

        Raises:
            InvalidInput: the description cannot be read, or does not describe a client.
            TooManyAttempts: too many descriptions were to be read.
        """
        if not is_document_url(client_id, allows_loopback=self.allows_loopback):
            return await clients.find(client_id)
        return await clients.find_by_document(client_id, self.read, address=address)

    async def read(self, url: str) -> tuple[str | None, Sequence[str]]:
        """The name and the redirect URIs of the client with this URL.

        Raises:
            InvalidInput: the document cannot be read, or describes another client.
        """
        try:
            found = await fetch_json(
                url,
                flaw=self._flaw,
                most_bytes=_MOST_BYTES,
                timeout_s=_TIMEOUT_S,
                resolve=self._resolve,
            )
        except NotFetched as failure:
            raise InvalidInput(f"the description of the client {url} cannot be read: {failure}") from None
        return _described(url, found)

    def _flaw(self, address: str) -> str | None:
        is_fit = is_public(address) or (self.allows_loopback and address in LOOPBACK_HOSTS)
        return None if is_fit else "is not public"


def is_document_url(client_id: str, *, allows_loopback: bool = False) -> bool:
    """Whether a client's id is the URL of its description: https, a name with a path, nothing that hides another."""
    if len(client_id) > _LONGEST_URL or not client_id.isascii():
        return False
    try:
        parts = urlsplit(client_id)
        _ = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    is_local = allows_loopback and host in LOOPBACK_HOSTS and parts.scheme in ("http", "https")
    if not is_local and (parts.scheme != "https" or not _HOST.fullmatch(host)):
        return False
    if "@" in parts.netloc or parts.query or "?" in client_id or "#" in client_id or not _PATH.fullmatch(parts.path):
        return False
    # As written: an id is compared as a text.
    return client_id == parts.geturl() and not {".", ".."} & set(re.split(r"/", parts.path.lower().replace("%2e", ".")))


def _described(url: str, found: Any) -> tuple[str | None, Sequence[str]]:
    if not isinstance(found, dict) or found.get("client_id") != url:
        raise InvalidInput(f"the document at {url} does not describe the client with this id")
    name, redirect_uris = found.get("client_name"), found.get("redirect_uris")
    if not isinstance(redirect_uris, list) or not all(_is_url(uri) for uri in redirect_uris):
        raise InvalidInput(f"the document at {url} has no redirect_uris, or one that is not a URL")
    if found.get("token_endpoint_auth_method") in _SHARED_SECRETS or "client_secret" in found:
        raise InvalidInput(f"the document at {url} asks for a secret, but it is public")
    return (name if isinstance(name, str) else None), redirect_uris


def _is_url(value: Any) -> bool:
    """Whether it is one for the SDK's handlers, which read it again."""
    try:
        return isinstance(value, str) and bool(AnyUrl(value))
    except ValidationError:
        return False
