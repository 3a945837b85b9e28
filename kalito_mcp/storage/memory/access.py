"""The tokens with which programs connect, in memory. Implements `ports.access`."""

from collections.abc import Collection, Mapping, Sequence

from kalito_mcp.domain.access import Token, TokenKind
from kalito_mcp.domain.sign_in import Grant
from kalito_mcp.storage.memory.state import Tables, update


class Access(Tables):
    """`ports.access.AccessWriter`."""

    async def token(self, text_hash: bytes) -> Token | None:
        return self._state.tokens.get(text_hash)

    async def tokens(self, owner: str | None, *, limit: int) -> Sequence[Token]:
        newest = [one for one in reversed(self._state.tokens.values()) if owner in (None, one.owner)]
        return sorted(newest, key=lambda one: one.kind is not TokenKind.STATIC)[:limit]

    async def ends(self, principals: Collection[str]) -> Mapping[str, int]:
        found: dict[str, float] = {}
        for one in self._state.tokens.values():
            if (principal := one.principal.id) in principals:
                never_ends = float("inf") if one.expires_at is None else one.expires_at
                found[principal] = max(found.get(principal, 0), never_ends if one.revoked_at is None else 0)
        return {principal: int(end) for principal, end in found.items() if end != float("inf")}

    async def state_secret(self) -> bytes:
        return self._state.state_secret

    async def add_token(self, token: Token, text_hash: bytes) -> None:
        self._state.tokens[text_hash] = token

    async def used_token(self, token_id: str, *, now_ms: int) -> None:
        used = update(self._state.tokens, lambda one: one.id == token_id, last_used_at=now_ms)
        grants = {one.grant for one in used}
        update(self._state.grants, lambda one: one.id in grants, last_used_at=now_ms)

    async def retire_token(self, token_id: str, *, now_ms: int) -> bool:
        usable = (token_id, None)
        return bool(update(self._state.tokens, lambda one: (one.id, one.revoked_at) == usable, revoked_at=now_ms))

    async def revoke_tokens(self, named: str, *, owner: str | None, now_ms: int) -> Sequence[str]:
        consent = next((one.grant for one in self._state.tokens.values() if one.id == named and one.grant), named)

        def is_meant(one: Token | Grant) -> bool:
            is_named = consent in ((one.id, one.grant) if isinstance(one, Token) else (one.id,))
            return is_named and one.revoked_at is None and owner in (None, one.owner)

        grants = update(self._state.grants, is_meant, revoked_at=now_ms)
        tokens = update(self._state.tokens, is_meant, revoked_at=now_ms)
        return [one.id for one in grants] + [one.id for one in tokens if not one.is_expired(now_ms)]
