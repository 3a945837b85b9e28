"""Model servers over HTTP: what chat and embeddings have in common.

The server is not trusted: what `http_client` says holds here, and its name never leads to a link-local address, where
clouds serve their credentials. One deadline covers the whole answer with all its retries, however slowly bytes arrive.
The API key is read from the environment for each request and never kept. No message here repeats a server's words,
because some echo the key.
"""

import json
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

import anyio

from kalito_mcp.errors import ModelError, ModelReplyInvalid, ModelUnavailable
from kalito_mcp.http_client import (
    AddressRefused,
    BodyTooLong,
    CertificatesUnreadable,
    HostUnknown,
    HttpClient,
    Resolve,
    body_of,
    resolve_host,
    retry_after_s,
)
from kalito_mcp.inference.breaker import BreakerState, CircuitBreaker
from kalito_mcp.safety.addresses import address_flaw

if TYPE_CHECKING:
    import httpx2

_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How long and how often one request to a server is tried.

    `total_timeout_s` covers everything, retries included. The wait before retry n is `backoff_s` * 2^n, shortened
    at random by up to a half. A server's Retry-After is respected up to `max_retry_after_s`; after a longer one there
    is no retry.
    """

    connect_timeout_s: float = 2.0
    total_timeout_s: float = 30.0
    max_reply_bytes: int = 1 << 20
    max_retries: int = 2
    backoff_s: float = 0.25
    max_retry_after_s: float = 5.0


class _Transient(ModelUnavailable):
    """A failure that may pass."""

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class HttpModel:
    """One path of one server, with JSON in and out. Not shared between event loops.

    `is_local` comes from the configuration. `allows_loopback` is False for a remote server, so that its name cannot be
    turned against this machine and its network.
    """

    _METHOD: ClassVar[str] = "POST"
    _PATH: ClassVar[str]

    def __init__(
        self,
        *,
        name: str,
        url: str,
        is_local: bool,
        allows_loopback: bool,
        breaker: CircuitBreaker,
        api_key_env: str | None = None,
        limits: CallLimits | None = None,
        resolve: Resolve = resolve_host,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        origin = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        self._where = f"model server {name!r} at {origin}"
        self._is_local = is_local
        self._breaker = breaker
        self._api_key_env = api_key_env
        self._limits = limits or CallLimits()
        self._sleep, self._jitter = sleep, jitter
        self._client = HttpClient(
            f"{origin}{parts.path.rstrip('/')}{self._PATH}",
            silence_s=self._limits.total_timeout_s,
            connect_s=self._limits.connect_timeout_s,
            flaw=partial(address_flaw, allows_loopback=allows_loopback),
            resolve=resolve,
        )
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._where}>"

    @property
    def is_local(self) -> bool:
        """Whether the text stays on this machine or in this network."""
        return self._is_local

    async def _ask(self, payload: Mapping[str, Any] | None, model: str, read: Callable[[Any], Answer]) -> Answer:
        """Send a request and return the result of `read` on the decoded answer.

        At most 1 + `max_retries` calls reach the server, and all end within `total_timeout_s`. If `read` raises
        ModelReplyInvalid, that counts against the server and the request is not repeated.

        Raises:
            ModelUnavailable: not reachable, too slow, refused, or the circuit breaker is open.
            ModelReplyInvalid: the answer is too large, not JSON, or refused by `read`.
        """
        body = None if payload is None else json.dumps(payload).encode("ascii")
        deadline = anyio.current_time() + self._limits.total_timeout_s
        for retries in range(self._limits.max_retries + 1):
            try:
                return await self._attempt(body, model, read, deadline)
            except _Transient as failure:
                wait_s = self._wait_s(retries, failure.retry_after_s)
                may_retry = retries < self._limits.max_retries and self._breaker.state is BreakerState.CLOSED
                if not may_retry or wait_s is None or anyio.current_time() + wait_s >= deadline:
                    raise ModelUnavailable(str(failure)) from None
            await self._sleep(wait_s)
        raise self._unavailable("was not asked", "set max_retries to 0 or more")

    async def aclose(self) -> None:
        """Close the connections. Calls after this one raise ModelUnavailable."""
        self._is_closed = True
        await self._client.aclose()

    async def _attempt(self, body: bytes | None, model: str, read: Callable[[Any], Answer], deadline: float) -> Answer:
        """One call, under the breaker and the deadline."""
        headers = self._headers()
        permit = self._breaker.admit()
        if permit is None:
            raise self._unavailable(
                "was not asked because it failed too often",
                f"check it; it is tried again {self._breaker.policy.open_s:g} s after its last failure",
            )
        is_healthy: bool | None = None
        try:
            with anyio.CancelScope(deadline=deadline):
                answer = read(await self._exchange(body, model, headers))
                is_healthy = True
                return answer
            is_healthy = False
            raise self._unavailable(
                f"did not finish its answer within {self._limits.total_timeout_s:g} s",
                "check that it is not overloaded, or raise its total_timeout_s",
            )
        except (_Transient, ModelReplyInvalid):
            is_healthy = False
            raise
        finally:
            self._breaker.settle(permit, is_healthy)

    async def _exchange(self, body: bytes | None, model: str, headers: Mapping[str, str]) -> Any:
        if self._is_closed:
            raise self._unavailable("is closed", "open the memory again")
        try:
            await self._client.open()
        except CertificatesUnreadable:
            raise self._unavailable(
                "was not asked because the certificates could not be loaded", "check SSL_CERT_FILE"
            ) from None
        import httpx2  # noqa: PLC0415 - imported by now, in a thread

        try:
            async with self._client.stream(self._METHOD, headers, body) as response:
                self._refuse_status(response, model)
                return self._decoded(await body_of(response, self._limits.max_reply_bytes))
        except HostUnknown:
            raise _Transient(f"{self._where}: no such host; check its url and the network") from None
        except AddressRefused as refused:
            raise self._unavailable(
                f"was not asked because its host's address {refused.address} {refused.flaw}",
                "set its url to the server's own address (is_local = true if that is this machine or its network)",
            ) from None
        except BodyTooLong:
            raise self._invalid(
                f"its answer is over {self._limits.max_reply_bytes} bytes", "raise max_reply_bytes"
            ) from None
        except (httpx2.TransportError, OSError) as failure:
            raise _Transient(
                f"{self._where}: the connection failed ({type(failure).__name__}); check that the server runs "
                "and that its url is right"
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise self._invalid("its answer could not be decoded") from None

    def _headers(self) -> Mapping[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "kalito-mcp",
        }
        if self._api_key_env is not None:
            key = os.environ.get(self._api_key_env, "").strip()
            if not (key and key.isascii() and key.isprintable()):
                raise self._unavailable(
                    "was not asked because there is no usable API key",
                    f"set the environment variable {self._api_key_env}",
                )
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _refuse_status(self, response: "httpx2.Response", model: str) -> None:
        status = response.status_code
        if status in _TRANSIENT:
            raise _Transient(
                f"{self._where}: it answered {status}; try again later",
                retry_after_s(response.headers),
            )
        if response.is_redirect:
            raise self._unavailable(
                f"answered {status}, a redirect, and those are not followed", "set its url to the final address"
            )
        if status in (401, 403):
            key = self._api_key_env or "api_key_env, which is not set"
            raise self._unavailable(f"answered {status}", f"check the API key in {key}")
        if status == 404:  # noqa: PLR2004
            raise self._unavailable("answered 404", f"check its url, and that it has the model {model!r}")
        if response.is_error:
            raise self._unavailable(f"answered {status}", f"check that it offers the model {model!r}")
        if not response.is_success:
            raise self._invalid(f"it answered {status}")

    def _decoded(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._invalid("its answer is not JSON") from None

    def _wait_s(self, retries: int, retry_after_s: float) -> float | None:
        if retry_after_s > self._limits.max_retry_after_s:
            return None
        backoff_s = self._limits.backoff_s * 2.0**retries * (1.0 - self._jitter() / 2.0)
        return max(backoff_s, retry_after_s)

    def _unavailable(self, what: str, remedy: str) -> ModelError:
        return ModelUnavailable(f"{self._where} {what}; {remedy}")

    def _invalid(self, what: str, remedy: str = "check its kind, its url and its model") -> ModelError:
        return ModelReplyInvalid(f"{self._where}: {what}; {remedy}")
