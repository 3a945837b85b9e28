"""`ports.sessions`: opening, counting, listing, and what sessions owe."""

import pytest

from kalito_mcp.domain.records import Origin, Role
from kalito_mcp.domain.scope import Limits, Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.ports.conversations import MessageDraft
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.text.titles import FIRST_MESSAGES, READ_CHARS
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


async def opened(store: Store, scope: Scope = TRIP, *, now_ms: int = START_MS) -> Session:
    async with store.transaction() as transaction:
        return await ensure_session(transaction.sessions, scope, now_ms=now_ms)


async def found(store: Store, scope: Scope = TRIP) -> Session:
    async with store.view() as view:
        session = await view.sessions.get(scope)
    assert session is not None
    return session


async def recorded(store: Store, scope: Scope, *messages: MessageDraft, now_ms: int = START_MS) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=now_ms)
        await transaction.conversations.append_messages(session, messages, now_ms=now_ms)


async def owing(store: Store, *, after: Session | None = None, limit: int = 100) -> list[str]:
    async with store.view() as view:
        sessions = await view.sessions.list_owing(threshold=15, max_summaries=3, after=after, limit=limit)
    return [session.id for session in sessions]


async def test_a_new_session_is_open_empty_and_of_the_default_agent(store: Store) -> None:
    session = await opened(store)
    assert (session.owner, session.id, session.agent) == ("local", "trip", "default")
    assert session.state is SessionState.OPEN
    assert session.model is None
    assert (session.message_count, session.summary_count, session.pin_count) == (0, 0, 0)
    assert (session.summarized_seq, session.pinned_seq, session.importance_sum) == (0, 0, 0.0)
    assert (session.observed_seq, session.stage) == (0, None)
    assert (session.oldest_message_at, session.newest_message_at) == (None, None)
    assert (session.created_at, session.updated_at) == (START_MS, START_MS)


async def test_sessions_are_found_by_their_names_as_one_is(store: Store) -> None:
    for scope in (TRIP, Scope(agent="coach", session="gym"), Scope(owner="ann", session="hers")):
        await opened(store, scope)
    names = ["gym", "trip", "hers", "none", "trip"]

    async def named(scope: Scope) -> set[str]:
        async with store.view() as view:
            found = await view.sessions.named(scope, names)
            for name in names:
                assert found.get(name) == await view.sessions.get(scope.of_session(name))
        return set(found)

    assert await named(Scope()) == {"trip", "gym"}
    assert await named(Scope(agent="coach")) == {"gym"}
    assert await named(Scope(limits=Limits(agent="default"))) == {"trip"}
    assert await named(Scope("ann")) == {"hers"}


async def test_one_name_of_two_owners_is_two_sessions(store: Store) -> None:
    ann = await opened(store, Scope(owner="ann", session="trip"))
    bob = await opened(store, Scope(owner="bob", agent="coach", session="trip"))
    assert (ann.agent, bob.agent) == ("default", "coach")
    assert (await found(store, Scope(owner="ann", session="trip"))).agent == "default"


async def test_a_session_that_is_unknown_or_of_another_agent_or_owner_is_not_returned(store: Store) -> None:
    await opened(store, Scope(owner="ann", agent="coach", session="trip"))
    async with store.view() as view:
        for scope in (
            Scope(owner="ann", session="trap"),
            Scope(owner="bob", session="trip"),
            Scope(owner="ann", agent="default", session="trip"),
            Scope(owner="ann", session="TRIP"),
            Scope(owner="ann"),
        ):
            assert await view.sessions.get(scope) is None
        assert await view.sessions.get(Scope(owner="ann", session="trip")) is not None


