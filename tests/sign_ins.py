"""Tokens, consents, codes and requests of tests."""

from typing import Any, Final

from kalito_mcp.domain.access import Permission, Token
from kalito_mcp.domain.scope import NO_LIMITS
from kalito_mcp.domain.sign_in import Client, Code, Grant, SignInRequest
from kalito_mcp.ports.store import Store
from tests.scripted import START_MS

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
SERVER: Final = "https://memory.example.org/mcp"
BACK: Final = "https://notes.example.org/back"


def token(token_id: str, *, owner: str = "ann", created_at: int = START_MS, **others: Any) -> Token:
    """A token that may read."""
    return Token(token_id, "kal_", "tests", owner, Permission.READ, NO_LIMITS, created_at, **others)


def client(client_id: str, *, created_at: int = START_MS, **others: Any) -> Client:
    """A client with one redirect URI."""
    return Client(client_id, "Notes", (BACK,), created_at, created_at, **others)


def grant(
    grant_id: str, *, owner: str = "ann", client_id: str = "cli_1", created_at: int = START_MS, **others: Any
) -> Grant:
    """A consent that may write."""
    return Grant(grant_id, owner, client_id, "Notes", Permission.WRITE, SERVER, created_at, **others)


def code(of: Grant, *, expires_at: int | None = None) -> Code:
    """A code of a consent, for a minute."""
    return Code(of, BACK, True, "x" * 43, of.created_at + MINUTE_MS if expires_at is None else expires_at)


def request(
    client_id: str = "cli_1", *, expires_at: int = START_MS + MINUTE_MS, state: str | None = None
) -> SignInRequest:
    """A request to write."""
    return SignInRequest(client_id, "Notes", BACK, False, "x" * 43, Permission.WRITE, SERVER, state, expires_at)


async def consent(store: Store, of: Grant, *, expires_at: int | None = None) -> None:
    """Store a consent with its code, whose hash is made of the id."""
    async with store.transaction() as transaction:
        await transaction.sign_in.add_grant(of, code(of, expires_at=expires_at), of.id.encode())
