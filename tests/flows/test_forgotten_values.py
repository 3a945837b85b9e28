"""What was forgotten does not come back by itself, and everything about a subject can be forgotten.

The ideas of these tests are those of the portable tests of agent-memory-atlas on rejected values and deletion: a
laundering sequence, a store aged past every expiry, keys under attack, extraction again, no second copy, no path
around, deletion after reindexing and a restart, retraction without a replacement.
"""

from pathlib import Path
from typing import Any, Final

import anyio
import anyio.from_thread
import pytest
from mcp import Client
from mcp.types import ElicitResult

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.erasing import ForgetRequest
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Origin, RecordType, Repetition, Role
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.editing import forgetter
from kalito_mcp.errors import Conflict
from kalito_mcp.memory import Memory
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.server.build import build_server
from kalito_mcp.wiring import open_memory, reindex
from tests.flows.harness import served
from tests.flows.test_erasure import holding
from tests.scripted import ScriptedClock
from tests.server import wire

pytestmark = pytest.mark.anyio

HOME: Final = "I live in Trondheim."
WRONG: Final = "abcdefgh"
DAY_S: Final = 86_400
VARIANTS: Final = (
    "i live in trondheim",
    "I LIVE IN TRONDHEIM!!",
    "I  live in\n\nTrondheim.",
    "I live in Тrоndheim.",  # Cyrillic Te and o
    "I live in Τrοndheim.",  # Greek Tau and omicron
    "I live in Tron\u200bd\u00adheim.",
    "Ｉ ｌｉｖｅ ｉｎ Ｔｒｏｎｄｈｅｉｍ．",
    "By the way, I live in Trondheim.",
)
OTHERS: Final = (
    "I live in Bergen.",
    "I live in Trondheimsfjord.",
    "I do not live in Trondheim.",
    "My home is Trondheim.",
)


def by_user(text: str, **fields: Any) -> NewMessage:
    return NewMessage(Role.USER, text, **fields)


def by_assistant(text: str) -> NewMessage:
    return NewMessage(Role.ASSISTANT, text)


async def found(memory: Memory, query: str = "Where do I live? Trondheim") -> list[str]:
    """The texts of all hits, and of the pins that a context shows."""
    page = await memory.search_memory(SearchRequest(query, 20))
    return [hit.text for hit in page.hits]


async def forgotten_home(memory: Memory, clock: ScriptedClock, session: str = "first") -> str:
    """The home was recorded and is forgotten; the id of its message."""
    [message_id] = (await memory.record_messages(session, [by_user(HOME)])).message_ids
    await memory.settled()
    assert HOME in await found(memory)
    clock.advance(60)
    await memory.forget(message_id)
    clock.advance(60)
    assert await found(memory) == []
    return message_id


async def test_superseding_and_restating_does_not_wash_a_forgotten_value(tmp_path: Path) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        await forgotten_home(memory, clock)
        await memory.record_messages("first", [by_user("I live in Bergen.")])
        said = [by_assistant(HOME), by_user(HOME, origin=Origin.IMPORT), by_user(HOME, origin=Origin.DOCUMENT)]
        recorded = await memory.record_messages("second", said)
        await memory.settled()
        assert [one.repetition for one in recorded.messages] == [
            Repetition.HIDDEN,
            Repetition.LEFT_OUT,
            Repetition.LEFT_OUT,
        ]
        assert {text for text in await found(memory) if "Trondheim" in text} == set()
        assert "Trondheim" not in (await memory.build_context("second", query="Trondheim")).text
        assert await memory.past_answers("I live in Trondheim.") == []


async def test_a_forgotten_value_outlives_years_sleep_finalizing_reindexing_and_a_restart(tmp_path: Path) -> None:
    clock, database = ScriptedClock(), tmp_path / "memory.db"
    async with open_memory(database, clock=clock) as memory:
        await forgotten_home(memory, clock)
        await memory.finalize_session("first")
        clock.advance(5 * 365 * DAY_S)
    await reindex(Settings(database=address_of(database)))
    async with open_memory(database, clock=clock) as memory:
        recorded = await memory.record_messages("second", [by_assistant(HOME), by_user(HOME, origin=Origin.IMPORT)])
        await memory.settled()
        assert recorded.left_out_count == len(recorded.ids_of(Repetition.HIDDEN)) == 1
        assert await found(memory) == []


