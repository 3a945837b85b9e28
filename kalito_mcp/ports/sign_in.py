"""Storage for signing in: clients, requests, consents, codes, passphrases, and how often something was tried.

Handles, codes and cookies are looked up by a hash of them.
"""

from collections.abc import Sequence
from typing import Protocol

from kalito_mcp.domain.sign_in import Attempts, Client, Code, Grant, Passphrase, SignInRequest


class SignInReader(Protocol):
    """Reads of one consistent view."""

    async def client(self, client_id: str) -> Client | None:
        """The client with this id."""

    async def request(self, handle_hash: bytes) -> SignInRequest | None:
        """A client's request, even if it has expired."""

    async def code(self, code_hash: bytes) -> Code | None:
        """The code with this hash, even if it is used or expired."""

    async def grants(self, owner: str | None, *, now_ms: int, limit: int) -> Sequence[Grant]:
        """The consents of an owner, or of all, the newest first."""

    async def grant(self, grant_id: str) -> Grant | None:
        """The consent with this id, without its use."""

    async def passphrase(self, owner: str) -> Passphrase | None:
        """The passphrase of an owner."""

    async def has_passphrases(self) -> bool:
        """Whether any owner has one."""

    async def attempts(self, subject: str) -> Attempts | None:
        """How often it was tried."""


class SignInWriter(SignInReader, Protocol):
    """Writes of one transaction."""

    async def put_client(self, client: Client) -> None:
        """Store a client, or what its document says now."""

    async def drop_clients(self, *, unused_since: int, most_unused: int) -> None:
        """Forget clients without a consent or a request: older ones, and all but the newest."""

    async def add_request(self, handle_hash: bytes, request: SignInRequest) -> None:
        """Store what a client asks for."""

    async def drop_oldest_request(self) -> None:
        """Delete the oldest request that no browser has shown, or without such a one the oldest."""

    async def count_requests(self) -> int:
        """How many are stored."""

    async def bind_request(self, handle_hash: bytes, browser_hash: bytes) -> None:
        """Tie a request to the browser that shows it, if it is not tied to one yet."""

    async def drop_request(self, handle_hash: bytes) -> None:
        """Delete a request, if it is still there."""

    async def drop_expired(self, now_ms: int) -> None:
        """Forget requests, codes, OAuth tokens and attempts that no longer matter."""

    async def add_grant(self, grant: Grant, code: Code, code_hash: bytes) -> None:
        """Store a consent and its code."""

    async def take_code(self, code_hash: bytes, *, now_ms: int) -> bool:
        """Mark a code as used; whether it was unused."""

    async def revoke_grants(self, owner: str, *, now_ms: int) -> Sequence[str]:
        """Revoke all consents of an owner with their tokens, and sign their browsers out of the page. The ids of those
        consents that counted until now."""

    async def put_passphrase(self, owner: str, passphrase: Passphrase, *, now_ms: int) -> None:
        """Store an owner's passphrase instead of the one before."""

    async def put_attempts(self, subject: str, attempts: Attempts) -> None:
        """Store how often it was tried."""

    async def drop_attempts(self, subject: str) -> None:
        """Forget that it was tried."""
