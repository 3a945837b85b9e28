"""The built-in authorization server, as the SDK's handlers ask for it. One is made for each request."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.server.auth.provider import OAuthAuthorizationServerProvider as Protocol
from mcp.shared.auth import InvalidRedirectUriError, OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from kalito_mcp.access.redirects import is_registered
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.sign_in import Client
from kalito_mcp.errors import InvalidInput, TooManyAttempts
from kalito_mcp.web.urls import ServerUrls

if TYPE_CHECKING:
    from kalito_mcp.access.consents import Issued
    from kalito_mcp.access.sign_in import SignIn

SIGN_IN_PATH: Final = "/sign-in"
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_LONGEST_STATE: Final = 4_096


class KnownClient(OAuthClientInformationFull):
    """A client as the SDK knows it, with two rules of ours."""

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        """The scopes that are asked for. Unknown ones are ignored (RFC 6749, 3.3): hosts send some to everybody."""
        return None if requested_scope is None else requested_scope.split()

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """The redirect URI, if it is a registered one; on a loopback address with any port."""
        if redirect_uri is None:
            return super().validate_redirect_uri(None)
        if not any(is_registered(str(redirect_uri), str(one)) for one in self.redirect_uris or ()):
            raise InvalidRedirectUriError("this redirect URI is not one of the client's; register it first")
        return redirect_uri


class OAuthProvider(Protocol[AuthorizationCode, RefreshToken, AccessToken]):
    """`client` is the one that makes this request, if it is known; `address` is where the request comes from."""

    def __init__(
        self, sign_in: "SignIn", urls: ServerUrls, base: str, *, address: str = "", client: Client | None = None
    ) -> None:
        self._sign_in = sign_in
        self._urls = urls
        self._base = base
        self._address = address
        self._client = client

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if self._client is None or self._client.id != client_id:
            self._client = await self._sign_in.clients.find(client_id)
        return None if self._client is None else _as_known(self._client)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store the client under an id of ours, and without the secret that the SDK has made for it."""
        try:
            client = await self._sign_in.clients.register(
                client_info.client_name, [str(uri) for uri in client_info.redirect_uris or ()], address=self._address
            )
        except InvalidInput as error:
            raise RegistrationError("invalid_redirect_uri", str(error)) from None
        client_info.client_id = client.id
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.token_endpoint_auth_method = "none"  # noqa: S105 - as RFC 7591 calls it
        client_info.grant_types = ["authorization_code", "refresh_token"]
        client_info.scope = " ".join(Permission)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """The URL of the page that asks the person."""
        if params.resource is not None and not self._urls.is_ours(params.resource):
            raise AuthorizeError("invalid_target", "the resource is another server's")
        if not _CHALLENGE.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge must be a SHA-256 in base64url (PKCE, S256)")
        if len(params.state or "") > _LONGEST_STATE:
            raise AuthorizeError("invalid_request", "state is too long")
        known = self._client
        if known is None or known.id != client.client_id:
            raise AuthorizeError("server_error", "the client is not known")
        try:
            handle = await self._sign_in.consents.begin(
                known,
                redirect_uri=str(params.redirect_uri),
                is_redirect_explicit=params.redirect_uri_provided_explicitly,
                challenge=params.code_challenge,
                permission=asked_permission(params.scopes),
                resource=self._urls.base + self._urls.path,
                state=params.state,
                address=self._address,
            )
        except TooManyAttempts as error:
            raise AuthorizeError("temporarily_unavailable", str(error)) from None
        return f"{self._base}{SIGN_IN_PATH}?request={quote(handle)}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        found = await self._sign_in.consents.verify_code(client.client_id, authorization_code)
        if found is None:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=_scopes(found.grant.permission),
            expires_at=found.expires_at / 1_000,
            client_id=found.grant.client_id,
            code_challenge=found.challenge,
            redirect_uri=AnyUrl(found.redirect_uri),
            redirect_uri_provided_explicitly=found.is_redirect_explicit,
            resource=found.grant.resource,
            subject=found.grant.owner,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return _answer(await self._sign_in.consents.redeem(client.client_id, authorization_code.code))

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = await self._sign_in.consents.verify_refresh_token(client.client_id, refresh_token)
        # A token for a name that the server had before would be refused at each call, and renewed again.
        if found is None or found.resource not in self._urls.resources:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=client.client_id,
            scopes=_scopes(found.permission),
            expires_at=None if found.expires_at is None else found.expires_at // 1_000,
            resource=found.resource,
            subject=found.owner,
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        permission = asked_permission(scopes)
        return _answer(await self._sign_in.consents.renew(client.client_id, refresh_token.token, permission))

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = await self._sign_in.consents.access_token(token)
        if found is None or found.client is None:
            return None
        return AccessToken(token=token, client_id=found.client, scopes=_scopes(found.permission))

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        await self._sign_in.consents.revoke_text(token.client_id, token.token)


def asked_permission(scopes: Sequence[str] | None) -> Permission:
    """The greatest permission among the scopes; WRITE if they contain no permission of ours."""
    found = [one for one in Permission if one in (scopes or ())]
    return found[-1] if found else Permission.WRITE


def _scopes(permission: Permission) -> list[str]:
    return [str(one) for one in Permission if permission.includes(one)]


def _answer(issued: "Issued | None") -> OAuthToken:
    if issued is None:
        raise TokenError("invalid_grant", "it was used before, or is revoked; sign in again")
    access, refresh = issued.access.token, issued.refresh
    lifetime_ms = 0 if access.expires_at is None else access.expires_at - access.created_at
    return OAuthToken(
        access_token=issued.access.text,
        expires_in=lifetime_ms // 1_000,
        scope=" ".join(_scopes(access.permission)),
        refresh_token=refresh.text,
    )


def _as_known(client: Client) -> KnownClient:
    return KnownClient(
        client_id=client.id,
        client_name=client.name,
        redirect_uris=[AnyUrl(uri) for uri in client.redirect_uris],
        token_endpoint_auth_method="none",  # noqa: S106 - as RFC 7591 calls it
    )
