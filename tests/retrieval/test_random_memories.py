"""Random memories and queries: no hit without a reason, and the order follows the scores."""

from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit, SearchRequest
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.text.analysis import index_text, stem
from kalito_mcp.text.spelling import spellings
from tests import drafts
from tests.retrieval.builders import question
from tests.retrieval.stored_memories import embed, page_of, remember
from tests.scripted_embedder import ScriptedEmbedder

WORDS = (
    "ferry ferries moss oslo seven tickets puppy kitten clarinet bought buy pets instruments I prefer when how many "
    "the men's painting paintnig ferrry 東京 猫 été 7 ? 😀"
).split()
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
TURNS = st.lists(
    st.tuples(st.sampled_from(["trip", "home"]), TEXTS, st.sampled_from(Role), st.sampled_from([None, "Ann", "Bob"])),
    min_size=1,
    max_size=12,
)


async def searched(
    folder: Path, turns: list[tuple[str, str, Role, str | None]], query: str, *, vectors: bool
) -> tuple[Hit, ...]:
    """What is found in a new memory of these turns."""
    store = await SqliteStore.open(folder / "memory.db")
    embedder = ScriptedEmbedder() if vectors else None
    try:
        for session, text, role, name in turns:
            await remember(store, drafts.message(text, role=role, name=name), scope=Scope(session=session))
        if embedder is not None:
            await embed(store, embedder)
        return (await page_of(store, SearchRequest(query, k=100, explain=True), embedder=embedder)).hits
    finally:
        await store.close()


@given(turns=TURNS, query=TEXTS, vectors=st.booleans())
def test_every_hit_has_a_reason_a_score_in_zero_to_one_and_its_place(
    tmp_path_factory: pytest.TempPathFactory,
    turns: list[tuple[str, str, Role, str | None]],
    query: str,
    vectors: bool,
) -> None:
    asked = question(query)
    written = set(asked.surface.values())

    def is_asked(hit: Hit) -> bool:
        """Whether it holds a term, or what a mistyped word may have meant."""
        held = set(index_text(hit.text, hit.name).terms)
        meant = {stem(one) for word in written for one in spellings(word)}
        return bool(held & (set(asked.terms) | meant))

    found = anyio.run(lambda: searched(tmp_path_factory.mktemp("memory"), turns, query, vectors=vectors))
    for hit in found:
        assert is_asked(hit) or vectors, hit
        assert 0 < hit.score <= 1
    scores = [hit.score for hit in found]  # all sums above 1 are shown as 1, so equal scores may differ
    assert scores == sorted(scores, reverse=True)
    ids = [one for hit in found for one in (hit.record_id, *hit.same)]
    assert len(ids) == len(set(ids))