@pytest.mark.parametrize("text", VARIANTS)
async def test_look_alikes_of_a_forgotten_value_are_recognised(tmp_path: Path, text: str) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        await forgotten_home(memory, clock)
        recorded = await memory.record_messages("second", [by_user(text, origin=Origin.IMPORT)])
        assert (recorded.new_count, recorded.left_out_count) == (0, 1)
        with pytest.raises(Conflict, match="forgotten or erased"):
            await memory.remember("note", {"text": text})
        with pytest.raises(Conflict):
            await memory.create_pin(CreatePinRequest("second", text))


@pytest.mark.parametrize("text", OTHERS)
async def test_other_values_and_other_words_are_not_taken_for_it(tmp_path: Path, text: str) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        await forgotten_home(memory, clock)
        recorded = await memory.record_messages("second", [by_user(text, origin=Origin.IMPORT), by_assistant(text)])
        assert [one.repetition for one in recorded.messages] == [None, None]
        assert text in await found(memory, text)


async def test_no_pin_of_a_forgotten_value_is_made_in_another_session(tmp_path: Path) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        [message_id] = (await memory.record_messages("first", [by_user("Hi! I never eat nuts. Bye!")])).message_ids
        await memory.settled()
        assert (await memory.conversations.stats("first")).total_pins == 1
        clock.advance(60)
        await memory.forget(message_id)
        clock.advance(60)
        await memory.record_messages("second", [by_user("Oh well, I never eat nuts?"), by_assistant("You are.")])
        await memory.record_messages("second", [by_assistant("As you said: I never eat nuts.")])
        await memory.settled()
        assert (await memory.conversations.stats("second")).total_pins == 0
        recorded = await memory.record_messages("second", [by_user("I never eat nuts.")])
        await memory.settled()
        assert recorded.ids_of(Repetition.BROUGHT_BACK) == recorded.message_ids
        assert (await memory.conversations.stats("second")).total_pins == 1


async def test_the_users_word_brings_it_back_and_their_older_word_does_not(tmp_path: Path) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        await forgotten_home(memory, clock)
        older = by_user(HOME, created_at=clock.now_ms() - 3_600_000)
        asked = [by_user("Please forget that I live in Trondheim."), older, by_user("Where is Trondheim?")]
        recorded = await memory.record_messages("second", asked)
        assert [one.repetition for one in recorded.messages] == [None, Repetition.LEFT_OUT, None]
        recorded = await memory.record_messages("second", [by_user(HOME), by_assistant(HOME)])
        assert [one.repetition for one in recorded.messages] == [Repetition.BROUGHT_BACK, None]
        await memory.remember("note", {"text": HOME})
        assert HOME in await found(memory)


async def test_restoring_brings_a_value_back(tmp_path: Path) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        message_id = await forgotten_home(memory, clock)
        await memory.restore(message_id)
        recorded = await memory.record_messages("second", [by_user(HOME, origin=Origin.IMPORT)])
        assert recorded.new_count == 1


async def test_no_writing_path_goes_around(tmp_path: Path) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        await forgotten_home(memory, clock)
        [note] = await memory.remember("note", {"text": "The flat has two rooms."})
        for kind in ("note", "task", "thought"):
            with pytest.raises(Conflict, match="restore"):
                await memory.remember(kind, {"text": HOME})
        with pytest.raises(Conflict, match="restore"):
            await memory.update_memory(note.id, {"text": HOME}, expected_revision=1)
        rooms = " ".join(f"Room {place} has {place} windows." for place in range(200))
        with pytest.raises(Conflict, match="restore"):
            await memory.remember("document", {"source": "a.md", "text": HOME})
        with pytest.raises(Conflict, match="restore"):
            await memory.remember("note", {"text": "A short one.", "title": HOME, "tags": ["a"]})
        answered = [by_user("Where do you live, and why is that?"), by_assistant("In a computer, I think.")]
        [_, answer_id] = (await memory.record_messages("first", answered)).message_ids
        with pytest.raises(Conflict, match="restore"):
            await memory.record_feedback(answer_id, "up", HOME)
        await memory.record_feedback(answer_id, "up", "Right.")
        parts = await memory.remember("document", {"source": "b.md", "text": f"{rooms}\n\n# Home\n\n{HOME}"})
        assert "Room 0 has" in parts[0].text
        assert "Trondheim" not in " ".join(part.text for part in parts)
        person = Editor(EditorType.HUMAN, "ana")
        await memory.update_memory(note.id, {"text": HOME}, expected_revision=1, editor=person)
        assert HOME in await found(memory)


