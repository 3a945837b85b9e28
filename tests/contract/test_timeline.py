"""`ports.timeline`: conversations with what came of them, what is open, and how much was said when."""

from collections.abc import Sequence

import pytest

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.memory_records import DELETED_AT, EditType
from kalito_mcp.domain.records import Reach
from kalito_mcp.domain.scope import PERSONAL, Limits, Scope
from kalito_mcp.ports.conversations import MessageDraft, PinDraft
from kalito_mcp.ports.store import Store
from kalito_mcp.ports.timeline import TimelineReader
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.test_known import change
from tests.contract.test_limits import LIMITS, filled, within
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
HOUR_MS = 3_600_000
IN_A, IN_B, ELSEWHERE = Scope(session="a", project="A"), Scope(session="b", project="B"), Scope(session="c")


async def said(store: Store, scope: Scope, *drafted: MessageDraft | PinDraft) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        messages = [one for one in drafted if isinstance(one, MessageDraft)]
        await transaction.conversations.append_messages(session, messages, now_ms=START_MS)
        await transaction.conversations.add_pins(session, [one for one in drafted if isinstance(one, PinDraft)])


async def ids(reader: TimelineReader, scope: Scope, **asked: object) -> list[str]:
    return [one.session.id for one in await reader.sessions(scope, limit=9, **asked)]  # type: ignore[arg-type]


async def test_sessions_are_listed_with_who_recorded_their_first_message(store: Store) -> None:
    hosts: Sequence[tuple[Scope, str | None]] = ((IN_A, "codex"), (IN_B, "zed"), (ELSEWHERE, None))
    for days, (scope, client) in enumerate(hosts):
        await said(store, scope, drafts.message("First.", client=client, created_at=START_MS + days))
        await said(store, scope, drafts.message("Second.", client="later", created_at=START_MS + 10 + days))
    async with store.view() as view:
        listed = await view.timeline.sessions(Scope(), limit=9)
        assert [(one.session.id, one.client) for one in listed] == [("c", None), ("b", "zed"), ("a", "codex")]
        assert await ids(view.timeline, Scope(), client="codex") == ["a"]
        assert await ids(view.timeline, Scope(), client="later") == []
        assert await ids(view.timeline, Scope(), before=listed[0].session.cursor) == ["b", "a"]
        assert await ids(view.timeline, Scope(), begun_until=START_MS + 1) == ["b", "a"]
        assert await ids(view.timeline, Scope(project="A")) == ["c", "a"]
        assert await ids(view.timeline, Scope(project=PERSONAL)) == ["c"]
        assert await ids(view.timeline, Scope(owner="ann")) == []
        assert await view.timeline.clients(Scope(), among=9) == ["codex", "zed"]
        assert await view.timeline.clients(Scope(), among=2) == ["zed"]
        assert await view.timeline.clients(Scope(project="A"), among=9) == ["codex"]
        begun = await view.timeline.begun(Scope(session="a", project="B"))
        assert begun is not None
        assert (begun.session.id, begun.client) == ("a", "codex")


async def test_a_session_whose_messages_were_all_erased_is_left_out(store: Store) -> None:
    for scope in (IN_A, IN_B):
        await said(store, scope, drafts.message("First."), drafts.message("Second."))
    await change(store, "msg_1", {DELETED_AT: START_MS}, edit_type=EditType.DELETE)
    await change(store, "msg_2", {DELETED_AT: START_MS}, edit_type=EditType.DELETE)
    async with store.view() as view:
        assert await ids(view.timeline, Scope()) == ["b", "a"]
        assert await ids(view.timeline, Scope(), is_forgotten=False) == ["b"]
        assert await ids(view.timeline, Scope(), is_forgotten=True) == ["a"]
    async with store.transaction() as transaction:
        for number in (1, 2):
            record = await transaction.records.record(Scope(), f"msg_{number}")
            assert record is not None
            await transaction.records.purge(record, now_ms=START_MS)
    async with store.view() as view:
        assert await ids(view.timeline, Scope()) == ["b"]
        assert await ids(view.timeline, Scope(), is_forgotten=True) == []
        assert await view.timeline.begun(Scope(session="a")) is None
        assert await view.timeline.begun(Scope(session="b")) is not None


