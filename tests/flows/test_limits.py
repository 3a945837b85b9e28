"""What a memory within limits shows, writes and refuses, one thing at a time."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from kalito_mcp.capture.capturer import Capture, report_of_call
from kalito_mcp.capture.captures import Captures
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.erasing import ForgetRequest
from kalito_mcp.domain.finalizing import FinalizeOptions
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.request_keys import request_key
from kalito_mcp.domain.scope import PERSONAL, Limits
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.domain.watching import Watched, WatchedKind
from kalito_mcp.errors import (
    AccessDenied,
    AlreadyTakenIn,
    ClientKeyReused,
    Conflict,
    InvalidInput,
    RecordNotFound,
    SessionNotFound,
)
from kalito_mcp.memory import Memory
from kalito_mcp.runtime.acting import acting_as
from kalito_mcp.runtime.call_keys import once
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database

pytestmark = pytest.mark.anyio
SHOP: Final = Limits(project="shop")
CODER: Final = Limits(agent="coder")


@pytest.fixture
async def ann(tmp_path: Path) -> AsyncIterator[Memory]:
    """All of Ann's memory."""
    async with open_memory(lay_empty_database(tmp_path / "memory.db")) as opened:
        yield opened.of_owner("ann")


async def test_a_folder_named_over_http_is_not_looked_up_on_the_disk_of_the_server(ann: Memory, tmp_path: Path) -> None:
    (tmp_path / "kite" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "kite")
    named = str(tmp_path / "link" / "src")

    async def project_of_a_talk(session: str) -> str | None:
        done = await (await ann.in_project(named)).record_messages(session, [NewMessage(Role.USER, "A kite.")])
        return done.session.project

    assert await project_of_a_talk("here") == str((tmp_path / "kite").resolve())
    with acting_as(Principal("tok_ann", "ann", Permission.WRITE), "record_messages"):
        assert await project_of_a_talk("over HTTP") == named
        with pytest.raises(InvalidInput, match="by its whole path"):
            await ann.in_project("~/kite")


def within(memory: Memory, limits: Limits) -> Memory:
    return memory.of_owner("ann", limits)


async def say(
    memory: Memory, session: str, *texts: str, project: str | None = None, agent: str | None = None
) -> list[str]:
    """Record what a user says, and settle. Returns the ids."""
    narrowed = await memory.in_project(project) if project else memory
    done = await narrowed.record_messages(session, [NewMessage(Role.USER, text) for text in texts], agent_id=agent)
    await memory.settled()
    return done.message_ids


async def note(memory: Memory, text: str, project: str, **fields: object) -> MemoryRecord:
    [made] = await (await memory.in_project(project)).remember("note", {"text": text, **fields})
    return made


async def test_a_context_that_one_owner_has_read_is_not_anothers(ann: Memory) -> None:
    ben = ann.of_owner("ben")
    await say(ann, "trip", "The password of the boat is quince.")
    await say(ben, "trip", "The hut is by the lake.")
    for _ in range(2):
        assert "quince" in (await ann.build_context("trip")).text
        assert "quince" not in (await ben.build_context("trip")).text
        assert "lake" in (await ben.build_context("trip")).text
    with pytest.raises(SessionNotFound):
        await ann.of_owner("carol").build_context("trip")


async def test_a_context_that_was_read_without_limits_is_not_read_within_them(ann: Memory) -> None:
    await say(ann, "beds", "The tulips are red.", project="garden")
    assert "tulips" in (await (await ann.in_project("garden")).build_context("beds")).text
    for limits in (SHOP, CODER):
        with pytest.raises(SessionNotFound, match="no session 'beds'; check the id"):
            await within(ann, limits).build_context("beds")


