"""Tokens of an OpenID provider: a real one on this machine, with real keys."""

import base64
import hmac
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from kalito_mcp.access.policy import OidcPolicy
from kalito_mcp.config.settings import load_settings
from kalito_mcp.domain.access import Permission
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.web.oidc import OidcVerifier
from tests.scripted import ScriptedClock
from tests.server.web import web
from tests.server.wire import PATIENCE_S
from tests.sign_in.harness import Home, calls, home
from tests.sign_in.published import Published, publishing

pytestmark = pytest.mark.anyio
AUDIENCE: Final = "https://memory.example.org/mcp"
CONFIGURATION: Final = "/realm/.well-known/openid-configuration"
KEYS: Final = "/realm/keys"
RSA_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
KIND_OF: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), RSA_KEY),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


@dataclass
class Provider:
    """An OpenID provider."""

    published: Published
    keys: dict[str, Any] = field(default_factory=lambda: {"one": RSA_KEY})

    @property
    def issuer(self) -> str:
        return f"{self.published.base}/realm"

    def publish(self, **changed: Any) -> None:
        """Publish the configuration and the public keys."""
        configuration = {"issuer": self.issuer, "jwks_uri": f"{self.published.base}{KEYS}"} | changed
        self.published.documents[CONFIGURATION] = json.dumps(configuration).encode()
        keys = [jwk(key) | {"kid": kid, "use": "sig"} for kid, key in self.keys.items()]
        self.published.documents[KEYS] = json.dumps({"keys": keys}).encode()

    def token(
        self, *, key: Any = RSA_KEY, algorithm: str = "RS256", headers: Mapping[str, Any] | None = None, **changed: Any
    ) -> str:
        """An access token. A claim that is None is left out."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": AUDIENCE, "sub": "anna", "scope": "read write", "iat": now} | {
            "exp": now + 300
        }
        sent = {name: value for name, value in (claims | changed).items() if value is not None}
        return jwt.encode(sent, key, algorithm, headers={"kid": "one"} | dict(headers or {}))


def jwk(key: Any) -> dict[str, Any]:
    """The public half of a key, as providers publish it."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        return dict(jwt.algorithms.RSAAlgorithm.to_jwk(public, as_dict=True))
    if isinstance(public, ec.EllipticCurvePublicKey):
        return dict(jwt.algorithms.ECAlgorithm.to_jwk(public, as_dict=True))
    return dict(jwt.algorithms.OKPAlgorithm.to_jwk(public, as_dict=True))


@pytest.fixture
def provider() -> Iterator[Provider]:
    with publishing() as published:
        one = Provider(published)
        one.publish()
        yield one


def verifier(provider: Provider, clock: ScriptedClock | None = None, **settings: Any) -> OidcVerifier:
    policy = OidcPolicy(issuer=provider.issuer, **settings)
    return OidcVerifier(policy, [AUDIENCE], steady_s=(clock or ScriptedClock()).steady_s)


async def test_a_token_of_the_provider_is_whose_it_says(provider: Provider) -> None:
    found = await verifier(provider).principal(provider.token(azp="kite"))
    assert found is not None
    assert (found.owner, found.permission, found.client) == (f"{provider.issuer}#anna", Permission.WRITE, "kite")
    assert (found.id, found.is_signed_in) == (f"{provider.issuer}#anna", True)


async def test_tokens_signed_with_public_keys_of_each_kind_count(provider: Provider) -> None:
    for algorithm, key in KIND_OF.items():
        provider.keys = {"one": key}
        provider.publish()
        assert await verifier(provider).principal(provider.token(key=key, algorithm=algorithm)) is not None, algorithm


async def test_alg_none_is_refused(provider: Provider) -> None:
    for algorithm in ("none", "None", "NONE", "nOnE", ""):
        head, body = ({"alg": algorithm, "typ": "JWT", "kid": "one"}, provider.token().split(".")[1])
        encoded = base64.urlsafe_b64encode(json.dumps(head).encode()).decode().rstrip("=")
        for signature in ("", provider.token().split(".")[2]):
            assert await verifier(provider).principal(f"{encoded}.{body}.{signature}") is None


