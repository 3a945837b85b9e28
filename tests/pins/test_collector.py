"""What the messages of a session make pins of, together: with what was proposed, and the newest version of code."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from kalito_mcp import Memory, NewMessage, Settings, open_memory
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import MessageWithImportance, Reach, RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.kinds.judge import Reading, SentenceJudge
from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.pins.automatic import AutoPinPolicy
from kalito_mcp.pins.collector import PinCollector
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.scripted import CharacterCounter, CountedIds, ScriptedClock
from tests.stored import said

pytestmark = pytest.mark.anyio


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(database, Settings(), clock=clock, ids=CountedIds()) as opened:
        yield opened


async def records(memory: Memory) -> list[MemoryRecord]:
    """The pins that are not forgotten, the oldest first."""
    async with memory.place.store.view() as view:
        found = await view.records.list_records(Scope(session="trip"), frozenset({RecordType.PIN}), limit=100)
    return list(found)[::-1]


async def pins(memory: Memory) -> list[str]:
    return [pin.text for pin in await records(memory)]


async def record(memory: Memory, *texts: str) -> None:
    for text in texts:
        await memory.record_messages("trip", said(text))
        await memory.settled()


CODE = "This works:\n```python\ndef parse(text):\n    return {0}\n```"
OLD, NEW = CODE.format(1), CODE.format(2)
OLD_PIN, NEW_PIN = (f"python: def parse(text):\n    return {value}" for value in (1, 2))


async def test_the_newest_version_of_a_function_is_the_only_one(memory: Memory) -> None:
    await record(memory, OLD, "We never use tabs here.", NEW)
    assert await pins(memory) == ["We never use tabs here.", NEW_PIN]
    await memory.record_messages("trip", said(OLD, "Noted.", NEW))  # in one call
    await memory.settled()
    assert await pins(memory) == ["We never use tabs here.", NEW_PIN]


async def test_a_pin_in_somebody_s_own_words_stays(memory: Memory) -> None:
    await record(memory, OLD)
    [pin] = await records(memory)
    await memory.update_memory(pin.id, {"text": "parse() returned 1 until May."}, expected_revision=1)
    await record(memory, NEW)
    assert await pins(memory) == ["parse() returned 1 until May.", NEW_PIN]


async def test_a_replaced_pin_can_be_restored(memory: Memory) -> None:
    await record(memory, OLD)
    [pin] = await records(memory)
    await record(memory, NEW)
    await memory.restore(pin.id)
    assert sorted(await pins(memory)) == sorted([OLD_PIN, NEW_PIN])


async def test_of_two_statements_both_stay_each_with_its_date(memory: Memory, clock: ScriptedClock) -> None:
    await record(memory, "From now on we deploy on Mondays.")
    clock.advance(86_400)
    await record(memory, "From now on we deploy on Tuesdays.")
    first, second = await records(memory)
    assert (first.text, second.text) == ("From now on we deploy on Mondays.", "From now on we deploy on Tuesdays.")
    assert second.created_at - first.created_at == 86_400_000


async def test_a_pin_knows_its_kind_and_where_it_belongs(memory: Memory) -> None:
    shop = await memory.in_project("shop")
    await record(shop, "We always squash.", "We decided to use SQLite.", OLD)
    assert [(pin.content.get("kind"), pin.content.get("scope")) for pin in await records(shop)] == [
        (Kind.RULE, Reach.PROJECT),
        (Kind.DECISION, Reach.PROJECT),
        (None, None),
    ]


PROPOSED = "I propose a nightly job that copies the orders, because the queue loses some of them."


async def drafts(judge: SentenceJudge, *messages: MessageWithImportance, searched: int = 0) -> list[str]:
    """What a collector would pin of messages that follow each other, after those up to number `searched`."""
    store: SqliteStore = None  # type: ignore[assignment]  # nothing is read
    collector = PinCollector(store, judge, CharacterCounter(), ScriptedClock(), CountedIds(), AutoPinPolicy())
    return [draft.content for draft in await collector.drafts(messages, searched, has_project=True)]


def message(seq: int, text: str, role: Role = Role.USER) -> MessageWithImportance:
    return MessageWithImportance(seq, "trip", role, text, None, None, 0, 0.5, seq, 0)


class Deciding(SentenceJudge):
    """Takes every sentence for a decision; of the vectors it says how alike each is to the last."""

    def __init__(self, *likeness: float) -> None:
        self.asked: list[str] = []
        self._likeness = likeness

    async def read(self, sentences: Sequence[Sentence]) -> Reading:
        self.asked += [one.text for one in sentences]
        judged = [Judged(Kind.DECISION, 0.1 if one.is_assistant else 0.9, 0.1) for one in sentences]
        vectors = np.array([*([one] for one in self._likeness), [1.0]], np.float32) if self._likeness else None
        return Reading(judged, vectors)


async def test_a_short_decision_comes_with_the_assistant_s_proposal_right_before_it() -> None:
    proposed = message(1, PROPOSED, Role.ASSISTANT)
    agreed = message(2, "agreed, but at noon")
    [pin] = await drafts(Deciding(), proposed, agreed)
    assert pin == f"agreed, but at noon (to: {PROPOSED})"
    assert await drafts(Deciding(), proposed, agreed, searched=1) == [pin]
    first, second = await drafts(Deciding(), proposed, message(2, "wait a moment"), message(3, agreed.text))
    assert (first, second) == (f"wait a moment (to: {PROPOSED})", agreed.text)


async def test_a_short_decision_comes_with_what_is_most_like_it_or_else_the_question_at_the_end() -> None:
    agreed = message(2, "agreed, but at noon")
    done, asked = "All 41 tests of the importer pass.", "At what time shall it run?"
    proposing = message(1, f"{done} {PROPOSED}", Role.ASSISTANT)
    asking = message(1, f"{done} {PROPOSED} {asked}", Role.ASSISTANT)
    for before, likeness, answered in (
        (proposing, (0.1, 0.4), PROPOSED),
        (proposing, (0.4, 0.1), done),
        (proposing, (0.1, 0.1), None),
        (asking, (0.1, 0.1, 0.1), asked),
        (asking, (0.1, 0.4, 0.1), PROPOSED),
        (asking, (), asked),
        (proposing, (), None),
        (message(1, f"{done} {PROPOSED} Ok?", Role.ASSISTANT), (0.1, 0.1, 0.1), None),
        (message(1, "Done.", Role.ASSISTANT), (), None),
        (message(1, "Done. 用哪个数据库？", Role.ASSISTANT), (), "用哪个数据库？"),
    ):
        [pin] = await drafts(Deciding(*likeness), before, agreed)
        assert pin == (agreed.text if answered is None else f"{agreed.text} (to: {answered})")
    [pin] = await drafts(Deciding(), message(1, "Retry " + "again and " * 40 + "again.", Role.ASSISTANT), agreed)
    assert len(pin) < len(agreed.text) + 150


@pytest.mark.usefixtures("meaning_installed")
async def test_what_a_decision_answers_is_found_by_its_meaning(memory: Memory) -> None:
    talk = (
        "All 41 tests of the importer pass. The coverage is 92 percent. Shall we use Postgres for the queue, too?",
        "yes, we stay with Postgres for both",
        "The seed data is in fixtures/orders.json. I would put Redis in front of it. The logs are clean.",
        "we decided against Redis for the cache",
    )
    for at, text in enumerate(talk):
        await memory.record_messages("trip", [NewMessage(Role.USER if at % 2 else Role.ASSISTANT, text)])
    await memory.settled()
    assert [one for one in await pins(memory) if one.startswith("we ")] == [
        "we stay with Postgres for both (to: Shall we use Postgres for the queue, too?)",
        "we decided against Redis for the cache (to: I would put Redis in front of it.)",
    ]


async def test_all_sentences_of_a_piece_are_judged_together() -> None:
    judge = Deciding()
    await drafts(judge, message(1, "One thing is said. Another is said."), message(2, "A third one is said."))
    each = ["One thing is said.", "Another is said.", "A third one is said."]
    assert judge.asked == [*each, *each], "whose words they are, and then what they are: the model remembers the first"


async def test_an_agreement_by_explicit_words_needs_no_model(memory: Memory) -> None:
    await memory.record_messages(
        "trip", [NewMessage(Role.ASSISTANT, PROPOSED), NewMessage(Role.USER, "ok, let's go with that, but at noon")]
    )
    await memory.settled()
    assert await pins(memory) == [f"let's go with that, but at noon (to: {PROPOSED})"]
