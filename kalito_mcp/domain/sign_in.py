"""Records of signing in: clients, what they ask for, consents and codes. Pure.

Moments are milliseconds since 1970. What is secret is only here as a hash.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from kalito_mcp.domain.access import Permission


@dataclass(frozen=True, slots=True)
class Client:
    """A program that asks for access by OAuth. None has a secret: PKCE ties a code to who asked for it.

    `is_document` says that the id is the URL of the document that describes it, as read at `checked_at`.
    """

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    created_at: int
    checked_at: int
    is_document: bool = False


@dataclass(frozen=True, slots=True)
class SignInRequest:
    """A client's request to a person. `browser_hash` is of the cookie of the browser that first showed it."""

    client_id: str
    client_name: str
    redirect_uri: str
    is_redirect_explicit: bool
    challenge: str
    permission: Permission
    resource: str
    state: str | None
    expires_at: int
    browser_hash: bytes | None = None

    @property
    def answers_to(self) -> str:
        """The host that gets the answer, or the scheme of a program on the person's device."""
        parts = urlsplit(self.redirect_uri)
        return parts.netloc if parts.scheme in ("http", "https") else f"{parts.scheme}:"


@dataclass(frozen=True, slots=True)
class Grant:
    """A person's consent that a client may use their memory. `last_used_at` is of the tokens that came of it."""

    id: str
    owner: str
    client_id: str
    client_name: str
    permission: Permission
    resource: str
    created_at: int
    revoked_at: int | None = None
    last_used_at: int | None = None
    is_usable: bool = True
    """Whether one of its tokens can still be used or renewed."""


@dataclass(frozen=True, slots=True)
class Code:
    """A code that a client exchanges for tokens, once."""

    grant: Grant
    redirect_uri: str
    is_redirect_explicit: bool
    challenge: str
    expires_at: int
    used_at: int | None = None


@dataclass(frozen=True, slots=True)
class Passphrase:
    """A passphrase as it is stored: scrypt's salt, parameters and result."""

    salt: bytes
    hash: bytes
    n: int
    r: int
    p: int


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often something was tried: since when, and when last."""

    count: int
    since: int
    last_at: int