async def test_a_session_that_is_beyond_limits_is_begun_anew_under_an_id_of_its_own(ann: Memory) -> None:
    await say(ann, "beds", "The tulips are red.", project="garden")
    shop = within(ann, SHOP)
    for asked in ("beds", "never"):
        done = await shop.record_messages(asked, [NewMessage(Role.USER, "The till is open.")])
        assert done.session.id == SHOP.own_session(asked) != asked
        assert (done.session.project, done.total_messages) == ("shop", 1)
        assert (await shop.conversations.stats(asked)).session_id == done.session.id, (
            "the id that was asked for goes on"
        )
        await shop.create_pin(CreatePinRequest(asked, "The till sticks.", scope="session"))
        await shop.remember("task", {"text": "Oil the till."}, session_id=asked)
        assert "The till is open." in (await shop.build_context(asked)).text
        assert (await shop.search_memory(SearchRequest("till"), session_id=asked)).hits
        assert [one.text for one in (await shop.conversations.transcript(asked)).records] == [
            "Oil the till.",
            "The till sticks.",
        ]
        assert (await shop.finalize_session(asked)).session.id == done.session.id
    assert (await ann.conversations.stats("beds")).total_messages == 1
    inside = await say(ann, "counter", "Ten euros.", project="shop")
    again = await shop.record_messages("counter", [NewMessage(Role.USER, "Twelve euros.")])
    assert again.session.id == "counter", "one that is reached keeps its id"
    assert inside
    with pytest.raises(InvalidInput, match="session_id"):
        await shop.record_messages("", [NewMessage(Role.USER, "x")])
    with pytest.raises(InvalidInput, match="secret"):
        await shop.record_messages("ghp_" + "a1B2c3D4e5" * 4, [NewMessage(Role.USER, "x")])


async def test_a_personal_pin_does_not_name_the_session_and_the_message_that_it_came_from(ann: Memory) -> None:
    [said] = await say(ann, "beds", "I am allergic to tulips.", project="garden")
    garden = await ann.in_project("garden")
    pin = await garden.create_pin(
        CreatePinRequest("beds", "Ann is allergic to tulips.", source_message_id=said, scope="person")
    )
    memory = within(ann, SHOP)
    shown = await memory.records.get(pin.id)
    assert (shown.session_id, shown.content.get("source_message_id")) == (None, None)
    everything = [
        await memory.records.get_all(pin.id),
        await memory.records.history(pin.id),
        await memory.records.version(pin.id, 1),
        (await memory.search_memory(SearchRequest("allergic"))).hits,
        await memory.records.profile(),
        (await memory.build_context(query="allergic")).to_dict(),
        await memory.forget(pin.id),
        await memory.restore(pin.id),
        await memory.update_memory(pin.id, {"text": "Ann sneezes at tulips."}, expected_revision=3),
        await memory.records.history(pin.id),
        await memory.records.revert(pin.id, 1),
    ]
    assert "allergic" in repr(everything)
    assert not [one for one in map(repr, everything) if "beds" in one or said in one]
    kept = await ann.records.get(pin.id)
    assert (kept.session_id, kept.content["source_message_id"]) == ("beds", said), "what is not shown is kept"


async def test_causes_and_effects_beyond_limits_are_not_named_and_stay(ann: Memory) -> None:
    beds = await note(ann, "The beds are dry.", "garden")
    mine = await note(ann, "Water costs two euros.", PERSONAL, caused_by=beds.id)
    effect = await note(ann, "Buy a hose.", "garden", caused_by=mine.id)
    shop = within(ann, SHOP)
    shown = await shop.records.get(mine.id)
    assert ("caused_by" in shown.content, shown.led_to) == (False, ())
    changed = await shop.update_memory(mine.id, {"text": "Water costs three euros."}, expected_revision=1)
    assert ("caused_by" in changed.content, changed.led_to) == (False, ())
    stored = await ann.records.get(mine.id)
    assert (stored.content["caused_by"], stored.led_to) == (beds.id, (effect.id,))
    file = await shop.files.write("/memories/till.md", lambda _tree, _text: "It sticks.")
    await note(ann, "Oil it.", "garden", caused_by=file.id)
    _, looked_at = await shop.files.look("/memories/till.md")
    written = await shop.files.write("/memories/till.md", lambda _tree, _text: "It sticks again.")
    renamed = await shop.files.rename(lambda _: {"/memories/till.md": "/memories/desk.md"})
    deleted = await shop.files.delete(lambda _: ["/memories/desk.md"])
    assert [one and one.led_to for one in (looked_at, written, *renamed, *deleted)] == [()] * 4
    for cause in (beds.id, "note_never"):
        with pytest.raises(RecordNotFound, match=f"no record '{cause}' for caused_by; send the id of a record"):
            await shop.remember("note", {"text": "Pay it.", "caused_by": cause})
        with pytest.raises(RecordNotFound, match=f"no record '{cause}' for caused_by; send the id of a record"):
            await shop.update_memory(mine.id, {"caused_by": cause}, expected_revision=2)


