"""`Searcher` on a real store: what is found, in which order, page by page, and how much work that is."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit, Place, SearchFilters
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.records import MessageDraft
from kalito_mcp.retrieval.search import Searcher, SearchPolicy, SearchRequest
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.records import RecordQueries
from tests import drafts
from tests.scripted import START_MS, ScriptedClock

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
EVERYTHING = SearchPolicy(min_score=0)
"""What is found is looked at here, whatever its score; what is told of it, in test_answers."""


async def remember(store: SqliteStore, *texts: str | MessageDraft, scope: Scope = TRIP) -> list[int]:
    batch = [drafts.message(text) if isinstance(text, str) else text for text in texts]
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(scope, now_ms=START_MS)
        return [a.id for a in await transaction.records.append_messages(session, batch, now_ms=START_MS)]


async def search(
    store: SqliteStore,
    query: str,
    *,
    scope: Scope | None = None,
    k: int = 10,
    filters: SearchFilters | None = None,
    policy: SearchPolicy | None = None,
) -> Sequence[Hit]:
    searcher = Searcher(store, policy or EVERYTHING, ScriptedClock())
    return (await searcher.search(scope or Scope(), SearchRequest(query, k, filters or SearchFilters()))).hits


async def found(store: SqliteStore, query: str, **asked: Scope | SearchFilters | int) -> list[str]:
    return [hit.text for hit in await search(store, query, **asked)]  # type: ignore[arg-type]


async def pages(store: SqliteStore, request: SearchRequest, policy: SearchPolicy | None = None) -> list[list[Hit]]:
    searcher = Searcher(store, policy or EVERYTHING, ScriptedClock())
    all_pages: list[list[Hit]] = []
    while True:
        page = await searcher.search(Scope(), request)
        all_pages.append(list(page.hits))
        if page.next_cursor is None:
            return all_pages
        request = replace(request, cursor=page.next_cursor)


async def test_the_text_with_more_of_the_query_comes_first(store: SqliteStore) -> None:
    await remember(store, "The ferry to Moss.", "The ferry.", "Nothing.", "Tickets for the ferry to Moss at seven.")
    assert await found(store, "ferry Moss tickets") == [
        "Tickets for the ferry to Moss at seven.",
        "The ferry to Moss.",
        "The ferry.",
    ]


async def test_a_rare_word_counts_more_than_a_common_one(store: SqliteStore) -> None:
    await remember(store, *["The ferry left."] * 20, "The heron left.", "The ferry left.")
    assert (await found(store, "heron ferry"))[0] == "The heron left."


async def test_equal_hits_come_newest_first_whatever_the_clocks_said(store: SqliteStore) -> None:
    trees = ("ash", "elm", "fir", "oak", "yew")
    told = [drafts.message(f"ferry {tree}", created_at=START_MS - n * 1000) for n, tree in enumerate(trees)]
    keys = await remember(store, *told)
    hits = await search(store, "ferry")
    assert [hit.key for hit in hits] == list(reversed(keys))
    assert len({hit.score for hit in hits}) == 1


async def test_scores_lie_in_zero_to_one_and_never_rise(store: SqliteStore) -> None:
    long = "moss " + "filler " * 3_000
    await remember(store, "ferry", "ferry seven " * 50, "ferry moss", long, "a b " * 60_000 + "moss")
    hits = await search(store, "ferry moss " + " ".join(f"absent{n}" for n in range(30)))
    assert len(hits) == 5
    assert all(0 < hit.score <= 1 for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_a_hit_says_what_was_found_and_where(store: SqliteStore) -> None:
    draft = drafts.message("The ferry.", name="Ann", client_key="k", role=Role.ASSISTANT)
    [key] = await remember(store, draft)
    [hit] = await search(store, "ferry")
    assert (hit.record_id, hit.type, hit.session_id) == (f"msg_{key}", RecordType.MESSAGE, "trip")
    assert (hit.role, hit.name, hit.text) == (Role.ASSISTANT, "Ann", "The ferry.")
    assert (hit.created_at, hit.client_key, hit.key) == (START_MS, "k", key)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("We planned the trips.", "planning a trip"),
        ("The CAFÉ in Zürich", "cafe zurich"),
        ("cafe\u0301", "caf\u00e9"),
        ("caf\u00e9", "cafe\u0301"),
        ("Straße", "strasse"),
        ("ﬁle", "file"),
        ("Ｆｕｌｌｗｉｄｔｈ", "fullwidth"),
        ("Smørrebrød på Ærø", "Smørrebrød"),
        ("Łódź", "Łódź"),
        ("ΑΘΉΝΑ", "αθήνα"),
        ("Привет, мир", "ПРИВЕТ"),
        ("東京に行きました", "東京"),
        ("我喜欢北京烤鸭", "北京"),
        ("저는 서울에 갔어요", "서울"),
        ("猫が好きです", "猫"),
        ("我们去看海", "海"),
        ("ฉันไปกรุงเทพ", "กรุงเทพ"),
        ("كتاب عن الرحلة", "كتاب"),
        ("كِتَابٌ جَدِيد", "كتاب جديد"),
        ("ספר חדש", "ספר"),
        ("סֵפֶר", "ספר"),
        ("हिन्दी में बात", "हिन्दी"),
        ("İstanbul", "istanbul"),
        ("multi-agent memory", "multi-agent"),
        ("version 3.51.2 of sqlite", "3.51.2"),
        ("don't panic", "don't"),
        ("Sean O'Brien called", "O'Brien"),
        ("Sean O’Brien called", "brien"),
        ("l'été à Paris", "été"),
        ("all'aperto con dell'acqua", "acqua"),
        ("rock'n'roll", "roll"),
        ("route'66 café", "66"),
        ("snake_case_name", "case"),
        ("mail ann@example.org", "ann@example.org"),
    ],
)
async def test_a_word_is_found_in_every_form_in_which_it_is_written(store: SqliteStore, text: str, query: str) -> None:
    await remember(store, "nothing of that kind", text, "something else entirely")
    assert await found(store, query) == [text]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("हिन्दी में बात", "दूध"),
        ("Ann said we’ll see", "ll"),
        ("東京", "京都"),
        ("كتاب", "باب"),
        ("ภาษาไทย", "กาแฟ"),
    ],
)
async def test_words_that_only_share_letters_are_not_found(store: SqliteStore, text: str, query: str) -> None:
    await remember(store, text)
    assert await found(store, query) == []


@pytest.mark.parametrize(
    "form", [unicodedata.normalize(form, "Crème brûlée à Besançon 제주도 がぎぐ") for form in ("NFC", "NFD", "NFKC")]
)
async def test_the_normal_form_of_the_query_makes_no_difference(store: SqliteStore, form: str) -> None:
    await remember(store, "crème brûlée", "Besançon", "제주도", "がぎぐ", unicodedata.normalize("NFD", "crème fraîche"))
    assert len(await found(store, form)) == 5


@pytest.mark.parametrize(
    "query",
    [
        "a-b",
        '"',
        '"ferry',
        "*",
        "ferry*",
        "NEAR(ferry moss)",
        "ferry NEAR/2 moss",
        "col:ferry",
        "terms:ferry",
        "-ferry",
        "^ferry",
        "ferry AND",
        "AND OR NOT",
        "' OR 1=1--",
        "'; DROP TABLE records; --",
        "%",
        "ferry%",
        "_",
        "ferry\x00moss",
        "\x00",
        "😀",
        "👩\u200d👩\u200d👧",
        "\ud800",
        "ferry \udfff",
        "\u202eferry",
        "the and of to",
        "!!!",
        "(",
        "{ferry}",
        "s:1",
        "1:t:message",
        "\\",
        "\n\t ferry \r\n",
        "'ferry'",
        "中'ferry",
        "’",
        "ferry" * 700,
        "x" * 4_000,
        " ".join(str(n) for n in range(900)),
    ],
)
async def test_no_query_is_an_error_of_the_index(store: SqliteStore, query: str) -> None:
    await remember(store, "The ferry to Moss and of the.", "col terms near 1 message s t")
    for scope in (Scope(), TRIP, Scope(session="none")):
        hits = await search(store, query, scope=scope)
        assert all(0 < hit.score <= 1 for hit in hits)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=60))
async def test_any_text_may_be_searched_for(store: SqliteStore, query: str) -> None:
    try:
        await search(store, query)
    except InvalidInput:
        assert not query.strip()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(
        st.characters(categories=["Ll", "Lu", "Lo", "Nd", "Zs", "Po", "Mn"], max_codepoint=0x30FF),
        min_size=1,
        max_size=40,
    )
)
async def test_a_text_is_found_by_itself_unless_it_has_no_word(store: SqliteStore, text: str) -> None:
    from kalito_mcp.domain.analysis import query_terms  # noqa: PLC0415 - only here

    [key] = await remember(store, text)
    if query_terms(text):
        assert key in {hit.key for hit in await search(store, text, k=100)}


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000"])
async def test_an_empty_query_is_refused(store: SqliteStore, query: str) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        await search(store, query)


async def test_a_query_longer_than_the_policy_takes_is_refused_by_its_length(store: SqliteStore) -> None:
    with pytest.raises(InvalidInput, match="100,000"):
        await search(store, "ferry " * 20_000)
    with pytest.raises(InvalidInput, match="the limit is 10"):
        await search(store, "eleven chars"[:11], policy=SearchPolicy(max_query_chars=10))


@pytest.mark.parametrize("k", [0, -1, 101, 10**9])
async def test_a_k_out_of_range_is_refused_and_the_range_is_named(store: SqliteStore, k: int) -> None:
    with pytest.raises(InvalidInput, match="1 to 100"):
        await search(store, "ferry", k=k)


async def test_a_time_span_that_is_turned_around_is_refused(store: SqliteStore) -> None:
    with pytest.raises(InvalidInput, match="swap"):
        await search(store, "ferry", filters=SearchFilters(since=2, until=1))


async def test_function_words_are_dropped_unless_there_is_nothing_else(store: SqliteStore) -> None:
    await remember(store, "to be or not to be", "the ferry")
    assert await found(store, "what is the ferry to me") == ["the ferry"]
    assert await found(store, "to be or not to be") == ["to be or not to be"]


async def test_filters_admit_by_type_role_and_time_and_search_within_a_session_or_an_agent(store: SqliteStore) -> None:
    await remember(store, drafts.message("ferry user", created_at=START_MS - 10))
    await remember(store, drafts.message("ferry assistant", role=Role.ASSISTANT))
    await remember(store, "ferry elsewhere", scope=Scope(session="home"))
    await remember(store, "ferry of the coach", scope=Scope(agent="coach", session="gym"))
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(TRIP, now_ms=START_MS)
        await transaction.records.add_pins(session, [drafts.pin("ferry pin")])
        await transaction.records.add_summary(session, drafts.summary(1, 2, text="ferry summary"))

    async def texts(scope: Scope, filters: SearchFilters | None = None) -> set[str]:
        return {hit.text for hit in await search(store, "ferry", scope=scope, filters=filters)}

    everything = {"ferry user", "ferry assistant", "ferry elsewhere", "ferry pin", "ferry summary"}
    assert await texts(Scope()) == everything
    assert await texts(TRIP) == everything - {"ferry elsewhere"}
    assert await texts(Scope(agent="coach")) == {"ferry of the coach"}
    assert await texts(Scope(session="gym")) == {"ferry of the coach"}
    assert await texts(Scope(owner="ann")) == set()
    assert await texts(TRIP, SearchFilters(types=frozenset({RecordType.PIN}))) == {"ferry pin"}
    assert await texts(TRIP, SearchFilters(roles=frozenset({Role.USER}))) == {"ferry user"}
    assert await texts(Scope(), SearchFilters(until=START_MS - 1)) == {"ferry user"}
    assert await texts(TRIP, SearchFilters(since=START_MS)) == {"ferry assistant", "ferry pin", "ferry summary"}


async def test_a_session_of_any_agent_scores_its_hits(store: SqliteStore) -> None:
    await remember(store, "the ferry to Moss", "the ferry", scope=Scope(agent="coach", session="gym"))
    hits = await search(store, "ferry moss", scope=Scope(session="gym"))
    assert [hit.text for hit in hits] == ["the ferry to Moss", "the ferry"]
    assert hits[0].score > hits[1].score > 0


@pytest.mark.parametrize("k", [1, 7, 50, 100])
async def test_pages_join_to_the_whole_ranking_without_repeats(store: SqliteStore, k: int) -> None:
    texts = [f"ferry {'moss ' * (n % 3)}{'filler ' * (n * 7 % 13)}number{n}" for n in range(130)]
    keys = await remember(store, *texts)
    joined = [hit.key for page in await pages(store, SearchRequest("ferry moss", k)) for hit in page]
    assert len(joined) == len(set(joined)) == 130
    assert set(joined) == set(keys)
    first = [hit.key for hit in (await pages(store, SearchRequest("ferry moss", 100)))[0]]
    assert joined[:100] == first


async def test_pages_far_beyond_the_texts_that_one_page_compares_repeat_nothing(store: SqliteStore) -> None:
    texts = [f"ferry {'filler ' * ((n * 37) % 29)}number{n}" for n in range(300)]
    keys = await remember(store, *texts)
    policy = SearchPolicy(min_score=0, candidates=20, filtered_candidates=400, chunk=15)
    for filters in (SearchFilters(), SearchFilters(roles=frozenset({Role.USER}))):
        all_pages = await pages(store, SearchRequest("ferry", 9, filters), policy)
        joined = [hit.key for page in all_pages for hit in page]
        assert len(joined) == len(set(joined))
        assert set(joined) == set(keys)
        few = replace(policy, filtered_candidates=60, surrounded=0)
        bounded = [hit.key for page in await pages(store, SearchRequest("ferry", 9, filters), few) for hit in page]
        assert len(bounded) == len(set(bounded)) == 60


async def test_the_last_page_has_no_cursor_and_a_full_one_before_nothing_has_none_either(store: SqliteStore) -> None:
    await remember(store, *(f"ferry {tree}" for tree in ("ash", "elm", "fir", "oak")))
    assert [len(page) for page in await pages(store, SearchRequest("ferry", 2))] == [2, 2]
    assert [len(page) for page in await pages(store, SearchRequest("ferry", 3))] == [3, 1]
    assert [len(page) for page in await pages(store, SearchRequest("ferry", 4))] == [4]
    assert [len(page) for page in await pages(store, SearchRequest("quince", 4))] == [0]


async def test_a_cursor_of_another_search_is_refused(store: SqliteStore) -> None:
    await remember(store, *(f"ferry moss {tree}" for tree in ("ash", "elm", "fir", "oak", "yew")))
    searcher = Searcher(store, EVERYTHING, ScriptedClock())
    request = SearchRequest("ferry", 2)
    cursor = (await searcher.search(Scope(), request)).next_cursor
    assert cursor is not None
    others = [
        (Scope(), replace(request, query="moss")),
        (Scope(), replace(request, filters=SearchFilters(since=1))),
        (Scope(), replace(request, filters=SearchFilters(roles=frozenset({Role.USER})))),
        (TRIP, request),
        (Scope(agent="default"), request),
    ]
    for scope, other in others:
        with pytest.raises(InvalidInput, match="cursor"):
            await searcher.search(scope, replace(other, cursor=cursor))
    fingerprint = cursor.partition("-")[2]
    for forged in (
        "",
        "-",
        "2",
        "x",
        f"-1-{fingerprint}",
        f"x-{fingerprint}",
        f"٣-{fingerprint}",
        f"{10**9}-{fingerprint}",
    ):
        with pytest.raises(InvalidInput, match="cursor"):
            await searcher.search(Scope(), replace(request, cursor=forged))
    assert (await searcher.search(Scope(), replace(request, cursor=cursor, k=1))).hits != ()


@dataclass
class Looked:
    """What one search read."""

    keys: int = 0
    candidates: int = 0


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    """Counts the places that are weighed and the texts that are read, at the store's own methods."""
    counts = Looked()
    original, standing = RecordQueries.candidates, RecordQueries.places

    async def placing(
        self: RecordQueries,
        scope: Scope,
        keys: Sequence[int],
        centres: Sequence[int],
        *,
        reach: int,
        filters: SearchFilters,
    ) -> Sequence[Place]:
        counts.keys += len(keys)
        return await standing(self, scope, keys, centres, reach=reach, filters=filters)

    async def counting(
        self: RecordQueries, scope: Scope, keys: Sequence[int], filters: SearchFilters
    ) -> Sequence[Candidate]:
        answer = await original(self, scope, keys, filters)
        counts.candidates += len(answer)
        return answer

    monkeypatch.setattr(RecordQueries, "places", placing)
    monkeypatch.setattr(RecordQueries, "candidates", counting)
    return counts