async def test_alg_hs256_with_the_public_key_as_secret_is_refused(provider: Provider) -> None:
    public = RSA_KEY.public_key()
    forms = [
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.PKCS1),
        public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
        json.dumps(jwk(RSA_KEY)).encode(),
    ]
    for algorithm in ("HS256", "HS384", "HS512"):
        head = base64.urlsafe_b64encode(json.dumps({"alg": algorithm, "typ": "JWT", "kid": "one"}).encode()).decode()
        signed = f"{head.rstrip('=')}.{provider.token().split('.')[1]}"
        for secret in forms:
            digest = hmac.new(secret, signed.encode(), f"sha{algorithm[2:]}").digest()
            made = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            assert await verifier(provider).principal(f"{signed}.{made}") is None


async def test_alg_of_a_secret_key_that_is_published_by_mistake_is_refused(provider: Provider) -> None:
    secret = base64.urlsafe_b64encode(b"s" * 64).decode().rstrip("=")
    keys = {"keys": [{"kty": "oct", "k": secret, "kid": "one", "alg": "HS256"}]}
    provider.published.documents[KEYS] = json.dumps(keys).encode()
    assert await verifier(provider).principal(provider.token(key=b"s" * 64, algorithm="HS256")) is None


async def test_alg_must_be_that_of_the_key(provider: Provider) -> None:
    published = {"keys": [jwk(RSA_KEY) | {"kid": "one", "alg": "RS256"}]}
    provider.published.documents[KEYS] = json.dumps(published).encode()
    assert await verifier(provider).principal(provider.token()) is not None
    assert await verifier(provider).principal(provider.token(algorithm="PS256")) is None
    provider.keys = {"one": KIND_OF["ES384"]}
    provider.publish()
    assert await verifier(provider).principal(provider.token(key=KIND_OF["ES256"], algorithm="ES256")) is None


async def test_keys_for_encryption_and_short_ones_do_not_count(provider: Provider) -> None:
    published = {"keys": [jwk(RSA_KEY) | {"kid": "one", "use": "enc"}]}
    provider.published.documents[KEYS] = json.dumps(published).encode()
    assert await verifier(provider).principal(provider.token()) is None
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - the short one
    provider.keys = {"one": short}
    provider.publish()
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        token = provider.token(key=short)
    assert await verifier(provider).principal(token) is None


async def test_a_key_that_the_token_brings_along_is_not_looked_at(provider: Provider) -> None:
    with publishing() as evil:
        evil.documents["/keys"] = json.dumps({"keys": [jwk(OTHER_KEY) | {"kid": "evil"}]}).encode()
        for headers in (
            {"kid": "one", "jwk": jwk(OTHER_KEY)},
            {"kid": "evil", "jku": f"{evil.base}/keys"},
            {"kid": "one", "x5u": f"{evil.base}/keys"},
            {"kid": "../../keys"},
            {"kid": "' OR 1=1 --"},
        ):
            token = provider.token(key=OTHER_KEY, headers=headers)
            assert await verifier(provider).principal(token) is None
        assert evil.asked == []


async def test_claims_decide(provider: Provider) -> None:
    now = int(time.time())
    verified = verifier(provider)
    for changed, is_valid in (
        ({"exp": now - 300}, False),
        ({"exp": now - 20}, True),
        ({"exp": None}, False),
        ({"exp": "soon"}, False),
        ({"nbf": now + 300}, False),
        ({"nbf": now + 20}, True),
        ({"iat": now + 300}, False),
        ({"iat": None}, True),
        ({"aud": None}, False),
        ({"aud": "https://other.example/mcp"}, False),
        ({"aud": ["https://other.example/mcp", AUDIENCE]}, True),
        ({"aud": AUDIENCE + "/"}, False),
        ({"iss": None}, False),
        ({"iss": "https://other.example"}, False),
        ({"sub": None}, False),
        ({"sub": ""}, False),
        ({"sub": 7}, False),
        ({"sub": "x" * 300}, False),
        ({"sub": "a\nb"}, False),
        ({"scope": None}, False),
        ({"scope": "openid profile"}, False),
        ({"scope": "reader"}, False),
        ({"scope": ["read"]}, True),
        ({"scope": {"read": True}}, False),
    ):
        assert (await verified.principal(_signed(provider, changed)) is not None) is is_valid, changed


def _signed(provider: Provider, changed: Mapping[str, Any]) -> str:
    """A token also of claims that the library does not sign."""
    now = int(time.time())
    claims = {"iss": provider.issuer, "aud": AUDIENCE, "sub": "anna", "scope": "read", "iat": now, "exp": now + 300}
    sent = {name: value for name, value in (claims | dict(changed)).items() if value is not None}
    return jwt.PyJWS().encode(json.dumps(sent).encode(), RSA_KEY, "RS256", headers={"kid": "one"})