async def test_what_a_record_is_related_to_beyond_limits_is_not_named_and_stays(ann: Memory) -> None:
    beds, till = await note(ann, "The beds are dry.", "garden"), await note(ann, "The till sticks.", "shop")
    manual = {"text": "Oil it. " * 900, "source": "till.pdf"}
    parts = await (await ann.in_project("shop")).remember("document", manual)
    book = str(parts[0].content["document_id"])
    assert len(parts) > 1
    personal = await ann.in_project(PERSONAL)
    all_of_them = [beds.id, till.id, book]
    [one] = await personal.remember("thought", {"text": "Both need care.", "related_to": all_of_them})
    sent = NewMessage(Role.ASSISTANT, "A dry bed.", details={"vision_response_for": beds.id})
    [said] = (await personal.record_messages("pictures", [sent])).message_ids
    shop = within(ann, SHOP)
    await shop.update_memory(one.id, {"text": "Both need oil."}, expected_revision=1)
    for shown in (await shop.records.get(one.id), await shop.records.version(one.id, 1)):
        assert shown.content["related_to"] == [till.id, book]
    assert "vision_response_for" not in (await shop.records.get(said)).content
    assert beds.id not in repr([await shop.records.history(one.id), await shop.records.diff(one.id, 1, 2)])
    assert (await ann.records.get(one.id)).content["related_to"] == all_of_them
    assert (await ann.records.get(said)).content["vision_response_for"] == beds.id


async def test_the_history_of_a_record_does_not_name_the_project_that_it_came_from(ann: Memory) -> None:
    one = await note(ann, "The hose is green.", "garden")
    await ann.records.move(one.id, "shop")
    shop = within(ann, SHOP)
    seen = [
        await shop.records.history(one.id),
        await shop.records.diff(one.id, 1, 2),
        await shop.records.version(one.id, 1),
    ]
    assert "garden" not in repr(seen)
    assert "garden" in repr(await ann.records.history(one.id))
    with pytest.raises(AccessDenied, match="beyond what this token reaches; nothing was written"):
        await shop.records.revert(one.id, 1)
    assert (await ann.records.get(one.id)).project == "shop"


async def test_nothing_moves_beyond_limits(ann: Memory) -> None:
    await say(ann, "counter", "Ten euros.", project="shop")
    one = await note(ann, "The till sticks.", "shop")
    shop = within(ann, SHOP)
    for target in ("garden", "/srv/garden", "never"):
        for move in (
            lambda target=target: shop.conversations.move("counter", target),
            lambda target=target: shop.records.move(one.id, target),
            lambda target=target: shop.update_memory(one.id, {"project": target}, expected_revision=1),
            lambda target=target: shop.in_project(target),
            lambda target=target: shop.projects.named(target),
        ):
            with pytest.raises(AccessDenied, match="this token reaches only the project 'shop' and what is personal"):
                await move()
    with pytest.raises(AccessDenied, match="only the project 'shop'"):
        await shop.in_project(None)
    pin = await (await ann.in_project("garden")).create_pin(CreatePinRequest("beds", "Red tulips.", scope="person"))
    for scope in ("project", None):
        with pytest.raises(AccessDenied, match="beyond what this token reaches"):
            await shop.update_memory(pin.id, {"scope": scope}, expected_revision=1)
    with pytest.raises(Conflict, match="belongs to a session, and so to its project") as caught:
        await shop.records.move(pin.id, "shop")
    assert "beds" not in str(caught.value)
    assert (await shop.conversations.move("counter", None)).project is None
    assert (await shop.conversations.move("counter", "shop")).project == "shop"