async def test_a_common_word_among_many_records_costs_no_more_than_the_policy_allows(
    store: SqliteStore, looked: Looked
) -> None:
    for part in range(4):
        await remember(store, *(f"the data of today {part}x{n}" for n in range(5_000)))
    policy = EVERYTHING
    assert len(await search(store, "data today", k=10)) == 10
    assert looked.candidates <= policy.candidates + policy.chunk
    looked.keys = 0
    none = SearchFilters(roles=frozenset({Role.SYSTEM}))
    assert await search(store, "data today", filters=none) == ()
    assert 0 < looked.keys <= policy.filtered_candidates


async def test_a_session_is_searched_behind_newer_records_of_others(store: SqliteStore) -> None:
    old = await remember(store, *(f"ferry x{n}" for n in range(30)), scope=Scope(session="old"))
    await remember(store, *["ferry"] * 60, scope=Scope(session="new"))
    policy = SearchPolicy(min_score=0, postings=10)
    hits = await search(store, "ferry", scope=Scope(session="old"), policy=policy)
    assert {hit.key for hit in hits} <= set(old)
    assert len(hits) == 10


async def test_a_rare_old_record_is_found_among_many_newer_ones(store: SqliteStore) -> None:
    [key] = await remember(store, "the heron took the ferry")
    await remember(store, *["the ferry left"] * 3_000)
    assert (await search(store, "heron ferry"))[0].key == key