async def test_messages_move_the_counters_and_the_model_by_what_they_carry(store: Store) -> None:
    await recorded(
        store,
        TRIP,
        drafts.message("one", importance=0.5, created_at=START_MS + 5, model_id="llama3.2"),
        drafts.message("two", importance=0.75, created_at=START_MS - 5, role=Role.ASSISTANT),
        now_ms=START_MS + 9,
    )
    session = await found(store)
    assert (session.message_count, session.importance_sum, session.model) == (2, 1.25, "llama3.2")
    assert (session.oldest_message_at, session.newest_message_at) == (START_MS - 5, START_MS + 5)
    assert session.updated_at == START_MS + 9
    await recorded(store, TRIP, drafts.message("three", model_id="gpt-4o-mini", created_at=START_MS))
    session = await found(store)
    assert (session.model, session.message_count) == ("gpt-4o-mini", 3)
    assert (session.oldest_message_at, session.newest_message_at) == (START_MS - 5, START_MS + 5)


async def test_each_kind_of_record_moves_its_own_counter(store: Store) -> None:
    await recorded(store, TRIP, *(drafts.message(f"m{n}") for n in range(4)))
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin("a"), drafts.pin("b")])
        await transaction.conversations.add_summaries(session, [drafts.summary(1, 2)])
        await transaction.conversations.add_summaries(session, [drafts.summary(3, 4)])
        await transaction.conversations.add_summaries(session, [drafts.summary(1, 4, level=1)])
        await transaction.sessions.set_pinned_seq(session, 3)
    session = await found(store)
    assert (session.message_count, session.pin_count, session.summary_count) == (4, 2, 3)
    assert (session.summarized_seq, session.pinned_seq) == (4, 3)
    async with store.view() as view:
        assert await view.sessions.totals(Scope()) == {
            "sessions": 1,
            "messages": 4,
            "pins": 2,
            "summaries": 3,
            "notes": 0,
            "tasks": 0,
            "documents": 0,
        }


async def test_totals_count_what_one_owner_has(store: Store) -> None:
    await recorded(store, TRIP, drafts.message("mine"))
    await recorded(store, Scope("somebody else", session="s"), drafts.message("theirs"), drafts.message("theirs too"))
    async with store.view() as view:
        assert (await view.sessions.totals(Scope()))["messages"] == 1
        assert (await view.sessions.totals(Scope("somebody else")))["messages"] == 2


async def test_every_write_to_a_session_changes_its_revision(store: Store) -> None:
    await recorded(store, TRIP, drafts.message("one"))
    revisions = [(await found(store)).revision]

    async def changed_by(what: str) -> None:
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            if what == "message":
                await transaction.conversations.append_messages(session, [drafts.message("two")], now_ms=START_MS)
            elif what == "pin":
                await transaction.conversations.add_pins(session, [drafts.pin("a")])
            elif what == "summary":
                await transaction.conversations.add_summaries(session, [drafts.summary(1, 1)])
            elif what == "state":
                await transaction.sessions.set_state(session, SessionState.FINALIZING, now_ms=START_MS)
            else:
                [message] = await transaction.conversations.messages(session, first_seq=1, last_seq=1)
                await transaction.conversations.set_importance(session, [(message.id, 0.1)], now_ms=START_MS)
        revisions.append((await found(store)).revision)

    for what in ("message", "pin", "summary", "state", "importance"):
        await changed_by(what)
    assert revisions == sorted(set(revisions))


async def test_a_session_moves_through_its_states(store: Store) -> None:
    session = await opened(store)
    for state in (SessionState.FINALIZING, SessionState.FINALIZED):
        async with store.transaction() as transaction:
            await transaction.sessions.set_state(session, state, now_ms=START_MS + 7)
        assert (await found(store)).state is state
    assert (await found(store)).updated_at == START_MS + 7


async def test_the_marks_of_searched_and_of_observed_messages_never_move_back(store: Store) -> None:
    session = await opened(store)
    async with store.transaction() as transaction:
        assert await transaction.sessions.set_pinned_seq(session, 9)
        assert not await transaction.sessions.set_pinned_seq(session, 4)
        await transaction.sessions.set_observed_seq(session, 8)
        await transaction.sessions.set_observed_seq(session, 3)
    session = await found(store)
    assert (session.pinned_seq, session.observed_seq) == (9, 8)