async def test_a_purged_value_is_in_no_file_even_if_the_assistant_repeats_it(tmp_path: Path) -> None:
    clock, folder = ScriptedClock(), tmp_path / "data"
    async with open_memory(folder / "memory.db", clock=clock) as memory:
        [message_id] = (await memory.record_messages("first", [by_user(HOME)])).message_ids
        await memory.settled()
        await memory.purge([message_id])
        clock.advance(60)
        said = [by_assistant("I live in TRONDHEIM"), by_user(HOME, origin=Origin.IMPORT), by_assistant("Hello.")]
        recorded = await memory.record_messages("second", said)
        await memory.settled()
        assert (recorded.new_count, recorded.left_out_count) == (1, 2)
        assert holding(folder, "trondheim") == []
    assert holding(folder, "trondheim") == []


async def test_what_is_kept_of_a_forgotten_identifier_cannot_be_read(tmp_path: Path) -> None:
    clock, folder = ScriptedClock(), tmp_path / "data"
    async with open_memory(folder / "memory.db", clock=clock) as memory:
        await memory.record_messages("first", [by_user("My locker is ZX-4471-QP.")])
        request = ForgetRequest(identifier="zx4471qp", is_purge=True)
        preview = await memory.records.preview_forgetting(request)
        assert preview.token
        await memory.records.purge_previewed(request, preview.token)
        clock.advance(60)
        recorded = await memory.record_messages("second", [by_assistant("Your locker: ZX 4471 QP.")])
        assert recorded.left_out_count in (0, 1)
    assert [holding(folder, word) for word in ("zx-4471", "zx4471qp")] == [[], []]


@pytest.mark.parametrize(
    ("of", "text", "is_known"), [("alpha", HOME, False), ("beta", HOME, True), (None, HOME, False)]
)
async def test_a_value_of_one_project_is_forgotten_there_and_in_what_is_personal(
    tmp_path: Path, of: str | None, text: str, is_known: bool
) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        alpha = await memory.in_project("alpha")
        await forgotten_home(alpha, clock)
        other = await memory.in_project(of or "personal")
        recorded = await other.record_messages("second", [by_user(text, origin=Origin.IMPORT)])
        assert recorded.new_count == int(is_known)


