"""`Searcher` on a real store: what is found, and in which order."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.errors import InvalidInput
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.retrieval.stored_memories import TRIP, remember, remember_apart, search
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def found(store: SqliteStore, query: str, **asked: Scope | SearchFilters | int) -> list[str]:
    return [hit.text for hit in await search(store, query, **asked)]  # type: ignore[arg-type]


async def test_the_text_with_more_of_the_query_comes_first(store: SqliteStore) -> None:
    await remember_apart(
        store, "The ferry to Moss.", "The ferry.", "Nothing.", "Tickets for the ferry to Moss at seven."
    )
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
    keys = await remember_apart(store, *told)
    hits = await search(store, "ferry")
    assert [hit.record_id for hit in hits] == [f"msg_{key}" for key in reversed(keys)]
    assert len({hit.score for hit in hits}) == 1


async def test_scores_lie_in_zero_to_one_and_never_rise(store: SqliteStore) -> None:
    long = "moss " + "filler " * 3_000
    await remember_apart(store, "ferry", "ferry seven " * 50, "ferry moss", long, "a b " * 60_000 + "moss")
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
    assert (hit.created_at, hit.client_key, hit.record_id) == (START_MS, "k", f"msg_{key}")


async def test_a_word_is_found_in_every_form_in_which_it_is_written(store: SqliteStore) -> None:
    for place, (text, query) in enumerate(
        [
            ("We planned the trips.", "planning a trip"),
            ("The CAFÉ in Zürich", "cafe zurich"),
            ("caf\u00e9", "cafe\u0301"),
            ("Straße", "strasse"),
            ("ﬁle", "file"),
            ("Ｆｕｌｌｗｉｄｔｈ", "fullwidth"),
            ("Smørrebrød på Ærø", "Smørrebrød"),
            ("ΑΘΉΝΑ", "αθήνα"),
            ("Привет, мир", "ПРИВЕТ"),
            ("東京に行きました", "東京"),
            ("我喜欢北京烤鸭", "北京"),
            ("ฉันไปกรุงเทพ", "กรุงเทพ"),
            ("كتاب عن الرحلة", "كتاب"),
            ("كِتَابٌ جَدِيد", "كتاب جديد"),
            ("סֵפֶר", "ספר"),
            ("हिन्दी में बात", "हिन्दी"),
            ("multi-agent memory", "multi-agent"),
            ("version 3.51.2 of sqlite", "3.51.2"),
            ("don't panic", "don't"),
            ("Sean O'Brien called", "O'Brien"),
            ("Sean O’Brien called", "brien"),
            ("all'aperto con dell'acqua", "acqua"),
            ("route'66 café", "66"),
            ("mail ann@example.org", "ann@example.org"),
            ("parseHTTPHeader drops cookies", "http header"),
            ("we settled ADR0042", "ADR-0042"),
            ("the mascot is \U0001f994", "\U0001f994"),
            ("a pass\u200bphrase with a hyp\u00adhen", "passphrase hyphen"),
        ]
    ):
        alone = Scope(session=f"s{place}")
        await remember(store, "nothing of that kind", text, "something else entirely", scope=alone)
        assert await found(store, query, scope=alone) == [text], query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("call fetchUserProfile first", "fetch user profile"),
        ("call fetch_user_profile first", "fetchUserProfile"),
        ("fetch the user's profile", "fetchUserProfile"),
        ("call fetchUserProfile first", "fetchuserprofile"),
    ],
)
async def test_a_name_in_code_is_found_in_every_way_of_writing_it(store: SqliteStore, text: str, query: str) -> None:
    await remember(store, "nothing of that kind", text, "something else entirely")
    assert await found(store, query) == [text]


async def test_words_that_only_share_letters_are_not_found(store: SqliteStore) -> None:
    for text, query in (
        ("हिन्दी में बात", "दूध"),
        ("Ann said we’ll see", "ll"),
        ("東京", "京都"),
        ("كتاب", "باب"),
        ("ภาษาไทย", "กาแฟ"),
        ("the URLs of dQw4w9WgXcQ", "wg"),
        ("\U0001f1f5\U0001f1f9", "\U0001f1f5\U0001f1f1"),
    ):
        await remember(store, text)
        assert await found(store, query) == [], query


async def test_the_normal_form_of_the_query_makes_no_difference(store: SqliteStore) -> None:
    said = ("crème brûlée", "Besançon", "제주도", "がぎぐ", unicodedata.normalize("NFD", "crème fraîche"))
    await remember_apart(store, *said)
    for form in ("NFC", "NFD", "NFKC"):
        query = unicodedata.normalize(form, "Crème brûlée à Besançon 제주도 がぎぐ")
        assert len(await found(store, query)) == 5, form


async def test_no_query_is_an_error_of_the_index(store: SqliteStore) -> None:
    await remember(store, "The ferry to Moss and of the.", "col terms near 1 message s t")
    operators = 'a-b|"|"ferry|*|ferry*|NEAR(ferry moss)|ferry NEAR/2 moss|col:ferry|-ferry|^ferry|ferry AND|AND OR NOT'
    signs = (
        "' OR 1=1--|'; DROP TABLE records; --|ferry%|_|😀|the and of to|!!!|(|{ferry}|1:t:message|\\|'ferry'|中'ferry|’"
    )
    other = ("ferry\x00moss", "\x00", "👩\u200d👩\u200d👧", "\ud800", "ferry \udfff", "\u202eferry", "\n\t ferry \r\n")
    long = ("ferry" * 700, " ".join(str(n) for n in range(900)))
    for query in (*operators.split("|"), *signs.split("|"), *other, *long):
        for scope in (Scope(), TRIP, Scope(session="none")):
            hits = await search(store, query, scope=scope)
            assert all(0 < hit.score <= 1 for hit in hits), query


@given(query=st.text(max_size=60))
async def test_any_text_may_be_searched_for(store: SqliteStore, query: str) -> None:
    try:
        await search(store, query)
    except InvalidInput:
        assert not query.strip()


@given(
    text=st.text(
        st.characters(categories=["Ll", "Lu", "Lo", "Nd", "Zs", "Po", "Mn"], max_codepoint=0x30FF),
        min_size=1,
        max_size=40,
    )
)
async def test_a_text_is_found_by_itself_unless_it_has_no_word(store: SqliteStore, text: str) -> None:
    from kalito_mcp.text.analysis import query_terms  # noqa: PLC0415 - only here

    [key] = await remember(store, text)
    if query_terms(text):
        hits = await search(store, text, k=100)
        # An earlier example may have said the same ("u" and "U"): then one hit stands for both.
        assert f"msg_{key}" in {shown for hit in hits for shown in (hit.record_id, *hit.same)}


async def test_function_words_are_dropped_unless_there_is_nothing_else(store: SqliteStore) -> None:
    await remember(store, "to be or not to be", "the ferry")
    assert await found(store, "what is the ferry to me") == ["the ferry"]
    assert await found(store, "to be or not to be") == ["to be or not to be"]


async def test_filters_admit_by_type_role_and_time_and_search_within_a_session_or_an_agent(store: SqliteStore) -> None:
    await remember(store, drafts.message("ferry user", created_at=START_MS - 10))
    await remember(store, drafts.message("ferry assistant", role=Role.ASSISTANT))
    await remember(store, "ferry elsewhere", scope=Scope(session="home"))
    await remember(store, "ferry of the coach", scope=Scope(agent="coach", session="gym"))
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin("ferry pin")])
        await transaction.conversations.add_summaries(session, [drafts.summary(1, 2, text="ferry summary")])

    async def texts(scope: Scope, filters: SearchFilters | None = None) -> set[str]:
        return {hit.text for hit in await search(store, "ferry", scope=scope, filters=filters)}

    everything = {"ferry user", "ferry assistant", "ferry elsewhere", "ferry pin"}
    assert await texts(Scope()) == everything
    assert await texts(TRIP) == everything - {"ferry elsewhere"}
    assert await texts(Scope(agent="coach")) == {"ferry of the coach"}
    assert await texts(Scope(session="gym")) == {"ferry of the coach"}
    assert await texts(Scope(owner="ann")) == set()
    assert await texts(TRIP, SearchFilters(types=frozenset({RecordType.PIN}))) == {"ferry pin"}
    assert await texts(TRIP, SearchFilters(types=frozenset({RecordType.SUMMARY}))) == {"ferry summary"}
    assert await texts(TRIP, SearchFilters(roles=frozenset({Role.USER}))) == {"ferry user"}
    assert await texts(Scope(), SearchFilters(until=START_MS - 1)) == {"ferry user"}
    assert await texts(TRIP, SearchFilters(since=START_MS)) == {"ferry assistant", "ferry pin"}


async def test_a_session_of_any_agent_scores_its_hits(store: SqliteStore) -> None:
    await remember(store, "the ferry to Moss", "the ferry", scope=Scope(agent="coach", session="gym"))
    hits = await search(store, "ferry moss", scope=Scope(session="gym"))
    assert [hit.text for hit in hits] == ["the ferry to Moss", "the ferry"]
    assert hits[0].score > hits[1].score > 0


async def test_an_agent_of_whom_nothing_is_remembered_yet_has_no_hits(store: SqliteStore) -> None:
    async with store.transaction() as transaction:
        await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
    assert await found(store, "ferry") == []
    await remember(store, "The ferry left.")
    assert await found(store, "ferry") == ["The ferry left."]