async def test_issuer_must_be_that_of_the_configuration(provider: Provider) -> None:
    provider.publish(issuer="https://other.example")
    assert await verifier(provider).principal(provider.token()) is None
    assert KEYS not in provider.published.asked


async def test_issuer_cannot_send_us_anywhere_for_its_keys(provider: Provider) -> None:
    for place in (
        "http://192.0.2.1/keys",
        "ftp://127.0.0.1/keys",
        "https://169.254.169.254/keys",
        "https://100.100.100.200/keys",
        "",
        None,
        7,
    ):
        provider.publish(jwks_uri=place)
        assert await verifier(provider).principal(provider.token()) is None, place


async def test_id_tokens_and_others_are_no_access_tokens(provider: Provider) -> None:
    for kind, is_valid in (("at+jwt", True), ("application/at+jwt", True), ("JWT", True), ("logout+jwt", False)):
        found = await verifier(provider).principal(provider.token(headers={"typ": kind}))
        assert (found is not None) is is_valid, kind
    assert await verifier(provider).principal(provider.token(aud="the client's id")) is None


async def test_what_is_no_token_is_refused_without_asking_the_provider(provider: Provider) -> None:
    for text in ("", "x", "a.b.c", "....", "e30.e30.e30", "kal_x", "\u00e9.\u00e9.\u00e9", "a" * 20_000):
        assert await verifier(provider).principal(text) is None, text[:20]
    assert provider.published.asked == []


async def test_kid_that_is_unknown_is_looked_for_once_a_minute(provider: Provider) -> None:
    clock = ScriptedClock()
    checked = verifier(provider, clock)
    assert await checked.principal(provider.token()) is not None
    assert provider.published.asked.count(KEYS) == 1
    provider.keys = {"two": OTHER_KEY}
    provider.publish()
    rotated = provider.token(key=OTHER_KEY, headers={"kid": "two"})
    for _ in range(3):
        assert await checked.principal(rotated) is None, "read just now"
    assert provider.published.asked.count(KEYS) == 1
    clock.advance(61)
    assert await checked.principal(rotated) is not None
    assert provider.published.asked.count(KEYS) == 2
    assert await checked.principal(provider.token()) is None, "the old key does not count any more"
    assert provider.published.asked.count(KEYS) == 2


async def test_kid_may_be_left_out_if_there_is_one_key(provider: Provider) -> None:
    token = jwt.encode(
        {"iss": provider.issuer, "aud": AUDIENCE, "sub": "a", "scope": "read", "exp": int(time.time()) + 300},
        RSA_KEY,
        "RS256",
    )
    assert await verifier(provider).principal(token) is not None
    provider.keys = {"one": RSA_KEY, "two": OTHER_KEY}
    provider.publish()
    assert await verifier(provider).principal(token) is None


async def test_keys_are_read_again_after_an_hour_and_stay_while_the_provider_is_away(provider: Provider) -> None:
    clock = ScriptedClock()
    checked = verifier(provider, clock)
    assert await checked.principal(provider.token()) is not None
    clock.advance(3_601)
    provider.published.documents[KEYS] = (503, {}, b"")
    assert await checked.principal(provider.token()) is not None
    assert provider.published.asked.count(KEYS) == 2
    clock.advance(61)
    provider.publish()
    assert await checked.principal(provider.token()) is not None
    assert provider.published.asked.count(KEYS) == 3