async def test_another_agent_is_refused_in_the_words_for_none(ann: Memory) -> None:
    await say(ann, "plan", "The sprint is long.", agent="coder")
    await say(ann, "menu", "The soup is hot.", agent="cook")
    coder = within(ann, CODER)
    for agent in ("cook", "never", "default"):
        for verb in (
            lambda agent=agent: coder.search_memory(SearchRequest("soup"), agent_id=agent),
            lambda agent=agent: coder.build_context(query="soup", agent_id=agent),
            lambda agent=agent: coder.record_messages("x", [NewMessage(Role.USER, "y")], agent_id=agent),
            lambda agent=agent: coder.remember("note", {"text": "y"}, agent_id=agent),
            lambda agent=agent: coder.past_answers("soup?", agent_id=agent),
            lambda agent=agent: coder.conversations.graph_overview(agent_id=agent),
            lambda agent=agent: coder.records.profile(agent_id=agent),
            lambda agent=agent: coder.records.tasks(agent_id=agent),
            lambda agent=agent: coder.conversations.recent(agent_id=agent),
            lambda agent=agent: coder.records.all(frozenset(), agent_id=agent),
            lambda agent=agent: coder.records.preview_forgetting(ForgetRequest("soup"), agent_id=agent),
        ):
            with pytest.raises(AccessDenied, match=r"^this token reaches only the agent 'coder'; leave agent_id out$"):
                await verb()
    [made] = await coder.remember("note", {"text": "The sprint ends."})
    assert made.agent_id == "coder", "without a name it is the one of the limits"
    assert [one.id for one in await coder.conversations.recent()] == ["plan"]
    assert list(await coder.conversations.agents()) == ["coder"]


async def test_the_order_of_agents_does_not_tell_which_of_them_were_there_before(ann: Memory) -> None:
    await say(ann, "beds", "The tulips are red.", project="garden", agent="cook")
    lone, shop = ann.of_owner("carol", SHOP), within(ann, SHOP)
    for memory in (shop, lone):
        for agent in ("baker", "cook"):
            await say(memory, f"plan of {agent}", "Ten euros.", agent=agent)
    assert list(await shop.conversations.agents()) == list(await lone.conversations.agents())
    assert list(await ann.conversations.agents()) == ["baker", "cook"], "newest first"


async def test_a_mistyped_name_is_not_corrected_to_one_beyond_limits(ann: Memory) -> None:
    await say(ann, "flowerbeds", "The tulips are red.", project="flowergarden", agent="gardener")
    await say(ann, "counter", "Ten euros.", project="shop")
    with pytest.raises(SessionNotFound, match="did you mean 'flowerbeds'"):
        await ann.conversations.stats("flowerbedz")
    shop = within(ann, SHOP)
    with pytest.raises(SessionNotFound, match="no session 'flowerbedz'; check the id"):
        await shop.conversations.stats("flowerbedz")
    with pytest.raises(InvalidInput, match="did you mean 'gardener'"):
        await ann.search_memory(SearchRequest("tulips"), agent_id="gardenor")
    assert (await shop.search_memory(SearchRequest("tulips"), agent_id="gardenor")).hits == ()
    # An agent with nothing in the shop is as unknown as one that never was, also if its name is like a known one.
    await say(ann, "soil", "It is dry.", project="flowergarden", agent="coders")
    await say(shop, "plan", "The sprint is long.", agent="coder")
    for agent in ("coders", "codera"):
        with pytest.raises(InvalidInput, match=f"no agent '{agent}'; did you mean 'coder'"):
            await shop.search_memory(SearchRequest("soil"), agent_id=agent)
    with pytest.raises(InvalidInput, match="did you mean 'flowergarden'"):
        await ann.in_project("flowergarten")
    with pytest.raises(AccessDenied):
        await shop.in_project("flowergarten")
    assert (await within(ann, CODER).in_project("flowergarten")).place.limits == CODER


async def test_words_beyond_limits_neither_correct_nor_weigh_a_search(ann: Memory) -> None:
    for number in range(8):
        await say(ann, f"beds {number}", f"The quetzal {number} sings in the hedge.", project="garden")
    await say(ann, "counter", "The parrot sings.", project="shop")
    lone = ann.of_owner("carol", SHOP)
    await lone.record_messages("counter", [NewMessage(Role.USER, "The parrot sings.")])
    shop = within(ann, SHOP)
    for query in ("quetzel", "quetzal sings", "does the quetzal or the parrot sing?", "hedge parrot"):
        ours, theirs = [await memory.search_memory(SearchRequest(query, explain=True)) for memory in (shop, lone)]
        seen = [(page.note, [(hit.score, hit.why, hit.parts) for hit in page.hits]) for page in (ours, theirs)]
        assert seen[0] == seen[1], "as if the garden had never been"


