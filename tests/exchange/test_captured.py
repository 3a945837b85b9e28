"""What hooks had recorded of a conversation is in the memory once, also after its transcript is imported."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kalito_mcp.capture.capturer import Capture
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.exchange import stored_answers
from kalito_mcp.exchange.conversation import Turn
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.programs import SOURCES
from kalito_mcp.exchange.stored import Stored
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.exchange.files import SESSION, Transcript, lines

pytestmark = pytest.mark.anyio
ASKED, LOOKING, ANSWERED = (
    "Where is the ferry?",
    "I look at the plan of the harbour.",
    "At pier 4.\n\nIt leaves at noon.",
)


async def capture(memory: Memory, *events: tuple[str, dict[str, Any]], host: str = "claude-code") -> None:
    """Let hooks report events, as the host sends them."""

    async def opened() -> Memory:
        return memory

    taking = Capture(opened)
    for number, (event, payload) in enumerate(events):
        told = {"host": host, "event": event, "payload": {"session_id": SESSION, **payload}, "id": f"{event}{number}"}
        await taking.take(told)


def prompt(text: str) -> tuple[str, dict[str, Any]]:
    return "UserPromptSubmit", {"prompt": text}


def stop(text: str) -> tuple[str, dict[str, Any]]:
    return "Stop", {"last_assistant_message": text}


async def imported(memory: Memory, path: Path, source: str = "claude-code") -> tuple[int, int]:
    report = await Importer(memory).run(found_in(SOURCES[source], [path]))
    return report.messages, report.present


async def said(memory: Memory, session_id: str = SESSION) -> list[tuple[str, str]]:
    session = await memory.conversations.get(session_id)
    assert session is not None
    return [(str(turn.role), turn.text) async for turns in memory.conversations.turns(session) for turn in turns]


async def test_a_reply_that_is_one_block_of_the_message_is_stored_once(tmp_path: Path) -> None:
    told = Transcript()
    told.user(ASKED)
    for block in (LOOKING, ANSWERED):
        told.assistant(block, message_id="msg_01")
    path = told.write(tmp_path)
    async with open_memory(tmp_path / "memory.db") as memory:
        await capture(memory, prompt(ASKED), stop(ANSWERED))
        assert await imported(memory, path) == (1, 1)
        assert await said(memory) == [("user", ASKED), ("assistant", ANSWERED), ("assistant", LOOKING)]
        # Elsewhere it is read again from its beginning, and all of it is known.
        (tmp_path / "moved").mkdir()
        moved = told.write(tmp_path / "moved")
        assert await imported(memory, moved) == (0, 2)


async def test_a_reply_that_ends_a_grown_transcript_is_stored_once(tmp_path: Path) -> None:
    told = Transcript()
    told.user(ASKED)
    path = told.write(tmp_path)
    async with open_memory(tmp_path / "memory.db") as memory:
        await capture(memory, prompt(ASKED))
        assert await imported(memory, path) == (0, 1)
        await capture(memory, stop(ANSWERED))
        for block in (LOOKING, ANSWERED):
            told.assistant(block, message_id="msg_01")
        told.write(tmp_path)
        assert await imported(memory, path) == (1, 0)
        assert await said(memory) == [("user", ASKED), ("assistant", ANSWERED), ("assistant", LOOKING)]


async def test_what_hooks_missed_of_a_session_that_ended_continues_it(tmp_path: Path) -> None:
    told = Transcript()
    for asked, answer in ((ASKED, ANSWERED), ("And the tram?", "At pier 5."), ("And the bus?", "At pier 6.")):
        told.user(asked)
        told.assistant(answer)
    path = told.write(tmp_path)
    ended = ("SessionEnd", {"reason": "other"})
    async with open_memory(tmp_path / "memory.db") as memory:
        resumed = ("UserPromptSubmit", {"prompt": "And the tram?", "prompt_id": "p2"})
        await capture(memory, prompt(ASKED), ended, resumed, ("SessionEnd", {"reason": "exit"}))
        assert await said(memory) == [("user", ASKED)]
        assert [text for _, text in await said(memory, f"{SESSION}~2")] == ["And the tram?"]
        assert await imported(memory, path) == (4, 2)
        missing = [ANSWERED, "At pier 5.", "And the bus?", "At pier 6."]
        assert [text for _, text in await said(memory, f"{SESSION}~3")] == missing
        # Elsewhere, and after it was closed again, nothing comes twice.
        await memory.finalize_session(f"{SESSION}~3")
        (tmp_path / "moved").mkdir()
        assert await imported(memory, told.write(tmp_path / "moved")) == (0, 6)
        assert await memory.conversations.get(f"{SESSION}~4") is None


async def test_a_message_that_was_erased_of_a_session_that_ended_does_not_come_back(tmp_path: Path) -> None:
    told = Transcript()
    told.user(ASKED)
    told.assistant(ANSWERED)
    path = told.write(tmp_path)
    async with open_memory(tmp_path / "memory.db") as memory:
        await capture(memory, prompt(ASKED), stop(ANSWERED), ("SessionEnd", {"reason": "other"}))
        await memory.purge([(await memory.records.get("msg_1")).id])
        assert await imported(memory, path) == (0, 0)
        assert await memory.conversations.get(f"{SESSION}~2") is None


async def test_a_session_that_is_closed_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Transcript()
    told.user(ASKED)
    path = told.write(tmp_path)
    of = Stored.of
    async with open_memory(tmp_path / "memory.db") as memory:
        await memory.record_messages(SESSION, [NewMessage(Role.USER, "Hello")])

        async def closing(*given: Any) -> Stored:
            found = await of(*given)
            await memory.finalize_session(SESSION)
            return found

        monkeypatch.setattr(Stored, "of", closing)
        assert await imported(memory, path) == (0, 0)
        monkeypatch.setattr(Stored, "of", of)
        assert await imported(memory, path) == (1, 0)
        assert await said(memory, f"{SESSION}~2") == [("user", ASKED)]


async def test_messages_that_a_hook_reported_as_one_are_stored_once(tmp_path: Path) -> None:
    head = {"sessionId": SESSION, "startTime": "2026-03-01T10:00:00Z"}
    records = [("m1", "user", ASKED), ("m2", "gemini", LOOKING), ("m3", "gemini", ANSWERED), ("m4", "gemini", "noon")]
    path = lines(
        tmp_path / "chats" / "session-1.jsonl",
        [head, *({"id": key, "type": kind, "content": text} for key, kind, text in records)],
    )
    async with open_memory(tmp_path / "memory.db") as memory:
        after = ("AfterAgent", {"prompt": ASKED, "prompt_response": f"{LOOKING}\n{ANSWERED}"})
        await capture(memory, ("BeforeAgent", {"prompt": ASKED}), after, host="gemini")
        # "noon" is in the answer too, but that was taken already: so it is another word.
        assert await imported(memory, path, "gemini") == (1, 3)
        assert [text for _, text in await said(memory)] == [ASKED, f"{LOOKING}\n{ANSWERED}", "noon"]


async def test_words_that_are_in_another_answer_are_not_lost(tmp_path: Path) -> None:
    told = Transcript()
    for asked, *answers in ((ASKED, ANSWERED, "Done."), ("go on", "At pier"), ("go on", "Done."), ("go on", "Done.")):
        told.user(asked)
        for answer in answers:
            told.assistant(answer)
    path = told.write(tmp_path)
    async with open_memory(tmp_path / "memory.db") as memory:
        await capture(memory, prompt(ASKED), stop(ANSWERED), prompt("go on"), stop("Done."))
        await imported(memory, path)
        contents = [record["message"]["content"] for record in told.records]
        words = sorted(one if isinstance(one, str) else one[0]["text"] for one in contents)
        assert sorted(text for _, text in await said(memory)) == words


async def test_a_reply_with_a_secret_is_recognised(tmp_path: Path) -> None:
    secret = f"The token is ghp_{'a1B2' * 9}. Keep it."
    told = Transcript()
    told.user(ASKED)
    for block in (LOOKING, secret):
        told.assistant(block, message_id="msg_01")
    path = told.write(tmp_path)
    async with open_memory(tmp_path / "memory.db") as memory:
        await capture(memory, prompt(ASKED), stop(secret))
        assert await imported(memory, path) == (1, 1)
        assert [text for _, text in await said(memory)][2:] == [LOOKING]


@pytest.mark.parametrize("other", ["", "In other words: "])
def test_answers_are_compared_with_few_others(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    compared: list[str] = []
    cut = stored_answers._cut

    def counted(text: str, part: str, between: str) -> str | None:
        compared.append(part)
        return cut(text, part, between)

    monkeypatch.setattr(stored_answers, "_cut", counted)
    stored = Stored(None)
    for number in range(200):
        stored.add(Role.USER, "continue")
        stored.add(Role.ASSISTANT, f"Done with step {number}.")
    for number in range(200):
        assert not stored.new_of(Turn(Role.USER, "continue", f"u{number}"), f"k:u{number}")
        told = f"{other}Done with step {number}."
        assert stored.new_of(Turn(Role.ASSISTANT, told, f"a{number}"), f"k:a{number}") == (told if other else "")
    assert len(compared) <= 200


_WORDS = st.sampled_from(["Done.", "At pier 4.", "Noon.", "At pier 4.\n\nNoon.", "go on", "Done.\n\nDone."])
_TALK = st.lists(st.tuples(st.sampled_from([Role.USER, Role.ASSISTANT]), _WORDS), max_size=8)


_BOTH = "At pier 4.\n\nNoon."
_PART_AND_WHOLE = [(Role.USER, "Done.")] + [(Role.ASSISTANT, one) for one in ("At pier 4.", _BOTH, "At pier 4.")]


@example(captured=[(Role.USER, "Done."), (Role.ASSISTANT, _BOTH), (Role.ASSISTANT, _BOTH)], told=_PART_AND_WHOLE)
@given(captured=_TALK, told=_TALK)
def test_no_word_of_a_transcript_is_lost(captured: list[tuple[Role, str]], told: list[tuple[Role, str]]) -> None:
    stored = Stored(None)
    for role, text in captured:
        stored.add(role, text)
    new = [(role, stored.new_of(Turn(role, text, str(place)), f"k:{place}")) for place, (role, text) in enumerate(told)]

    def counted(turns: list[tuple[Role, str]], role: Role) -> Counter[str]:
        return Counter(word for one, text in turns if one is role for word in text.split())

    for role in (Role.USER, Role.ASSISTANT):
        assert counted(captured + new, role) >= counted(told, role)
    # What was captured as it was said is not stored again.
    again = Stored(None)
    for role, text in told:
        again.add(role, text)
    assert not any(again.new_of(Turn(role, text, str(place)), f"k:{place}") for place, (role, text) in enumerate(told))