async def test_the_notes_of_sessions_are_their_uncovered_summaries_and_most_important_pins(store: Store) -> None:
    await said(store, IN_A, *(drafts.message(f"{number}") for number in range(4)))
    async with store.transaction() as transaction:
        for first in (1, 3):
            session = await transaction.sessions.get(Scope(session="a"))
            assert session is not None
            made = drafts.summary(first, first + 1, text=f"summary {first}")
            await transaction.conversations.add_summaries(session, [made])
    pins = [
        drafts.pin("less", importance=0.1, kind=Kind.DECISION),
        drafts.pin("more", importance=0.9, kind=Kind.OUTCOME),
        drafts.pin("of the person", importance=0.8, reach=Reach.PERSON),
        drafts.pin("forgotten"),
        drafts.pin("old"),
        drafts.pin("new", importance=0.7, supersedes=("pin_old",)),
    ]
    await said(store, IN_A, *pins)
    await said(store, IN_B, drafts.pin("elsewhere"))
    await change(store, "pin_forgotten", {DELETED_AT: START_MS}, edit_type=EditType.DELETE)

    async def notes(scope: Scope, *sessions: str, limit: int = 9) -> list[tuple[str | None, str]]:
        async with store.view() as view:
            return [(one.session_id, one.text) for one in await view.timeline.notes(scope, sessions, limit=limit)]

    of_a = [("a", text) for text in ("summary 1", "summary 3", "more", "of the person", "new", "less")]
    assert await notes(Scope(), "b", "a", "nobody") == [("b", "elsewhere"), *of_a]
    assert await notes(Scope(), "a", limit=1) == of_a[:3]
    assert await notes(Scope(limits=Limits(project="B")), "a", "b") == [("b", "elsewhere")]
    assert await notes(Scope(owner="ann"), "a", "b") == []
    async with store.view() as view:
        kinds = [one.kind for one in await view.timeline.notes(Scope(), ["a"], limit=9)]
    assert kinds == [None, None, Kind.OUTCOME, None, None, Kind.DECISION]


async def test_open_points_are_those_at_the_end_of_their_sessions_of_all_projects(store: Store) -> None:
    for days, scope in enumerate((IN_A, IN_B, ELSEWHERE, Scope(agent="coach", session="d"))):
        created_at = START_MS + days
        kinds = {"waits": Kind.OPEN, "done": Kind.OUTCOME, "rule": Kind.RULE}
        await said(
            store,
            scope,
            *(drafts.pin(f"{scope.session} {name}", kind=kind, created_at=created_at) for name, kind in kinds.items()),
            drafts.pin(f"{scope.session} known", kind=Kind.OPEN, reach=Reach.PERSON, created_at=created_at),
        )

    async def waiting(scope: Scope, limit: int = 9) -> list[str]:
        async with store.view() as view:
            return [one.text for one in await view.timeline.open_points(scope, limit=limit)]

    assert await waiting(Scope()) == ["d waits", "c waits", "b waits", "a waits"]
    assert await waiting(Scope(), 1) == ["d waits"]
    assert await waiting(Scope(project="A")) == ["d waits", "c waits", "a waits"]
    assert await waiting(Scope(agent="coach")) == ["d waits"]
    assert await waiting(Scope(limits=Limits(project="B"))) == ["d waits", "c waits", "b waits"]
    assert await waiting(Scope(owner="ann")) == []
    await change(store, "pin_b waits", {DELETED_AT: START_MS}, edit_type=EditType.DELETE)
    await said(store, IN_A, *(drafts.message(f"{number}", created_at=START_MS + 9) for number in range(6)))
    assert await waiting(Scope()) == ["d waits", "c waits"]


async def test_messages_are_counted_between_moments(store: Store) -> None:
    first = START_MS // HOUR_MS * HOUR_MS
    moments = {"a": (0, 1, HOUR_MS), "b": (HOUR_MS,), "c": (2 * HOUR_MS, 3 * HOUR_MS - 1), "d": (-1, 3 * HOUR_MS)}
    for scope in (IN_A, IN_B, ELSEWHERE, Scope(session="d")):
        said_at = moments[scope.session or ""]
        await said(store, scope, *(drafts.message("x", created_at=first + one) for one in said_at))
    await said(store, Scope(session="empty"))
    await said(store, IN_A, drafts.pin("a pin"))

    async def counted(scope: Scope, first_hour: int = 0, last_hour: int = 3) -> Sequence[int]:
        hours = [first + hour * HOUR_MS for hour in range(first_hour, last_hour + 1)]
        async with store.view() as view:
            return await view.timeline.messages_between(scope, hours)

    assert await counted(Scope()) == [2, 2, 2]
    assert await counted(Scope(), 1, 2) == [2]
    assert await counted(Scope(), -1, 4) == [1, 2, 2, 2, 1]
    assert await counted(Scope(project="A")) == [2, 1, 2]
    assert await counted(Scope(limits=Limits(project="B"))) == [0, 1, 2]
    assert await counted(Scope(agent="coach")) == await counted(Scope(owner="ann")) == [0, 0, 0]
    for number in (1, 6):
        await change(store, f"msg_{number}", {DELETED_AT: START_MS}, edit_type=EditType.DELETE)
    assert await counted(Scope()) == [1, 2, 1]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
async def test_a_timeline_stays_within_limits(store: Store, limits: Limits) -> None:
    await filled(store)
    anywhere, reached = Scope(limits=limits), within(limits)
    every = sorted(within(Limits()))
    async with store.view() as view:
        assert set(await ids(view.timeline, anywhere)) == reached
        for name in every:
            assert (await view.timeline.begun(anywhere.of_session(name)) is not None) == (name in reached)
        noted = await view.timeline.notes(anywhere, every, limit=9)
        assert {one.session_id for one in noted} == reached
        waiting = await view.timeline.open_points(anywhere, limit=99)
        assert {one.session_id for one in waiting} == reached
        counted = await view.timeline.messages_between(anywhere, [0, 2 * START_MS // HOUR_MS * HOUR_MS])
        assert list(counted) == [len(reached)]