@pytest.mark.parametrize("beyond", ["quetzil", "quetzol"])
async def test_how_often_a_word_is_said_beyond_limits_does_not_decide_what_a_mistyped_one_means(
    ann: Memory, beyond: str
) -> None:
    """Else who may write could find out which words are said there, and how often."""
    for number in range(8):
        await say(ann, f"beds {number}", f"The {beyond} {number} hides in the hedge.", project="garden")
    lone, shop = ann.of_owner("carol", SHOP), within(ann, SHOP)
    for memory in (shop, lone):
        await say(memory, "counter", "The quetzal sings.", "The quetzil hums.")
    for query in ("quetzel", "which quetzel sings or hums?"):
        found = [await memory.search_memory(SearchRequest(query, explain=True)) for memory in (shop, lone)]
        ours, theirs = [[(hit.text, hit.score, hit.why) for hit in page.hits] for page in found]
        assert ours == theirs != []


async def test_what_was_forgotten_or_erased_beyond_limits_is_unknown(ann: Memory) -> None:
    secrets = {"garden": "The safe is behind the tulips.", "yard": "The key is below the pot."}
    turns = {place: NewMessage(Role.USER, text, client_key=place, created_at=1_000) for place, text in secrets.items()}
    for project, turn in turns.items():
        [said] = (await (await ann.in_project(project)).record_messages("of " + project, [turn])).message_ids
        await (ann.forget(said) if project == "yard" else ann.purge([said]))
    shop = within(ann, SHOP)
    for session in ("counter", "of me"):
        memory = await shop.in_project("shop" if session == "counter" else PERSONAL)
        done = await memory.record_messages(session, [*turns.values(), NewMessage(Role.ASSISTANT, secrets["yard"])])
        assert (done.new_count, done.erased_count, [one.repetition for one in done.messages]) == (3, 0, [None] * 3)
    secret = secrets["garden"]
    [kept] = await shop.remember("note", {"text": secret})
    assert kept.id
    for record_id in ("msg_1", "msg_99999"):
        with pytest.raises(RecordNotFound, match=f"no record '{record_id}'; use an id that a search returned"):
            await shop.purge([record_id])
    with pytest.raises(Conflict, match="was forgotten or erased"):
        await (await ann.in_project("garden")).remember("note", {"text": secret})


@pytest.mark.parametrize("key", ["k", request_key("chosen by a program", b"a request")], ids=["plain", "of a request"])
async def test_a_key_that_was_used_beyond_limits_is_new(ann: Memory, key: str) -> None:
    garden, shop = await ann.in_project("garden"), within(ann, SHOP)
    [theirs] = await garden.remember("task", {"text": "Water the beds."}, client_key=key)
    [ours] = await shop.remember("task", {"text": "Water the beds."}, client_key=key)
    assert (ours.id != theirs.id, ours.project) == (True, "shop")
    assert [one.id for one in await shop.remember("task", {"text": "Water the beds."}, client_key=key)] == [ours.id]
    with pytest.raises(ClientKeyReused):
        other = key if key == "k" else request_key("chosen by a program", b"another request")
        await shop.remember("task", {"text": "Sweep."}, client_key=other)
    assert [one.id for one in await garden.remember("task", {"text": "Water the beds."}, client_key=key)] == [theirs.id]


