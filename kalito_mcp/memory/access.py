"""Access over HTTP, and its audit log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from kalito_mcp.access.page_sessions import PageSessions
from kalito_mcp.access.sign_in import SignIn
from kalito_mcp.access.tokens import NewToken
from kalito_mcp.domain.access import HOST, Permission, Principal, Token
from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.audit import AuditEntry, AuditHead, NewEntry, Outcome, action_name
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.memory.part import Part
from kalito_mcp.runtime.acting import acting
from kalito_mcp.upkeep.store_layers import no_new_words


@checks_arguments
class Access(Part):
    """Tokens and the audit log: of all owners of the database, unless one is named."""

    @property
    def sign_in(self) -> SignIn:
        """How people let programs in by OAuth. It takes no new words, and works while the memory is paused."""
        return self._services.sign_in

    @property
    def pages(self) -> PageSessions:
        """Who is signed in on the web page, and links to it for the owner of this memory. As `sign_in`, it works while
        the memory is paused.

        Raises:
            AccessDenied: this memory is limited to an agent or a project.
        """
        self.place.limits.check_none("signing in on the page")
        return self._services.sign_in.pages.of_owner(self.place.owner)

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

        A limit to a project may name it as `in_project` does.

        Raises:
            InvalidInput: the owner, a limit or the name is not acceptable.
            AccessDenied: this memory is limited itself.
        """
        self.place.limits.check_none("making tokens")
        whose = self.place.owner if owner is None else owner
        if limits.project is not None:
            limits = replace(limits, project=await self.place.of_owner(whose, NO_LIMITS).named(limits.project))
        with no_new_words():
            return await self._services.tokens.create(
                whose, permission, name=name, limits=limits, lifetime_ms=lifetime_ms
            )

    async def principal_of(self, token: str, resources: Collection[str] | None = None) -> Principal | None:
        """On whose behalf a call with the text of a token works; None if it is unknown, expired or revoked, or was made
        for another server than the one with these URLs."""
        with no_new_words():
            found = await self._services.tokens.use(token, resources)
        return None if found is None else found.principal

    async def why_refused(self, token: str, resources: Collection[str] | None = None) -> str | None:
        """Why `principal_of` gives None for a token that was made here; None if it was not."""
        return await self._services.tokens.why_refused(token, resources)

    async def tokens(self, owner: str | None = None) -> Sequence[Token]:
        """A thousand tokens of an owner, or of all owners: those made by hand first, and the newest first."""
        self.place.limits.check_none("the list of tokens")
        return await self._services.tokens.all(owner)

    async def ends_of(self, principals: Collection[str]) -> Mapping[str, int]:
        """When each of these principals may call no more, in milliseconds since 1970: when its token ends, or the last
        one of its consent. 0 if all are revoked. Left out are those that never end, and those whose tokens are of an
        OpenID provider."""
        return await self.place.store.read(lambda view: view.access.ends(principals))

    async def revoke_token(self, named: str, owner: str | None = None) -> Sequence[str]:
        """Revoke a token by its id, or all tokens of a consent. Raises NotFound."""
        self.place.limits.check_none("revoking tokens")
        with no_new_words():
            return await self._services.tokens.revoke(named, owner)

    async def log(
        self,
        action: str,
        *,
        principal: Principal | None = None,
        outcome: Outcome = Outcome.DONE,
        count: int = 1,
    ) -> AuditEntry:
        """Add to the audit log what is no change of the memory: a sign-in, an export, refusals. `count` equal ones are
        one entry. What changes the memory while `acting_as` names somebody is logged by itself.

        Without `principal` it is the one who acts, or else the program that started this process. `action` is a name of
        ours, such as `sign_in`; one that is longer than 100 letters or not ASCII becomes `other`.
        """
        called = acting()
        who = principal or (called.principal if called else HOST)
        entry = NewEntry(
            self.place.clock.now_ms(), who.id, who.owner, action_name(action), who.client, outcome=outcome, count=count
        )
        with no_new_words():
            return await self.place.store.write(lambda transaction: transaction.audit.add(entry))

    async def audit(
        self, *, since_ms: int = 0, before: int | None = None, limit: int = 100, all_owners: bool = False
    ) -> Sequence[AuditEntry]:
        """Entries of the audit log about this owner, or about all owners: of this moment or later, and with a lower
        number than `before`, the newest first.

        Raises:
            AccessDenied: this memory is limited to an agent or a project, and the log is of all.
        """
        self.place.limits.check_none("the audit log")
        owner = None if all_owners else self.place.owner
        return await self.place.store.read(
            lambda view: view.audit.entries(owner, since_ms=since_ms, before=before, limit=limit)
        )

    async def audit_count(self, *, since_ms: int = 0, all_owners: bool = False) -> int:
        """How many entries `audit` would give without a limit. Raises as it."""
        self.place.limits.check_none("the audit log")
        owner = None if all_owners else self.place.owner
        return await self.place.store.read(lambda view: view.audit.count(owner, since_ms=since_ms))

    async def check_audit(self, noted: AuditHead | None = None) -> tuple[str | None, AuditHead]:
        """What is wrong with the audit log of all owners, None if every entry is as it was written; and its head. Note
        the head elsewhere: given as `noted`, the log must still begin with what it was then."""
        self.place.limits.check_none("the audit log")
        return await self.place.store.read(lambda view: view.audit.check(noted))

    async def derived_key(self, purpose: str) -> bytes:
        """32 bytes that only who reads the database can know, always the same for a purpose of at most 16 characters.
        Never show them."""
        secret = await self.place.store.read(lambda view: view.access.state_secret())
        return blake2b(key=secret, person=purpose.encode(), digest_size=32).digest()
