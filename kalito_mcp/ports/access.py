"""The tokens with which programs connect. Their texts are not stored, only hashes of them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kalito_mcp.domain.access import Token


class AccessReader(Protocol):
    """Reads of one consistent view."""

    async def token(self, text_hash: bytes) -> Token | None:
        """The token whose text has this hash, even if it is expired or revoked."""

    async def tokens(self, owner: str | None, *, limit: int) -> Sequence[Token]:
        """The tokens of an owner, or of all: static ones first, and the newest first."""

    async def ends(self, principals: Collection[str]) -> Mapping[str, int]:
        """When each of these principals may call no more, in milliseconds since 1970: when its token ends, or the last
        one of its consent. 0 if all are revoked. Left out are those that never end, and unknown ones."""

    async def state_secret(self) -> bytes:
        """32 random bytes of this database that no export has. Never show them."""


class AccessWriter(AccessReader, Protocol):
    """Writes of one transaction."""

    async def add_token(self, token: Token, text_hash: bytes) -> None:
        """Store a new token."""

    async def used_token(self, token_id: str, *, now_ms: int) -> None:
        """Note that a token was used."""

    async def retire_token(self, token_id: str, *, now_ms: int) -> bool:
        """Revoke this one token, and none that came of the same consent; whether it was not revoked before."""

    async def revoke_tokens(self, named: str, *, owner: str | None, now_ms: int) -> Sequence[str]:
        """Revoke the token of this id, or this consent with all its tokens, of an owner or of all. A token takes the
        consent that it came of along. The ids of what was valid until now."""