@pytest.mark.parametrize("verb", ["remember", "record_messages"])
async def test_a_call_that_was_taken_in_for_another_owner_or_beyond_limits_is_new(ann: Memory, verb: str) -> None:
    async def write(memory: Memory) -> None:
        if verb == "remember":
            await memory.remember("note", {"text": "Ten euros."})
        else:
            await memory.record_messages("counter", [NewMessage(Role.USER, "Ten euros.")])

    callers = [("ann", Limits(project="garden")), ("ann", SHOP), ("ann", Limits()), ("ben", Limits())]
    for owner, limits in callers:
        memory = ann.of_owner(owner, limits)
        with acting_as(Principal("tok", owner, Permission.WRITE, limits), verb):
            await memory.imports.check_not_taken_in("call 1")
            with once("call 1"):
                await write(memory)
            with pytest.raises(AlreadyTakenIn):
                await memory.imports.check_not_taken_in("call 1")
            with once("call 1"), pytest.raises(AlreadyTakenIn):
                await write(memory)


async def test_pages_and_messages_are_those_that_are_reached(ann: Memory) -> None:
    beds = await note(ann, "The beds are dry.", "garden")
    await note(ann, "Water costs two euros.", PERSONAL, caused_by=beds.id)
    await say(ann, "beds", "The tulips are red.", project="garden")
    shop = within(ann, SHOP)
    assert [one.content.get("caused_by") for one in await shop.records.page(frozenset())] == [None]
    with pytest.raises(RecordNotFound, match="to continue after"):
        await shop.records.page(frozenset(), after=beds.id)
    with pytest.raises(SessionNotFound):
        await shop.conversations.messages("beds", last_seq=9)
    await say(shop, "beds", "Ten euros.")
    _, said = await shop.conversations.messages("beds", last_seq=9)
    assert [one.text for one in said] == ["Ten euros."]
    counted = await shop.conversations.totals()
    assert (counted["sessions"], counted["messages"], counted["notes"]) == (1, 1, 1)


async def test_the_graph_of_an_agent_is_beyond_a_limit_to_a_project(ann: Memory) -> None:
    garden = await ann.in_project("garden")
    turns = [NewMessage(Role.USER, "Which tulips are red?"), NewMessage(Role.ASSISTANT, "Those by the gate are red.")]
    await garden.record_messages("beds", turns)
    await ann.settled()
    assert (await garden.finalize_session("beds")).promotion is not None
    query = next(iter((await ann.orchestrator().get_agent_store()).nodes()))
    shop = within(ann, SHOP)
    await say(shop, "counter", "Ten euros.")
    assert await shop.past_answers("Which tulips are red?") == []
    for target in (query.id, "query_never"):
        with pytest.raises(RecordNotFound, match=f"'{target}' is not a question or answer in this graph"):
            await shop.record_feedback(target, "up", session_id="counter")
        with pytest.raises(RecordNotFound, match=f"'{target}' is not a question or answer in this graph"):
            await shop.record_feedback(target, "up")
    with pytest.raises(AccessDenied, match="the graph of an agent covers the whole memory"):
        await shop.conversations.graph_overview()
    await shop.record_messages("counter", turns)
    closed = await shop.finalize_session("counter")
    assert (closed.promotion, closed.snapshot) == (None, None), "nor does it learn that the question was known"
    preview = await shop.finalize_session("counter", FinalizeOptions(dry_run=True))
    assert preview.promotion is None
    assert (await within(ann, Limits(agent="default")).conversations.graph_overview())["nodes"] > 0


async def test_what_is_of_the_whole_memory_needs_no_limits(ann: Memory) -> None:
    await say(ann, "counter", "Ten euros.", project="shop")
    for limits in (SHOP, CODER):
        memory = within(ann, limits)

        async def archived(memory: Memory = memory) -> None:
            async with memory.archive.reading(Selection()):
                pass

        async def orchestrated(memory: Memory = memory) -> None:
            memory.orchestrator()

        for verb in (
            archived,
            orchestrated,
            lambda memory=memory: memory.projects.rename("shop", "store"),
            lambda memory=memory: memory.archive.restore([]),
            lambda memory=memory: memory.imports.files_read("codex"),
            lambda memory=memory: memory.access.tokens(),
            lambda memory=memory: memory.access.create_token(Permission.READ),
            lambda memory=memory: memory.access.revoke_token("tok_1"),
            lambda memory=memory: memory.access.audit(),
            lambda memory=memory: memory.access.check_audit(),
        ):
            with pytest.raises(AccessDenied, match="covers the whole memory; use a token without an agent or project"):
                await verb()
        with pytest.raises(AccessDenied, match="a snapshot covers the whole memory"):
            await memory.finalize_session("counter", FinalizeOptions(checkpoint_name="mine"))