async def test_a_session_keeps_how_far_finalizing_has_come(store: Store) -> None:
    session = await opened(store)
    for stage in ("summaries", "sleep", "promotion", "checkpoint", None):
        async with store.transaction() as transaction:
            await transaction.sessions.set_stage(session, stage)
        assert (await found(store)).stage == stage


async def test_sessions_are_listed_by_their_newest_message_by_owner_agent_and_prefix(store: Store) -> None:
    for moment, (owner, agent, name) in enumerate(
        [("local", None, "trip-1"), ("local", "coach", "trip-2"), ("local", None, "TRIP-3"), ("ann", None, "trip-4")]
    ):
        await opened(store, Scope(owner=owner, agent=agent, session=name), now_ms=START_MS + moment)
    await recorded(store, Scope(session="trip-1"), drafts.message("hello", created_at=START_MS + 99))
    async with store.view() as view:

        async def names(scope: Scope, prefix: str = "", limit: int = 10) -> list[str]:
            return [one.id for one in await view.sessions.list_recent(scope, prefix=prefix, limit=limit)]

        assert await names(Scope()) == ["trip-1", "TRIP-3", "trip-2"]
        assert await names(Scope(), limit=2) == ["trip-1", "TRIP-3"]
        assert await names(Scope(), prefix="trip") == ["trip-1", "trip-2"]
        assert await names(Scope(agent="coach")) == ["trip-2"]
        assert await names(Scope(owner="ann")) == ["trip-4"]
        assert await names(Scope(owner="nobody")) == []


async def test_a_session_is_listed_where_it_was_said_not_where_it_was_written(store: Store) -> None:
    for name, said_at in (("new", START_MS), ("imported", START_MS - 99), ("newest", START_MS + 1)):
        await recorded(store, Scope(session=name), drafts.message("hello", created_at=said_at), now_ms=START_MS + 5)
    await opened(store, Scope(session="empty"), now_ms=START_MS - 50)
    async with store.view() as view:
        listed = await view.sessions.list_recent(Scope(), limit=9)
        assert [one.id for one in listed] == ["newest", "new", "empty", "imported"]
        after = await view.sessions.list_recent(Scope(), limit=9, before=listed[1].cursor)
    assert [one.id for one in after] == ["empty", "imported"]


async def test_the_first_texts_of_sessions_are_what_the_user_said_first_and_is_not_hidden(store: Store) -> None:
    written = [
        drafts.message("Assistant.", role=Role.ASSISTANT),
        drafts.message("By a tool.", origin=Origin.TOOL),
        drafts.message("Thought.", details={"visibility": "internal"}),
        drafts.message("First."),
        drafts.message("x" * (READ_CHARS + 1)),
        *(drafts.message(f"Message {number}.", role=Role.ASSISTANT) for number in range(FIRST_MESSAGES)),
        drafts.message("Too late."),
    ]
    await recorded(store, TRIP, *written)
    await recorded(store, Scope(session="other"), drafts.message("Other."))
    await recorded(store, Scope(session="of kites", project="kites"), drafts.message("Of kites."))
    await recorded(store, Scope(owner="ann", session="hers"), drafts.message("Hers."))
    async with store.view() as view:
        found = await view.sessions.first_texts(Scope(), ["trip", "hers", "nobody"])
        assert found == {"trip": ["First.", "x" * READ_CHARS]}
        limited = Scope(limits=Limits(project="boats"))
        assert await view.sessions.first_texts(limited, ["trip"]) == {"trip": ["First.", "x" * READ_CHARS]}
        assert await view.sessions.first_texts(Scope(limits=Limits(agent="coach")), ["trip"]) == {}
        in_boats = Scope(project="boats")
        assert await view.sessions.first_texts(in_boats, ["trip", "of kites"]) == {"trip": found["trip"]}