async def test_a_provider_that_hangs_is_given_up_and_asked_again(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kalito_mcp.web.oidc._TIMEOUT_S", 0.2)
    provider.published.held.add(KEYS)
    clock = ScriptedClock()
    checked = verifier(provider, clock)
    assert await checked.principal(provider.token()) is None
    provider.published.held.clear()
    monkeypatch.setattr("kalito_mcp.web.oidc._TIMEOUT_S", PATIENCE_S)
    assert await checked.principal(provider.token()) is None, "asked just now"
    clock.advance(6)
    assert await checked.principal(provider.token()) is not None


async def test_a_claim_says_whose_memory_it_is(provider: Provider) -> None:
    by_email = {"owner_claim": "email"}
    for settings, claims, owner in (
        (by_email, {"email": "a@b.example", "email_verified": True}, f"{provider.issuer}#a@b.example"),
        (by_email, {"email": "a@b.example", "email_verified": False}, None),
        (by_email, {"email": "a@b.example", "email_verified": "false"}, None),
        (by_email, {"email": "a@b.example"}, None),
        (by_email, {}, None),
        ({"owners": {"anna": "local"}}, {}, "local"),
        ({"owners": {"berta": "local"}}, {}, None),
    ):
        found = await verifier(provider, **settings).principal(provider.token(**claims))
        assert (None if found is None else found.owner) == owner, (settings, claims)


async def test_scopes_and_roles_give_permissions(provider: Provider) -> None:
    roles, url = {"scope_claim": "realm_access.roles"}, "https://memory.example/roles"
    admin = {"realm_access": {"roles": ["offline_access", "memory-admin"]}}
    for settings, claims, permission in (
        ({}, {"scope": "read"}, Permission.READ),
        ({}, {"scope": "read write admin"}, Permission.ADMIN),
        ({"scope_claim": "scp", "write_scopes": ("Memory.Write",)}, {"scp": "Memory.Write"}, Permission.WRITE),
        (roles | {"admin_scopes": ("memory-admin",)}, admin, Permission.ADMIN),
        ({"scope_claim": url, "read_scopes": ("viewer",)}, {url: ["viewer"]}, Permission.READ),
        (roles, {"realm_access": "write"}, None),
        ({"scope_claim": "a.b.c"}, {"a": {"b": 1}}, None),
    ):
        found = await verifier(provider, **settings).principal(provider.token(**({"scope": None} | claims)))
        assert (None if found is None else found.permission) == permission, (settings, claims)


def test_an_issuer_that_is_not_https_is_refused() -> None:
    for issuer in (
        "http://id.example",
        "id.example",
        "https://",
        "ftp://127.0.0.1",
        "https://a@b.example",
        "https://a:b",
    ):
        with pytest.raises(ConfigurationError, match=r"oidc\.issuer"):
            OidcVerifier(OidcPolicy(issuer=issuer), [])


async def test_keys_that_are_none_let_nobody_in(provider: Provider) -> None:
    for document in (b"[]", b'{"keys": 7}', b"no"):
        provider.published.documents[KEYS] = document
        assert await verifier(provider).principal(provider.token()) is None, document


@asynccontextmanager
async def served(tmp_path: Path, provider: Provider, **settings: Any) -> AsyncIterator[Home]:
    async with home(tmp_path, oidc=OidcPolicy(issuer=provider.issuer, **settings)) as at:
        yield at


async def test_the_server_lets_the_providers_people_in_and_names_it(tmp_path: Path, provider: Provider) -> None:
    async with served(tmp_path, provider) as at, httpx2.AsyncClient(base_url=at.base) as http:
        told = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert (told["authorization_servers"], told["resource"]) == ([provider.issuer], at.url)
        assert (await http.get("/.well-known/oauth-authorization-server")).status_code == 401, (
            "it gives no tokens itself"
        )
        assert (await http.get("/authorize")).status_code == 401
        turn = {"session_id": "s", "messages": [{"role": "user", "text": "We fly to Oslo."}]}
        token = provider.token(aud=at.url)
        assert (await calls(at, token, "record_messages", **turn)).status_code == 200
        assert not await at.memory.conversations.recent()
        assert len(await at.memory.of_owner(f"{provider.issuer}#anna").conversations.recent()) == 1
        reader = provider.token(aud=at.url, scope="read")
        assert (await calls(at, reader)).status_code == 200
        assert (await calls(at, reader, "record_messages", **turn)).status_code == 403
        for wrong in (
            provider.token(),
            provider.token(aud=at.url, key=OTHER_KEY),
            provider.token(aud=at.base + "/other"),
        ):
            assert (await calls(at, wrong)).status_code == 401
        made = await at.memory.access.create_token(Permission.READ, name="mine")
        assert (await calls(at, made.text)).status_code == 200, "tokens of the command line still count"


async def test_the_provider_is_a_setting(tmp_path: Path, provider: Provider) -> None:
    environment = {"KALITO_OIDC_ISSUER": provider.issuer, "KALITO_OIDC_AUDIENCE": AUDIENCE}
    assert load_settings(environment).oidc == OidcPolicy(issuer=provider.issuer, audience=AUDIENCE)
    with web("http", tmp_path / "memory.db", login=True, **environment) as server:
        at = Home(server.url.removesuffix("/mcp"), None, ScriptedClock())  # type: ignore[arg-type]  # another process
        assert (await calls(at, provider.token())).status_code == 200
        assert (await calls(at, provider.token(aud=server.url))).status_code == 401
