"""Callers and their rights: principals, permissions and limits. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kalito_mcp.domain.scope import LOCAL_OWNER, NO_LIMITS, Limits


class Permission(StrEnum):
    """The permission of a principal. Each one includes the ones before it.

    `read` finds and shows, `write` records and changes, `admin` erases for good, exports all and manages tokens.
    """

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: "Permission") -> bool:
        """Whether this one allows everything that needs the other."""
        order = list(Permission)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Principal:
    """The author of a call. `id` is its name in the audit log: `host` for the program that started the server over
    stdio, else a token's id or an OpenID subject. `client` is the OAuth client through which they came, if any.
    `is_signed_in`: a person gave it access, here or at an OpenID provider, and may take that back."""

    id: str
    owner: str = LOCAL_OWNER
    permission: Permission = Permission.READ
    limits: Limits = NO_LIMITS
    client: str | None = None
    is_signed_in: bool = False

    def may(self, needed: Permission) -> bool:
        """Whether the principal may do what needs this permission."""
        return self.permission.includes(needed)


def denial(principal: Principal, needed: Permission) -> str:
    """Why a call was refused that needs this permission, and what to do."""
    return f"this needs the permission {needed}, and the token has only {principal.permission}; use another token"


HOST: Final = Principal("host", permission=Permission.ADMIN)
"""The program that started the server: it may do everything."""


PAGE_LINK: Final = "page:link"
PAGE_COOKIE: Final = "page:cookie"
"""Resources of the tokens with which a browser opens the web page and stays signed in. They are not URLs, so no server
has them."""


class TokenKind(StrEnum):
    """How a token came about: made on the command line, or given to an OAuth client to call with or to renew with.

    What lets a browser open the web page is of the second kind, too."""

    STATIC = "static"
    ACCESS = "access"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is stored, without its text. `prefix` is the beginning of the text, to tell tokens apart.

    `grant` names the consent that OAuth tokens come from, or the token that a browser signed in with: revoking one of
    them revokes them all. `resource` is the URL that an OAuth token was made for; those of the web page have a word
    instead. Moments are milliseconds since 1970.
    """

    id: str
    prefix: str
    name: str
    owner: str
    permission: Permission
    limits: Limits
    created_at: int
    kind: TokenKind = TokenKind.STATIC
    expires_at: int | None = None
    last_used_at: int | None = None
    revoked_at: int | None = None
    client: str | None = None
    grant: str | None = None
    resource: str | None = None

    def is_expired(self, now_ms: int) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now_ms

    @property
    def is_for_page(self) -> bool:
        """Whether it is of the web page, and no program may call with it."""
        return self.resource in (PAGE_LINK, PAGE_COOKIE)

    @property
    def principal(self) -> Principal:
        """On whose behalf a call with this token works. Its id is the consent's, if any, which lasts longer."""
        return Principal(
            self.grant or self.id,
            self.owner,
            self.permission,
            self.limits,
            self.client,
            is_signed_in=self.grant is not None,
        )
