"""Token endpoints. They reach only the tokens of the principal's owner."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kalito_mcp.domain.access import Permission, Principal, Token
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.domain.time import DAY_MS, to_iso
from kalito_mcp.errors import AccessDenied
from kalito_mcp.memory.verbs.shapes import Input, Output
from kalito_mcp.web.rest.endpoint import Call, Endpoint, Nothing, Reply, place_of

PermissionName = Literal["read", "write", "admin"]


class CreateToken(Input):
    """A token for a program."""

    permission: PermissionName
    name: Annotated[str, Field(description="What it is for.", max_length=200)] = ""
    agent_id: Annotated[str | None, Field(description="Only this agent's memory.", min_length=1, max_length=200)] = None
    project: Annotated[
        str | None, Field(description="Only this project, and what is personal.", min_length=1, max_length=200)
    ] = None
    days: Annotated[int | None, Field(description="How long it is valid. Default: for ever.", ge=1, le=36_500)] = None


class TokenBody(Output):
    """A token, without its text. `prefix` is the beginning of that."""

    id: str
    prefix: str
    name: str
    owner: str
    permission: PermissionName
    agent_id: str | None = None
    project: str | None = None
    kind: Literal["static", "access", "refresh"]
    client: str | None = None
    created_at: str
    expires_at: str | None = None
    last_used_at: str | None = None
    revoked_at: str | None = None


class NewTokenBody(TokenBody):
    """A new token. `text` is shown this once."""

    text: str


class Tokens(Output):
    """A thousand tokens: those made by hand first, and the newest first."""

    tokens: list[TokenBody]


class Revoked(Output):
    """The ids of the tokens that were valid until now."""

    revoked: list[str]


async def list_tokens(call: Call[Nothing, Nothing]) -> Reply:
    """All tokens of the owner."""
    _check_unlimited(call.principal)
    return Reply(
        Tokens(tokens=[TokenBody(**_shown(one)) for one in await call.memory.access.tokens(call.principal.owner)])
    )


async def create_token(call: Call[CreateToken, Nothing]) -> Reply:
    """Make a token."""
    _check_unlimited(call.principal)
    body = call.body
    await _check_end(call, body.days)
    made = await call.memory.access.create_token(
        Permission(body.permission),
        owner=call.principal.owner,
        name=body.name,
        limits=Limits(body.agent_id, body.project),
        lifetime_ms=None if body.days is None else body.days * DAY_MS,
    )
    return Reply(NewTokenBody(text=made.text, **_shown(made.token)), location=place_of("/tokens", made.token.id))


async def revoke_token(call: Call[Nothing, Nothing]) -> Reply:
    """Revoke a token, or all of a consent."""
    _check_unlimited(call.principal)
    revoked = await call.memory.access.revoke_token(call.path["token_id"], call.principal.owner)
    return Reply(Revoked(revoked=list(revoked)))


def _check_unlimited(principal: Principal) -> None:
    """A token that reaches a part of a memory must not create one that reaches more."""
    if principal.limits != NO_LIMITS:
        raise AccessDenied("a token that is limited to an agent or a project cannot manage tokens; use one without")


async def _check_end(call: Call[CreateToken, Nothing], days: int | None) -> None:
    """What is made must not outlive what made it."""
    if call.principal.is_signed_in:
        raise AccessDenied(
            "a signed-in program cannot create tokens: they would outlive its consent; use a token of "
            "`kalito-mcp token create`"
        )
    ends = (await call.memory.access.ends_of([call.principal.id])).get(call.principal.id)
    if ends is None:
        return
    if days is None or call.memory.place.clock.now_ms() + days * DAY_MS > ends:
        raise AccessDenied(f"tokens made with this one must expire by {to_iso(ends)}; send `days`")


def _shown(token: Token) -> dict[str, Any]:
    moments = {
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }
    return {
        "id": token.id,
        "prefix": token.prefix,
        "name": token.name,
        "owner": token.owner,
        "permission": str(token.permission),
        "agent_id": token.limits.agent,
        "project": token.limits.project,
        "kind": str(token.kind),
        "client": token.client,
        **{name: None if moment is None else to_iso(moment) for name, moment in moments.items()},
    }


TOKENS: Final[tuple[Endpoint[Any, Any], ...]] = (
    Endpoint(
        "GET", "/tokens", Permission.ADMIN, "Who may connect", list_tokens, Tokens, Nothing, Nothing, tag="tokens",
    ),
    Endpoint(
        "POST", "/tokens", Permission.ADMIN, "Make a token", create_token, NewTokenBody, CreateToken, Nothing,
        status=201, tag="tokens",
    ),
    Endpoint(
        "DELETE", "/tokens/{token_id}", Permission.ADMIN, "Revoke a token at once", revoke_token, Revoked, Nothing,
        Nothing, tag="tokens",
    ),
)  # fmt: skip