async def test_tags_and_speakers_are_of_the_subject_too(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        await memory.record_messages("s", [by_user("I play the oboe.", name="Mia"), by_user("So do I.", name="Leo")])
        [task] = await memory.remember("task", {"text": "Buy a card.", "tags": ["mia"]})
        preview = await memory.records.preview_forgetting(ForgetRequest(about="Mia"))
        assert [one.id for one in preview.records] == ["msg_1", task.id]


async def test_everything_about_a_subject_is_shown_first_and_then_forgotten(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as host:
        texts = ["Mia plays the oboe.", "We fly to Miami.", "Mia's brother is Leo.", "The oboe is old."]
        await host.call("record_messages", session_id="s", messages=[{"role": "user", "text": one} for one in texts])
        preview = await host.facts("forget", about="everything about Mia")
        assert (preview["found"], preview["count"]) == (["msg_1", "msg_3"], 2)
        assert (await host.facts("search_memory", query="Mia oboe"))["hits"]

        other = await host.facts("forget", about="oboe")
        assert other["found"] == ["msg_1", "msg_4"]
        wrong = await host.text("forget", about="everything about Mia", token=other["token"])
        assert wrong.startswith("That token is of another list. Nothing was changed yet.")
        assert preview["token"] in wrong

        await host.call("record_messages", session_id="s", messages=[{"role": "user", "text": "Mia is nine."}])
        changed = await host.facts("forget", about="everything about Mia", token=preview["token"])
        assert (changed["found"], changed["forgotten"]) == (["msg_1", "msg_3", "msg_5"], [])
        done = await host.facts("forget", about="everything about Mia", token=changed["token"])
        assert done["forgotten"] == ["msg_1", "msg_3", "msg_5"]
        left = await host.facts("forget", about="Mia")
        assert left["found"] == []
        assert "We fly to Miami." in await host.text("search_memory", query="where do we fly to, Miami?")


async def test_forgetting_many_names_what_was_made_from_the_last_of_them(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as host:
        said = [{"role": "user", "text": f"Beetle {place} is green."} for place in range(12)]
        ids = (await host.facts("record_messages", session_id="s", messages=said))["message_ids"]
        fields = {"session_id": "s", "content": "What the meadow has", "source_message_id": ids[-1]}
        pin = (await host.facts("create_pin", **fields))["pin"]["id"]
        done = await host.facts("forget", record_ids=ids)
        assert [(one["record_id"], one["made_from"]) for one in done["still_says"]] == [(pin, ids[-1])]


async def test_what_was_made_from_hundreds_of_records_is_found_in_batches(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        recorded = await memory.record_messages("s", [by_user(f"Beetle {place} is green.") for place in range(201)])
        first, last = recorded.message_ids[0], recorded.message_ids[-1]
        pins = [
            (await memory.create_pin(CreatePinRequest("s", f"What {one} is", source_message_id=one))).id
            for one in (first, last)
        ]
        await memory.settled()
        summaries = await memory.records.all(frozenset({RecordType.SUMMARY}))
        found = await memory.records.derived_from_all([await memory.records.get(one) for one in recorded.message_ids])
        assert [(pin.id, source) for pin, source in found.pins] == list(zip(pins, (first, last), strict=True))
        assert sorted(found.summary_ids) == sorted(one.id for one in summaries) != []


async def test_an_identifier_is_found_however_it_is_written(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as host:
        texts = [
            "The badge is 471-22-9036.",
            "badge 471229036, again",
            "Badge 471 22 9036!",
            "The other badge is 471-22-90361.",
            "And 1-471-22-9036-5 is a third.",
        ]
        await host.call("record_messages", session_id="s", messages=[{"role": "user", "text": one} for one in texts])
        preview = await host.facts("forget", identifier="471 229036")
        assert preview["found"] == ["msg_1", "msg_2", "msg_3"]
        await host.call("forget", identifier="471 229036", token=preview["token"])
        said = [{"role": "assistant", "text": "I see, so 471/22/9036 or 471-229-036 it is."}]
        recorded = await host.facts("record_messages", session_id="s", messages=said)
        assert recorded["hidden"] == recorded["message_ids"]


async def test_a_path_or_an_address_is_found_as_it_is_written(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as host:
        texts = [
            "The hook is api.acme.example/v2/events.",
            "We call API.acme.example/v2/events each night.",
            "The old one was api.acme.example/v2/events/all.",
            "Its host is api.acme.example.",
        ]
        await host.call("record_messages", session_id="s", messages=[{"role": "user", "text": one} for one in texts])
        preview = await host.facts("forget", identifier="api.acme.example/v2/events", purge=True)
        assert preview["found"] == ["msg_1", "msg_2"]


async def test_what_names_nothing_or_everything_is_refused_in_words(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as host:
        texts = [f"The oboe lesson {place} was on a Monday." for place in range(30)]
        await host.call("record_messages", session_id="s", messages=[{"role": "user", "text": one} for one in texts])
        assert "matches 30 records of 30" in await host.refusal("forget", about="oboe")
        assert "names no subject" in await host.refusal("forget", about="Tell me about people")
        assert "names no subject" in await host.refusal("forget", about="everything")
        assert "is not one" in await host.refusal("forget", identifier="the red book on Monday")
        assert "not both" in await host.refusal("forget", about="oboe", record_ids=["msg_1"])
        assert "send record_ids, about or identifier" in await host.refusal("forget")
        assert "token belongs to" in await host.refusal("forget", record_ids=["msg_1"], token=WRONG)
        assert "ask the user first" not in await host.text("forget", about="lesson 7", purge=True)
        assert (await host.facts("forget", about="lesson 7"))["count"] == 1


def test_a_token_of_one_process_is_good_in_the_next(tmp_path: Path) -> None:
    said = [{"role": "user", "text": one} for one in ("Mia plays the oboe.", "We fly to Miami.")]
    with wire.served(tmp_path / "memory.db") as host:
        host.send(wire.call(1, "record_messages", session_id="s", messages=said))
        assert not host.answer(1)["result"].get("isError")
        host.send(wire.call(2, "forget", about="Mia", purge=True))
        preview = host.answer(2)["result"]["structuredContent"]
        assert preview["found"] == ["msg_1"]
    with wire.served(tmp_path / "memory.db") as host:
        host.send(wire.call(1, "forget", about="Mia", purge=True, token=preview["token"]))
        assert "ask the user first" in host.answer(1)["result"]["content"][0]["text"]
        host.send(wire.call(2, "forget", about="Mia", token=preview["token"], confirmed=True))
        assert host.answer(2)["result"]["structuredContent"]["token"] != preview["token"]
        host.send(wire.call(3, "forget", about="Mia", purge=True, token=preview["token"], confirmed=True))
        assert host.answer(3)["result"]["structuredContent"]["erased"] == ["msg_1"]
    assert holding(tmp_path, "oboe") == []


@pytest.mark.parametrize("erase", [True, False])
async def test_the_user_is_asked_before_a_subject_is_erased(tmp_path: Path, era: str, erase: bool) -> None:
    questions: list[str] = []

    async def person(_context: Any, asked: Any) -> ElicitResult:
        questions.append(asked.message)
        return ElicitResult(action="accept", content={"erase": erase})

    server = build_server(lambda: open_memory(tmp_path / "memory.db"))
    async with Client(server, mode=era, elicitation_callback=person) as client:
        said = [{"role": "user", "text": "Mia plays the oboe."}]
        await client.call_tool("record_messages", {"session_id": "s", "messages": said})
        preview = await client.call_tool("forget", {"about": "Mia", "purge": True})
        assert preview.structured_content is not None
        assert questions == []
        token = preview.structured_content["token"]
        await client.call_tool("forget", {"about": "Mia", "purge": True, "token": WRONG})
        assert questions == []
        done = await client.call_tool("forget", {"about": "Mia", "purge": True, "token": token})
        assert done.structured_content is not None
        assert done.structured_content["erased"] == (["msg_1"] if erase else [])
        assert questions == ["Erase this from the memory for good?\n- msg_1: 'Mia plays the oboe.'"]


async def test_the_reply_says_what_became_of_repetitions(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as host:
        await host.call("record_messages", session_id="s", messages=[{"role": "user", "text": HOME}])
        await host.settled()
        await host.call("forget", record_ids=["msg_1"])
        said = [
            {"role": "assistant", "text": HOME},
            {"role": "user", "text": HOME, "origin": "import"},
            {"role": "user", "text": HOME, "created_at": "2020-05-01"},
        ]
        recorded = await host.facts("record_messages", session_id="s", messages=said)
        assert (recorded["left_out"], recorded["hidden"], recorded["total_messages"]) == (2, recorded["message_ids"], 0)
        again = await host.facts("record_messages", session_id="s", messages=[{"role": "user", "text": HOME}])
        assert again["brought_back"] == again["message_ids"]
        assert (await host.facts("record_messages", session_id="s", messages=said))["recorded"] == 3
        assert "said again" not in await host.text("remember", type="note", text=HOME)


async def test_a_summary_in_other_words_may_not_repeat_it(tmp_path: Path) -> None:
    clock = ScriptedClock()
    async with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        await forgotten_home(memory, clock)
        with pytest.raises(Conflict, match="forgotten or erased"):
            await memory.conversations.adopt_summary("first", f"They introduced themselves. {HOME}")
        assert await memory.conversations.adopt_summary("first", "They introduced themselves.")


async def test_summaries_of_what_is_about_a_subject_are_rewritten_and_not_forgotten(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        texts = ["Mia plays the oboe.", "We fly to Oslo on May 3.", "The boat is called Nina.", "Mia's brother is Leo."]
        await memory.record_messages("s", [by_user(one) for one in texts])
        [summary] = await memory.conversations.summarize("s")
        assert "Mia" in summary.summary
        request = ForgetRequest(about="Mia")
        preview = await memory.records.preview_forgetting(request)
        assert [one.id for one in preview.records] == ["msg_1", "msg_4"]
        assert preview.token
        await memory.records.forget_previewed(request, preview.token)
        assert "Mia" not in (await memory.records.get(summary.id)).text
        assert "Oslo" in (await memory.records.get(summary.id)).text
        assert (await memory.records.preview_forgetting(request)).token is None


async def test_a_subject_is_forgotten_in_one_project_and_in_what_is_personal(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as host:
        for session, project in (("a", "alpha"), ("b", "beta"), ("c", "personal")):
            said = [{"role": "user", "text": f"The oboe of {session} is old."}]
            await host.call("record_messages", session_id=session, project=project, messages=said)
        for project, found in (
            ("alpha", ["msg_1", "msg_3"]),
            ("personal", ["msg_3"]),
            ("*", ["msg_1", "msg_2", "msg_3"]),
        ):
            assert (await host.facts("forget", about="oboe", project=project))["found"] == found


async def test_no_view_stays_open_while_the_memory_is_read_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:

        def match(page: Any, is_match: Any) -> Any:
            if len(pages) == 1:
                anyio.from_thread.run(memory.record_messages, "s", [NewMessage(Role.USER, "Ann is away.")])
            pages.append(page)
            return matching(page, is_match)

        pages: list[Any] = []
        matching = forgetter._matching
        await memory.record_messages("s", [NewMessage(Role.USER, f"{one} is here.") for one in ("Ann", "Bob", "Eve")])
        monkeypatch.setattr(forgetter, "_PAGE", 2)
        monkeypatch.setattr(forgetter, "_matching", match)
        preview = await memory.records.preview_forgetting(ForgetRequest(about="Ann"))
    assert [one.text for one in preview.records] == ["Ann is here.", "Ann is away."]
