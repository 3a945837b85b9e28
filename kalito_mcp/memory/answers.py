"""Notes each answer: in the counts of the server, as a use of its records, and as something that was given."""

from collections.abc import Iterable, Sequence

from kalito_mcp.contexts.injector import Injection
from kalito_mcp.domain.context import MemoryContext
from kalito_mcp.domain.given import (
    GivenEntry,
    GivenKind,
    GivenPart,
    LeftOut,
    PartContent,
    PartName,
    Why,
    estimated_tokens,
    left_out,
    parts_of,
)
from kalito_mcp.domain.search import Hit, TurnBeside
from kalito_mcp.memory.part import Part


class Answers(Part):
    """Every method returns at once: what is noted is written later. The `client` is the program that gets the
    answer."""

    def context(self, context: MemoryContext, *, agent_id: str | None, client: str | None) -> None:
        """Note a context."""
        self._services.counts.built(context.total_tokens)
        self._used(context.used_ids)
        self._gave(
            GivenKind.CONTEXT,
            context.total_tokens,
            context.made_of,
            context.missing,
            agent_id=agent_id,
            session_id=context.session_id,
            client=client,
            budget=context.max_tokens,
        )

    def search(self, hits: Sequence[Hit], *, session_id: str | None, agent_id: str | None, client: str | None) -> None:
        """Note a page of hits. Its tokens are estimated: nobody else counts them."""
        self._services.counts.searched(len(hits))
        self._used(hit.record_id for hit in hits)
        said: list[Hit | TurnBeside] = []
        for hit in hits:
            said += [hit, *hit.turns]
        texts, ids = [one.text for one in said], [one.record_id for one in said]
        tokens = estimated_tokens(texts)
        self._gave(
            GivenKind.SEARCH,
            tokens,
            parts_of(tokens, {PartName.FOUND: PartContent(ids, texts)}),
            left_out(PartName.FOUND, Why.REPEATS_ANOTHER, (one for hit in hits for one in hit.same)),
            agent_id=agent_id,
            session_id=session_id,
            client=client,
        )

    def injection(
        self, kind: GivenKind, found: Injection, *, session_id: str | None, client: str | None, budget: int
    ) -> None:
        """Note what hooks put into a prompt, if anything."""
        self._services.counts.injected(found.tokens)
        self._used(found.record_ids)
        if found.text:
            self._gave(
                kind, found.tokens, found.made_of, found.missing, session_id=session_id, client=client, budget=budget
            )

    def _used(self, record_ids: Iterable[str]) -> None:
        self._services.answers.used(self.place.owner, record_ids)

    def _gave(
        self,
        kind: GivenKind,
        tokens: int,
        parts: Iterable[GivenPart],
        missing: Iterable[LeftOut],
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        client: str | None = None,
        budget: int | None = None,
    ) -> None:
        place = self.place
        entry = GivenEntry(
            kind,
            place.clock.now_ms(),
            tokens,
            tuple(parts),
            tuple(missing),
            project=place.project,
            session_id=session_id,
            client=client,
            budget=budget,
        )
        self._services.answers.gave(place.scope(None, agent_id), entry)