async def test_a_purge_within_limits_erases_there_and_names_no_snapshot(ann: Memory) -> None:
    text = "The crate is vetiver-4417."
    ids = {project: await say(ann, project, text, project=project) for project in ("shop", "garden")}
    await (await ann.in_project("garden")).finalize_session("garden")
    shop = within(ann, SHOP)
    request = ForgetRequest(identifier="vetiver-4417", is_purge=True)
    preview = await shop.records.preview_forgetting(request)
    assert [one.id for one in preview.records] == ids["shop"]
    assert preview.token is not None
    report = await shop.records.purge_previewed(request, preview.token)
    assert set(ids["shop"]) <= set(report.erased)
    assert not [one for one in report.rewritten if "snapshot" in one]
    assert "4417" in (await ann.records.get(ids["garden"][0])).text
    with pytest.raises(Conflict, match="this token is for an older list"):
        everything = await ann.records.preview_forgetting(request)
        await shop.records.purge_previewed(request, everything.token or "")


async def test_a_cursor_of_one_caller_is_not_anothers(ann: Memory) -> None:
    for number in range(4):
        await say(ann, f"counter {number}", f"The till {number} is open.", project="shop")
    memories = [await ann.in_project("shop"), within(ann, SHOP), await ann.of_owner("ben").in_project("shop")]
    cursor = (await memories[0].search_memory(SearchRequest("till", k=1))).next_cursor
    assert cursor
    for memory in memories[1:]:
        with pytest.raises(InvalidInput, match="cursor belongs to another search"):
            await memory.search_memory(SearchRequest("till", k=1, cursor=cursor))


async def test_what_is_watched_within_limits_changes_only_there(ann: Memory) -> None:
    one = await note(ann, "Water costs two euros.", PERSONAL)
    await say(ann, "beds", "The tulips are red.", project="garden")
    shop = within(ann, SHOP)
    await shop.record_messages("beds", [NewMessage(Role.USER, "Ten euros.")])
    await ann.settled()
    watched = [Watched(WatchedKind.SESSION, "beds"), Watched(WatchedKind.RECORD, one.id), Watched(WatchedKind.SESSIONS)]
    before = await shop.changes.versions(watched)
    assert all(before.values())
    await say(ann, "beds", "They are yellow.", project="garden")
    await note(ann, "Buy a hose.", "garden", caused_by=one.id)
    assert await shop.changes.versions(watched) == before
    await shop.record_messages("beds", [NewMessage(Role.USER, "Eleven euros.")])
    after = await shop.changes.versions(watched)
    assert after[watched[0]] != before[watched[0]]


async def test_hooks_of_two_callers_with_one_name_for_their_conversations_stay_apart(ann: Memory) -> None:
    principals = [Principal("a", "ann"), Principal("b", "ben"), Principal("c", "ann", limits=SHOP)]

    async def memory() -> Memory:
        return ann

    captures = Captures(Capture(memory), memory)
    assert captures.of(None) is captures.host
    assert len({captures.of(one) for one in principals}) == len(principals)
    assert captures.of(Principal("other token", "ann")) is captures.of(principals[0])
    for one in principals:
        theirs = ann.of_owner(one.owner, one.limits)

        async def opened(theirs: Memory = theirs) -> Memory:
            return theirs

        capture = Captures(Capture(opened), opened).of(one)
        with acting_as(one, "hook_event"):
            for event, said in (("UserPromptSubmit", {"prompt": f"I am {one.id}."}), ("Stop", {"text": "Hello."})):
                call = {"host": "claude-code", "event": event, "session_id": "chat", "prompt_id": one.id, **said}
                call |= {"cwd": "/srv/garden"} if one.id == "a" else {}
                await capture.take(report_of_call(call))
    assert (await (await ann.in_project("/srv/garden")).conversations.stats("chat")).total_messages == 2
    assert (await ann.of_owner("ben").conversations.stats("chat")).total_messages == 2
    within_shop = await within(ann, SHOP).conversations.get("chat")
    assert within_shop is not None
    assert (within_shop.project, within_shop.message_count) == ("shop", 2)
