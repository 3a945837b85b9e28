"""The bounds of a search change nothing up to them, and beyond them only what they say."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit, SearchFilters, SearchRequest
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.empty_database import lay_empty_database
from tests.retrieval.stored_memories import remember
from tests.scripted import START_MS, ScriptedClock

EVERYTHING: Final = 10**9
FEW: Final = 6
UNBOUNDED: Final = SearchPolicy(candidates=EVERYTHING, read=EVERYTHING)
WORDS: Final = ("ferry", "moss", "oslo", "heron", "ticket", "walked", "table", "seven")


class Said(NamedTuple):
    words: list[str]
    fillers: int
    session: str
    role: Role
    name: str | None


MEMORIES = st.lists(
    st.builds(
        Said,
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=8),
        st.sampled_from([0, 0, 0, 3, 40, 300]),
        st.sampled_from(["trip", "home", "gym", "work", "club"]),
        st.sampled_from(Role),
        st.sampled_from([None, "Ann", "Bob"]),
    ),
    min_size=1,
    max_size=30,
)
QUERIES = st.lists(st.sampled_from([*WORDS[:5], "Ann"]), min_size=1, max_size=4, unique=True).map(" ".join)
FILTERS = st.sampled_from(
    [
        SearchFilters(),
        SearchFilters(roles=frozenset({Role.USER, Role.ASSISTANT})),
        SearchFilters(names=frozenset({"ann"})),
        SearchFilters(types=frozenset({RecordType.MESSAGE})),
        SearchFilters(since=START_MS + 5),
    ]
)
SCOPES = st.sampled_from([Scope(), Scope(), Scope(session="trip")])


async def answers(
    path: Path, memory: Sequence[Said], scope: Scope, query: str, filters: SearchFilters
) -> list[Sequence[Hit]]:
    """What one memory answers without a bound, with few texts at a time, and with few candidates."""
    store = await SqliteStore.open(lay_empty_database(path))
    try:
        for number, one in enumerate(memory):
            # A word of its own, so that no two records say the same.
            text = " ".join([*one.words, *["filler"] * one.fillers, f"own{number}"])
            draft = drafts.message(text, role=one.role, name=one.name, created_at=START_MS + number)
            await remember(store, draft, scope=Scope(session=one.session))
        request = SearchRequest(query, k=100, filters=filters, explain=True, now_ms=START_MS)
        policies = (UNBOUNDED, replace(UNBOUNDED, read=FEW), replace(UNBOUNDED, candidates=FEW))
        return [(await Searcher(store, one, ScriptedClock()).search(scope, request)).hits for one in policies]
    finally:
        await store.close()


@given(memory=MEMORIES, scope=SCOPES, query=QUERIES, filters=FILTERS)
def test_a_bound_changes_nothing_up_to_it_and_beyond_it_only_what_it_says(
    tmp_path_factory: pytest.TempPathFactory, memory: list[Said], scope: Scope, query: str, filters: SearchFilters
) -> None:
    path = tmp_path_factory.mktemp("memory") / "memory.db"
    unbounded, few_read, few_candidates = anyio.run(answers, path, memory, scope, query, filters)
    assert few_read == unbounded
    assert len(few_candidates) <= FEW
    whole = {hit.record_id: hit.score for hit in unbounded}
    # A record that was beside a better one may be a hit of its own, if that is no candidate.
    assert all(hit.score == whole.get(hit.record_id, hit.score) for hit in few_candidates)
    scores = [hit.score for hit in unbounded]
    assert scores == sorted(scores, reverse=True)
