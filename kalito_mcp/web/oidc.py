"""Access tokens of an OpenID provider: JWTs, signed with keys that the provider publishes.

The key decides the algorithm, never the token: only signatures with public keys count. The
keys are read from the provider, and read again after an hour, or when a token names an unknown one, at most once a
minute. While the provider is unreachable, the last keys count. No token is ever passed on.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import jwt

from kalito_mcp.access.policy import OidcPolicy
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.spaces import checked_user
from kalito_mcp.errors import ConfigurationError, InvalidInput
from kalito_mcp.safety.addresses import LOOPBACK_HOSTS, address_flaw
from kalito_mcp.web.fetching import NotFetched, fetch_json

_log: Final = logging.getLogger("kalito.web")
_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The algorithms that count, and the kind of their keys."""
_TYPES: Final = frozenset({"jwt", "at+jwt"})
_SKEW_S: Final = 60
_FRESH_S: Final = 3_600.0
_AGAIN_S: Final = 60.0
_AGAIN_WITHOUT_KEYS_S: Final = 5.0
_TIMEOUT_S: Final = 5.0
_MOST_BYTES: Final = 262_144
_LONGEST_TOKEN: Final = 16_384
_DECODER: Final = jwt.PyJWT(options={"enforce_minimum_key_length": True})


class OidcVerifier:
    """Accepts the tokens of one provider that are made for one of these audiences."""

    def __init__(
        self,
        policy: OidcPolicy,
        audiences: Sequence[str],
        *,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ConfigurationError if the issuer is neither https nor on this machine."""
        self._policy = policy
        self._audiences = [policy.audience] if policy.audience else [*audiences]
        self._keys = _Keys(policy.issuer, steady_s)

    async def principal(self, text: str) -> Principal | None:
        """On whose behalf a call with this token works; None if it is not valid here."""
        if len(text) > _LONGEST_TOKEN:
            return None
        try:
            claims = await self._claims(text)
            return None if claims is None else self._principal(claims)
        except (jwt.PyJWTError, InvalidInput, ValueError, TypeError):
            return None

    async def _claims(self, text: str) -> Mapping[str, Any] | None:
        unverified = jwt.decode_complete(text, options={"verify_signature": False})
        header, algorithm = unverified["header"], unverified["header"].get("alg")
        if algorithm not in _KINDS or unverified["payload"].get("iss") != self._policy.issuer:
            return None
        if str(header.get("typ", "JWT")).lower().removeprefix("application/") not in _TYPES:
            return None
        key = await self._keys.key(header.get("kid"), algorithm)
        if key is None:
            return None
        claims: Mapping[str, Any] = _DECODER.decode(
            text,
            key,
            algorithms=[algorithm],
            audience=self._audiences,
            issuer=self._policy.issuer,
            leeway=_SKEW_S,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _principal(self, claims: Mapping[str, Any]) -> Principal | None:
        policy = self._policy
        person = claims.get(policy.owner_claim)
        if not isinstance(person, str) or not person:
            return None
        # Some providers let people write any address into `email`, and some write booleans as text.
        if policy.owner_claim == "email" and claims.get("email_verified") not in (True, "true"):
            return None
        if policy.owners and person not in policy.owners:
            return None
        owner = checked_user(policy.owners.get(person, f"{policy.issuer}#{person}"), "owner")
        permission = self._permission(_values(claims, policy.scope_claim))
        if permission is None:
            return None
        client = claims.get("azp") or claims.get("client_id")
        subject = claims.get("sub")
        return Principal(
            f"{policy.issuer}#{subject if isinstance(subject, str) else person}",
            owner,
            permission,
            client=client if isinstance(client, str) else None,
            is_signed_in=True,
        )

    def _permission(self, values: Sequence[str]) -> Permission | None:
        policy = self._policy
        for permission, wanted in (
            (Permission.ADMIN, policy.admin_scopes),
            (Permission.WRITE, policy.write_scopes),
            (Permission.READ, policy.read_scopes),
        ):
            if set(wanted) & set(values):
                return permission
        return None


class _Keys:
    """The public keys of a provider."""

    def __init__(self, issuer: str, steady_s: Callable[[], float]) -> None:
        parts = urlsplit(issuer)
        self._is_local = parts.hostname in LOOPBACK_HOSTS
        if not self._may_ask(issuer):
            raise ConfigurationError(
                f"setting oidc.issuer should be the https:// URL of an OpenID provider, not {issuer!r}"
            )
        self._issuer = issuer
        self._steady_s = steady_s
        self._known: Sequence[Mapping[str, Any]] = ()
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._lock = anyio.Lock()

    async def key(self, kid: Any, algorithm: str) -> jwt.PyJWK | None:
        """The key that a token names, for this algorithm; without a name, the only one of its kind."""
        if self._read_at is None or self._steady_s() - self._read_at >= _FRESH_S:
            await self._read_again()
        if not (found := self._fitting(kid, algorithm)):
            await self._read_again()
            found = self._fitting(kid, algorithm)
        return jwt.PyJWK(dict(found[0]), algorithm=algorithm) if len(found) == 1 else None

    def _fitting(self, kid: Any, algorithm: str) -> Sequence[Mapping[str, Any]]:
        return [
            one
            for one in self._known
            if one.get("kty") == _KINDS[algorithm]
            and (kid is None or one.get("kid") == kid)
            and one.get("alg", algorithm) == algorithm
            and one.get("use", "sig") == "sig"
        ]

    async def _read_again(self) -> None:
        """Read the keys, unless that was tried just now. If it fails, the ones from before stay."""
        asked_at = self._steady_s()
        async with self._lock:
            pause_s = _AGAIN_S if self._known else _AGAIN_WITHOUT_KEYS_S
            if self._tried_at is not None and asked_at - self._tried_at < pause_s:
                return
            self._tried_at = self._steady_s()
            try:
                with anyio.fail_after(_TIMEOUT_S):
                    self._known = await self._published()
                self._read_at = self._steady_s()
            except (NotFetched, TimeoutError) as failure:
                _log.warning("the keys of %s cannot be read: %s", self._issuer, str(failure) or "no answer in time")

    async def _published(self) -> Sequence[Mapping[str, Any]]:
        document = await self._fetch(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if not isinstance(document, dict) or document.get("issuer") != self._issuer:
            raise NotFetched("its configuration is another issuer's")
        place = document.get("jwks_uri")
        if not isinstance(place, str) or not self._may_ask(place):
            raise NotFetched("its configuration has no jwks_uri that may be asked")
        found = await self._fetch(place)
        keys = found.get("keys") if isinstance(found, dict) else None
        if not isinstance(keys, list):
            raise NotFetched("it publishes no keys")
        return [one for one in keys if isinstance(one, dict)]

    async def _fetch(self, url: str) -> Any:
        # A provider may be in a private network, but not where clouds serve their credentials.
        flaw = partial(address_flaw, allows_loopback=True)
        return await fetch_json(url, flaw=flaw, most_bytes=_MOST_BYTES, timeout_s=_TIMEOUT_S)

    def _may_ask(self, url: str) -> bool:
        """Only https; a provider on this machine may have http there."""
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            return False
        if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            return False
        return parts.scheme == "https" or (
            self._is_local and parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS
        )


def _values(claims: Mapping[str, Any], name: str) -> Sequence[str]:
    """The values of a claim. A name with dots is first looked for as it is: some providers use URLs as names."""
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, str):
        return found.split()
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
