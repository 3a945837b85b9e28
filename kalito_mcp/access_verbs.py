"""The verbs of `Memory` for who may connect over HTTP."""

from collections.abc import Collection, Sequence

from kalito_mcp.access.sign_in import SignIn
from kalito_mcp.access.tokens import NewToken, Tokens
from kalito_mcp.domain.access import Permission, Principal, Token
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.project_verbs import ProjectVerbs
from kalito_mcp.upkeep.watched_store import no_new_words


class AccessVerbs(ProjectVerbs):
    """The part of `Memory` that knows tokens. They are of all owners of the database unless one is named."""

    sign_in: SignIn
    """How people let programs in by OAuth. It takes no new words, and works while the memory is paused."""
    _tokens: Tokens

    @property
    def owner(self) -> str:
        """Whose memory this is."""
        return self._owner

    async def create_token(
        self,
        permission: Permission,
        *,
        owner: str | None = None,
        name: str = "",
        limits: Limits = NO_LIMITS,
        lifetime_ms: int | None = None,
    ) -> NewToken:
        """Make a token for a program that connects over HTTP; without `owner`, for the owner of this memory.

        Raises:
            InvalidInput: the owner, a limit or the name is not acceptable.
        """
        with no_new_words():
            return await self._tokens.create(
                self._owner if owner is None else owner, permission, name=name, limits=limits, lifetime_ms=lifetime_ms
            )

    async def principal_of(self, token: str, resources: Collection[str] | None = None) -> Principal | None:
        """On whose behalf a call with the text of a token works; None if it is unknown, expired or revoked, or was made
        for another server than the one with these URLs."""
        with no_new_words():
            found = await self._tokens.valid(token, resources)
        return None if found is None else found.principal

    async def tokens(self, owner: str | None = None) -> Sequence[Token]:
        """The newest thousand tokens of an owner, or of all owners."""
        return await self._tokens.all(owner)

    async def revoke_token(self, named: str, owner: str | None = None) -> Sequence[str]:
        """Revoke a token by its id, or all tokens of a consent. Raises NotFound."""
        with no_new_words():
            return await self._tokens.revoke(named, owner)