async def test_a_prefix_is_taken_letter_by_letter_whatever_it_means_elsewhere(store: Store) -> None:
    await opened(store, Scope(session="trip-1"))
    for prefix in ("%", "_", "trip%", "*", "[t]", "'", '"', "trip-1\x00", "\\"):
        async with store.view() as view:
            found = await view.sessions.list_recent(Scope(), prefix=prefix, limit=9)
            assert [one.id for one in found] == [], prefix


async def test_sessions_written_at_one_moment_are_listed_newest_session_first(store: Store) -> None:
    for number in range(5):
        await opened(store, Scope(session=f"s{number}"))
    async with store.view() as view:
        listed = [one.id for one in await view.sessions.list_recent(Scope(), limit=9)]
    assert listed == ["s4", "s3", "s2", "s1", "s0"]


async def settle(store: Store, seq: int) -> None:
    """Mark the session's messages up to `seq` as searched."""
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=0)
        await transaction.sessions.set_pinned_seq(session, seq)


async def test_a_session_owes_from_its_first_message_on_that_was_not_searched(store: Store) -> None:
    await opened(store, Scope(session="empty"))
    await recorded(store, TRIP, drafts.message("one"), drafts.message("two"))
    await settle(store, 1)
    assert await owing(store) == ["trip"]
    await settle(store, 2)
    assert await owing(store) == []


@pytest.mark.parametrize(("messages", "owes"), [(14, False), (15, True), (16, True)])
async def test_a_session_owes_a_summary_from_the_threshold_on(store: Store, messages: int, owes: bool) -> None:
    await recorded(store, TRIP, *(drafts.message(f"m{n}") for n in range(messages)))
    await settle(store, messages)
    assert await owing(store) == (["trip"] if owes else [])


@pytest.mark.parametrize(("summaries", "owes"), [(3, False), (4, True)])
async def test_a_session_owes_a_fold_when_one_level_has_more_than_the_most(
    store: Store, summaries: int, owes: bool
) -> None:
    await recorded(store, TRIP, *(drafts.message(f"m{n}") for n in range(summaries)))
    await settle(store, summaries)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=0)
        for seq in range(1, summaries + 1):
            await transaction.conversations.add_summaries(session, [drafts.summary(seq, seq)])
    assert await owing(store) == (["trip"] if owes else [])


async def test_a_fold_that_was_made_is_no_longer_owed(store: Store) -> None:
    await recorded(store, TRIP, *(drafts.message(f"m{n}") for n in range(4)))
    await settle(store, 4)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=0)
        for seq in range(1, 5):
            await transaction.conversations.add_summaries(session, [drafts.summary(seq, seq)])
        await transaction.conversations.add_summaries(session, [drafts.summary(1, 4, level=1)])
    assert await owing(store) == []


@pytest.mark.parametrize("state", [SessionState.FINALIZING, SessionState.FINALIZED])
async def test_a_session_that_is_no_longer_open_owes_nothing_in_the_background(
    store: Store, state: SessionState
) -> None:
    await recorded(store, TRIP, drafts.message("one"))
    async with store.transaction() as transaction:
        await transaction.sessions.set_state(
            await ensure_session(transaction.sessions, TRIP, now_ms=0), state, now_ms=0
        )
    assert await owing(store) == []


async def test_pages_of_owing_sessions_join_to_all_of_them_of_every_owner(store: Store) -> None:
    for number in range(23):
        owner = ("local", "ann", "bob")[number % 3]
        await recorded(store, Scope(owner=owner, session=f"s{number}"), drafts.message("one"))
    seen: list[tuple[str, str]] = []
    last: Session | None = None
    async with store.view() as view:
        while page := await view.sessions.list_owing(threshold=15, max_summaries=3, after=last, limit=5):
            seen += [(session.owner, session.id) for session in page]
            last = page[-1]
        of_two = await view.sessions.list_owing(
            threshold=15, max_summaries=3, after=None, limit=99, owners={"ann", "bob", "nobody"}
        )
    assert len(seen) == len(set(seen)) == 23
    assert {(session.owner, session.id) for session in of_two} == {one for one in seen if one[0] != "local"}
