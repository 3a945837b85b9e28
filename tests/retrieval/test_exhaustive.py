"""The bounds of a search change nothing up to them, and beyond them only what they say."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit, SearchFilters, SearchRequest
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.retrieval.matches import Matches
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.retrieval.weights import WEIGHTS
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.empty_database import lay_empty_database
from tests.retrieval.builders import question
from tests.retrieval.stored_memories import remember
from tests.scripted import START_MS, ScriptedClock

EVERYTHING: Final = 10**9
FEW: Final = 6
UNBOUNDED: Final = SearchPolicy(min_score=0, candidates=EVERYTHING, read=EVERYTHING)
PLAIN: Final = replace(WEIGHTS, first_person=0.0, assistant=0.0)
"""Without style: how much that counts depends on the spelling, which these tests take away."""

ASKED: Final = ("ferry", "moss", "oslo", "heron", "ticket", "pets")
WORDS: Final = (*ASKED[:-1], "puppy", "kitten", "walked", "table", "seven")


class Said(NamedTuple):
    words: list[str]
    fillers: int
    session: str
    role: Role
    name: str | None
    is_pin: bool


MEMORIES = st.lists(
    st.builds(
        Said,
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=8),
        st.sampled_from([0, 0, 0, 3, 40, 300]),
        st.sampled_from(["trip", "home", "gym"]),
        st.sampled_from(Role),
        st.sampled_from([None, "Ann", "Bob"]),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=30,
)
QUERIES = st.lists(st.sampled_from([*ASKED, "Ann"]), min_size=1, max_size=4, unique=True).map(" ".join)
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


class Found(NamedTuple):
    """What one memory answers: all hits without a bound and with each of the two, and how each record matches."""

    unbounded: Sequence[Hit]
    few_read: Sequence[Hit]
    few_candidates: Sequence[Hit]
    promises: dict[int, float]


async def answers(path: Path, memory: Sequence[Said], scope: Scope, query: str, filters: SearchFilters) -> Found:
    store = await SqliteStore.open(lay_empty_database(path))
    try:
        for number, one in enumerate(memory):
            await write(store, one, number)
        request = SearchRequest(query, k=100, filters=filters, explain=True, now_ms=START_MS)

        async def searched(policy: SearchPolicy) -> Sequence[Hit]:
            return (await Searcher(store, policy, ScriptedClock(), weights=PLAIN).search(scope, request)).hits

        async with store.read() as view:
            promises = await view.search.in_index(scope, lambda index: promises_of(index, query, filters))
        return Found(
            await searched(UNBOUNDED),
            await searched(replace(UNBOUNDED, read=FEW)),
            await searched(replace(UNBOUNDED, candidates=FEW)),
            promises or {},
        )
    finally:
        await store.close()


async def write(store: SqliteStore, said: Said, number: int) -> None:
    # Words of its own, so that no two records say the same. A pin that repeats a message would take no place.
    own = [f"own{number}x{place}" for place in range(len(said.words) if said.is_pin else 1)]
    filler = f"filler{number}" if said.is_pin else "filler"
    text = " ".join([*said.words, *[filler] * said.fillers, *own])
    scope = Scope(session=said.session)
    if not said.is_pin:
        draft = drafts.message(text, role=said.role, name=said.name, created_at=START_MS + number)
        await remember(store, draft, scope=scope)
        return
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(scope, now_ms=START_MS)
        pin = drafts.pin(text, record_id=f"pin_{number}", created_at=START_MS + number)
        await transaction.conversations.add_pins(session, [pin])


def promises_of(index: SearchIndex, query: str, filters: SearchFilters) -> dict[int, float]:
    """By key, how well each record that may be a hit matches by its own words."""
    asked, records = question(query), index.records
    matches = Matches(index, in_scope(index, filters), asked)
    places = matches.places[is_admitted(records, matches.places, filters)]
    promise = WEIGHTS.lexical * matches.lexical + WEIGHTS.hyponym * matches.hyponym
    promise += WEIGHTS.neighbours * matches.own / (1 + np.asarray(records.word_counts) / 75)
    return dict(zip(records.keys[places].tolist(), promise[places].tolist(), strict=True))


def unspelled(hit: Hit) -> float:
    return sum(part for name, part in hit.parts.items() if name != "spelling")


def parts(hit: Hit, *names: str) -> dict[str, object]:
    """These parts of its score, or all without the spelling."""
    return {
        name: pytest.approx(part) for name, part in hit.parts.items() if name in (names or {*hit.parts} - {"spelling"})
    }


@given(memory=MEMORIES, scope=SCOPES, query=QUERIES, filters=FILTERS)
def test_a_bound_changes_nothing_up_to_it_and_beyond_it_only_what_it_says(
    tmp_path_factory: pytest.TempPathFactory, memory: list[Said], scope: Scope, query: str, filters: SearchFilters
) -> None:
    path = tmp_path_factory.mktemp("memory") / "memory.db"
    found = anyio.run(answers, path, memory, scope, query, filters)
    whole = {hit.key: hit for hit in found.unbounded}
    assert whole.keys() == found.promises.keys()
    if len(whole) <= FEW:
        assert found.few_read == found.few_candidates == found.unbounded
        return
    # Only some texts at a time: the same records and the same scores, except for the spelling.
    assert {hit.key: parts(hit) for hit in found.few_read} == {key: parts(hit) for key, hit in whole.items()}
    batches = [found.few_read[start : start + FEW] for start in range(0, len(whole), FEW)]
    for batch in batches:
        assert [(hit.score, hit.key) for hit in batch] == sorted(((hit.score, hit.key) for hit in batch), reverse=True)
    for before, after in itertools.pairwise(batches):
        assert min(map(unspelled, before)) >= max(map(unspelled, after)) - 1e-9
    # Only some candidates: those that match best by their own words, which count as they did.
    kept = {hit.key for hit in found.few_candidates}
    assert len(kept) == FEW
    best = sorted(found.promises.items(), key=lambda one: (one[1], one[0]), reverse=True)
    assert min(found.promises[key] for key in kept) >= best[FEW - 1][1] - 1e-9
    for hit in found.few_candidates:
        assert parts(hit, "lexical", "hyponym", "speaker") == parts(whole[hit.key], "lexical", "hyponym", "speaker")
