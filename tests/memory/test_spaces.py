"""Spaces: who shares what with whom, what each role may do, and what follows a change of the record that was shared."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp import CreatePinRequest, Memory, NewMessage, open_memory
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.memory_records import Editor, EditorType, MemoryRecord
from kalito_mcp.domain.records import Origin, Reach, short_record_id
from kalito_mcp.domain.records import Role as Sender
from kalito_mcp.domain.scope import Limits
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.domain.spaces import Role
from kalito_mcp.domain.statements import Standing, Subject
from kalito_mcp.errors import AccessDenied, Conflict, InvalidInput, NotFound, RecordErased, RecordNotFound
from kalito_mcp.memory.sharing import Sharing
from kalito_mcp.runtime.database_address import DatabaseAddress, ServerAddress
from tests.postgres import OWNER, empty_database, shared_server
from tests.scripted import CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio
RULE = "We deploy to production only on Tuesdays."
NEW_RULE = "We deploy to production on Tuesdays and Thursdays."


@pytest.fixture(params=["file", "postgres"])
async def memory(request: pytest.FixtureRequest, database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    """A memory with the space `team`: ann and ben write there, rae reads, cora is its curator. dan is in none."""
    here = {"clock": clock, "ids": CountedIds()}
    async with AsyncExitStack() as until_end:
        if request.param == "file":
            opening = open_memory(database, **here)
        else:
            server, name = shared_server(), await until_end.enter_async_context(empty_database())
            address = DatabaseAddress(database, ServerAddress(server.url(name), server.url(name, OWNER)))
            opening = open_memory(None, replace(Settings(), database=address), **here)
        opened = await until_end.enter_async_context(opening)
        await opened.spaces.create("team")
        for user, role in (("ann", Role.WRITER), ("ben", Role.WRITER), ("rae", Role.READER), ("cora", Role.CURATOR)):
            await opened.spaces.set_member("team", user, role)
        yield opened


async def known_to(memory: Memory, user: str, *, project: str | None = None) -> list[tuple[str, str | None]]:
    """What the context of a new conversation tells somebody, with the space that it is from."""
    theirs = await memory.of_owner(user).in_project(project)
    context = await theirs.build_context("new", query="When do we deploy to production?")
    return [(one.text, one.space) for one in context.known]


async def found_by(memory: Memory, user: str, query: str = "deploy to production") -> list[tuple[str, str | None]]:
    page = await memory.of_owner(user).search_memory(query)
    return [(one.text, one.space) for one in page.hits]


async def shared(memory: Memory, user: str = "ann", text: str = RULE) -> tuple[str, str]:
    """The id of a pin of somebody, and of its copy in the space."""
    theirs = memory.of_owner(user)
    pin = await theirs.create_pin(CreatePinRequest(None, text, scope=Reach.PERSON))
    copy, noted = await theirs.spaces.share(pin.id, editor=Editor(EditorType.HUMAN, "terminal"))
    assert (noted.space, noted.user, noted.source_id, noted.record_id) == ("team", user, pin.id, copy.id)
    return pin.id, copy.id


async def test_what_is_shared_every_member_s_next_conversation_knows_and_finds(memory: Memory) -> None:
    assert await known_to(memory, "ben") == []
    await shared(memory)
    for member in ("ben", "rae", "cora"):
        assert await known_to(memory, member) == [(RULE, "team")]
        assert await found_by(memory, member) == [(RULE, "team")]
        [line] = (await memory.of_owner(member).records.profile()).lines
        assert (line.record.text, line.record.space) == (RULE, "team")
        context = await memory.of_owner(member).build_context("new", query="When do we deploy?")
        assert f'- shared in "team" by "ann", noted by the assistant: {RULE}' in context.text
    assert await known_to(memory, "dan") == []
    assert await found_by(memory, "dan") == []


async def test_its_author_finds_it_once(memory: Memory) -> None:
    pin, copy = await shared(memory)
    assert await known_to(memory, "ann") == [(RULE, None)]
    [hit] = (await memory.of_owner("ann").search_memory("deploy")).hits
    assert (hit.record_id, hit.same) == (pin, (copy,))


async def test_pages_of_a_search_show_each_hit_of_both_memories_once(memory: Memory) -> None:
    ben = memory.of_owner("ben")
    for number in range(7):
        await shared(memory, text=f"The deploy key number {number} is kept in drawer {number}.")
        await ben.create_pin(CreatePinRequest(None, f"My own deploy note {number} is about shelf {number}."))
    found, cursor = [], None
    while True:
        page = await ben.search_memory(SearchRequest("deploy", k=3, cursor=cursor))
        found += [one.text for one in page.hits]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert len(page.hits) == 3
    assert len(found) == len(set(found)) == 14


async def test_what_is_read_of_a_space_says_so(memory: Memory) -> None:
    pin, copy = await shared(memory)
    ann, ben = memory.of_owner("ann"), memory.of_owner("ben")
    [whole] = await ben.records.get_all(copy)
    earlier = await ben.records.version(copy, 1)
    at_once = await ben.records.as_of(copy, memory.place.clock.now_ms())
    updated = await ann.update_memory(copy, {"tags": ["deploy"]}, expected_revision=1)
    [forgotten] = await ann.forget(copy)
    reverted = await ann.records.revert(copy, 2)
    again, _ = await ann.spaces.share(pin)
    for one in (await ben.records.get(copy), whole, earlier, at_once, updated, forgotten, reverted, again):
        assert (one.space, one.to_dict()["space"]) == ("team", "team")
    own = await ann.records.get(pin)
    assert (own.space, "space" in own.to_dict()) == (None, False)


async def test_what_is_stated_has_the_facts_of_the_spaces_and_who_may_change_them(memory: Memory) -> None:
    _, copy = await shared(memory)
    for member, may in (("ben", False), ("rae", False), ("cora", True)):
        [group] = await memory.of_owner(member).records.statements()
        assert (group.first.record.id, group.first.record.space, group.others) == (copy, "team", ())
        assert (group.project, group.first.subject, group.first.may_change) == (None, Subject.FACTS, may)
    [mine] = await memory.of_owner("ann").records.statements()
    assert [(one.record.space, one.may_change) for one in (mine.first, *mine.others)] == [(None, True), ("team", True)]
    assert await memory.of_owner("dan").records.statements() == []
    await memory.of_owner("cora").forget(copy)
    for member, seen in (("ben", []), ("rae", []), ("cora", [Standing.FORGOTTEN])):
        listed = await memory.of_owner(member).records.statements()
        assert [one.first.standing for one in listed] == seen


async def test_what_somebody_may_not_change_is_known_beforehand(memory: Memory) -> None:
    pin, copy = await shared(memory)
    asked = {pin: None, copy: "team"}
    for user, fixed in (("ann", set()), ("ben", {copy}), ("rae", {copy}), ("cora", set()), ("dan", {copy})):
        assert await memory.of_owner(user).spaces.fixed(asked) == fixed


async def test_what_was_given_of_a_space_is_read_by_members(memory: Memory) -> None:
    pin, copy = await shared(memory)
    for user, spaces in (("ann", {pin: None, copy: "team"}), ("rae", {copy: "team"}), ("dan", {})):
        found = await memory.of_owner(user).given.records([pin, copy])
        assert list(found) == [pin, copy]
        assert {one.id: one.space for one in found.values() if one is not None} == spaces


async def test_what_was_given_to_a_member_who_has_nothing_else_is_noted(memory: Memory) -> None:
    _, copy = await shared(memory)
    people = [one.name for one in await memory.people.all()]
    for user, given in (("rae", [copy]), ("dan", None)):
        theirs = memory.of_owner(user)
        await theirs.build_context("new", query="When do we deploy to production?")
        await theirs.search_memory("deploy to production")
        assert [one.record_ids for one in await theirs.given.recent()] == ([] if given is None else [given, given])
    assert [one.name for one in await memory.people.all()] == people
    erased = await memory.people.erase("rae")
    assert erased.rows["given"] == 2
    await memory.of_owner("rae").search_memory("deploy to production")
    assert await memory.of_owner("rae").given.recent() == []
    assert [one.name for one in await memory.people.all()] == [name for name in people if name != "rae"]


async def test_of_what_says_the_same_only_what_the_role_of_its_own_space_allows_is_free(memory: Memory) -> None:
    _, copy = await shared(memory)
    for user, is_fixed in (("ann", False), ("ben", True), ("rae", True), ("cora", False)):
        theirs = memory.of_owner(user)
        own = await theirs.create_pin(CreatePinRequest(content=RULE, scope=Reach.PERSON))
        assert await theirs.spaces.fixed({own.id: None}, (copy, "msg_9")) == ({copy} if is_fixed else set()), user
    assert await memory.of_owner("dan").spaces.fixed({}, (copy,)) == set()


async def test_own_statements_come_before_newer_ones_of_spaces(memory: Memory, clock: ScriptedClock) -> None:
    ben = memory.of_owner("ben")
    own = await ben.create_pin(
        CreatePinRequest(None, "We deploy to production only on Wednesdays.", scope=Reach.PERSON)
    )
    clock.advance(1_000)
    _, copy = await shared(memory)
    [group] = await ben.records.statements()
    assert (group.first.record.id, [one.record.id for one in group.others]) == (own.id, [copy])


async def test_members_of_a_space_know_each_other_and_nobody_else_does(memory: Memory) -> None:
    await memory.spaces.create("guild")
    [(mine, members)] = await memory.of_owner("rae").spaces.with_members()
    assert (mine.space.name, mine.role) == ("team", Role.READER)
    assert [one.user for one in members] == ["ann", "ben", "cora", "rae"]
    assert await memory.of_owner("dan").spaces.with_members() == []
    assert await memory.of_owner("rae", Limits(agent="a")).spaces.with_members() == []


async def test_a_copy_s_history_says_who_shared_and_who_changed_it(memory: Memory) -> None:
    _, copy = await shared(memory)
    cora = memory.of_owner("cora")
    await cora.update_memory(
        short_record_id(copy), {"text": NEW_RULE}, expected_revision=1, editor=Editor(EditorType.AGENT, "codex")
    )
    history = await memory.of_owner("rae").records.history(copy)
    assert [(one["edit_type"], one["editor_id"]) for one in history] == [
        ("create", "ann by terminal"),
        ("update", "cora by codex"),
    ]


async def test_a_correction_reaches_the_copy(memory: Memory) -> None:
    pin, copy = await shared(memory)
    ann = memory.of_owner("ann")
    await ann.update_memory(short_record_id(pin), {"text": NEW_RULE}, expected_revision=1)
    assert await found_by(memory, "ben") == [(NEW_RULE, "team")]
    await ann.records.revert(pin, 1)
    assert (await ann.records.get(copy)).text == RULE


async def test_a_copy_that_was_taken_back_to_earlier_words_waits_for_the_next_correction(memory: Memory) -> None:
    pin, copy = await shared(memory)
    ann = memory.of_owner("ann")
    await ann.update_memory(pin, {"text": NEW_RULE}, expected_revision=1)
    await memory.of_owner("cora").records.revert(copy, 1)
    await ann.update_memory(pin, {"tags": ["deploy"]}, expected_revision=2)
    await ann.forget(pin)
    await ann.restore(pin)
    assert await found_by(memory, "ben") == [(RULE, "team")]
    await ann.update_memory(pin, {"text": "We deploy on Fridays."}, expected_revision=5)
    assert await found_by(memory, "ben", "deploy") == [("We deploy on Fridays.", "team")]


async def test_a_correction_that_did_not_reach_a_copy_goes_there_with_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin, copy = await shared(memory)
    ann = memory.of_owner("ann")
    with monkeypatch.context() as cut:
        cut.setattr(Sharing, "_follow", _stopped)
        with pytest.raises(ConnectionError):
            await ann.update_memory(pin, {"text": "We deploy on Fridays."}, expected_revision=1)
    assert (await ann.records.get(copy)).text == RULE
    await ann.update_memory(pin, {"text": NEW_RULE}, expected_revision=2)
    assert (await ann.records.get(copy)).text == NEW_RULE


async def _stopped(*_: object) -> None:
    raise ConnectionError


async def test_a_correction_leaves_a_copy_that_somebody_changed(memory: Memory) -> None:
    pin, copy = await shared(memory)
    await memory.of_owner("cora").update_memory(copy, {"text": "We deploy on Mondays."}, expected_revision=1)
    ann = memory.of_owner("ann")
    await ann.update_memory(pin, {"text": NEW_RULE}, expected_revision=1)
    assert await found_by(memory, "ben", "deploy") == [("We deploy on Mondays.", "team")]
    again, _ = await ann.spaces.share(pin)  # to share it again is to mean it
    assert (again.id, again.text) == (copy, NEW_RULE)


async def test_a_correction_of_one_who_left_or_only_reads_by_now_stays_their_own(memory: Memory) -> None:
    pin, _ = await shared(memory)
    await memory.spaces.set_member("team", "ann", Role.READER)
    await memory.of_owner("ann").update_memory(pin, {"text": NEW_RULE}, expected_revision=1)
    assert await found_by(memory, "ben") == [(RULE, "team")]
    with pytest.raises(AccessDenied, match="cannot share"):
        await memory.of_owner("ann").spaces.share(pin, "team")


async def test_who_leaves_sees_nothing_more_and_what_they_shared_stays(memory: Memory) -> None:
    _, of_ann = await shared(memory)
    await shared(memory, "ben", "The staging server is called heron.")
    await memory.spaces.remove_member("team", "ann")
    assert await found_by(memory, "ann", "staging server") == []
    assert await found_by(memory, "ben") == [(RULE, "team")]
    for attempt in (memory.of_owner("ann").records.get, memory.of_owner("ann").forget):
        with pytest.raises(RecordNotFound):
            await attempt(of_ann)
    with pytest.raises(NotFound):
        await memory.spaces.remove_member("team", "ann")


@pytest.mark.parametrize(
    ("user", "may"),
    [("ann", True), ("ben", False), ("rae", False), ("cora", True)],
    ids=["own", "writer", "reader", "curator"],
)
async def test_own_copies_and_a_curator_s_are_changed_and_no_others(memory: Memory, user: str, *, may: bool) -> None:
    _, copy = await shared(memory)
    theirs = memory.of_owner(user)
    attempts = (
        lambda: theirs.update_memory(copy, {"tags": ["deploy"]}, expected_revision=1),
        lambda: theirs.forget(copy),
        lambda: theirs.restore(copy),
        lambda: theirs.records.revert(copy, 1),
        lambda: theirs.purge([copy]),
    )
    for attempt in attempts:
        if may:
            await attempt()
        else:
            with pytest.raises(AccessDenied, match="you are a"):
                await attempt()
    assert await found_by(memory, "rae") == ([] if may else [(RULE, "team")])


async def test_who_is_no_member_meets_the_refusal_of_an_unknown_id(memory: Memory) -> None:
    _, copy = await shared(memory)
    dan = memory.of_owner("dan")
    for attempt in (dan.records.get, dan.records.history, dan.forget, dan.restore, lambda one: dan.purge([one])):
        with pytest.raises(RecordNotFound, match="no record"):
            await attempt(copy)
    with pytest.raises(AccessDenied, match="no space"):
        await dan.spaces.share((await dan.create_pin(CreatePinRequest(None, "Mine."))).id, "team")


async def test_erasing_a_record_erases_its_copies_also_after_leaving(memory: Memory) -> None:
    await memory.spaces.create("guild")
    await memory.spaces.set_member("guild", "ann", Role.WRITER)
    pin, in_team = await shared_in(memory, "team")
    in_guild, _ = await memory.of_owner("ann").spaces.share(pin, "guild")
    await memory.spaces.remove_member("team", "ann")
    report = await memory.of_owner("ann").purge([pin])
    assert set(report.erased) == {pin, in_team, in_guild.id}
    assert await found_by(memory, "ben") == []
    with pytest.raises(RecordErased):
        await memory.of_owner("cora").records.get(in_team)


async def shared_in(memory: Memory, space: str) -> tuple[str, str]:
    ann = memory.of_owner("ann")
    pin = await ann.create_pin(CreatePinRequest(None, RULE, scope=Reach.PERSON))
    return pin.id, (await ann.spaces.share(pin.id, space))[0].id


async def test_a_record_and_its_copy_are_erased_by_one_call(memory: Memory) -> None:
    pin, copy = await shared(memory)
    report = await memory.of_owner("ann").purge([pin, copy])
    assert set(report.erased) == {pin, copy}
    assert await found_by(memory, "ben") == []


async def test_a_token_with_limits_erases_a_record_and_its_copy_by_one_call(memory: Memory) -> None:
    project = "github.com/acme/payments"
    await memory.spaces.create("payments", project)
    await memory.spaces.set_member("payments", "ann", Role.WRITER)
    pin = await memory.of_owner("ann").create_pin(CreatePinRequest(None, RULE, scope=Reach.PERSON))
    copy, _ = await memory.of_owner("ann").spaces.share(pin.id, "payments")
    report = await memory.of_owner("ann", Limits(project=project)).purge([pin.id, copy.id])
    assert set(report.erased) == {pin.id, copy.id}


async def test_what_was_erased_may_be_erased_again(memory: Memory) -> None:
    pin, copy = await shared(memory)
    ann = memory.of_owner("ann")
    for _ in range(2):
        assert (await ann.purge([copy])).erased == (copy,)
    assert (await ann.purge([pin, copy])).erased == (pin, copy)


async def test_erasing_a_message_erases_the_copy_of_its_pin(memory: Memory) -> None:
    ann = memory.of_owner("ann")
    recorded = await ann.record_messages("s", [NewMessage(Sender.USER, RULE)])
    pin = await ann.create_pin(CreatePinRequest("s", RULE, source_message_id=recorded.message_ids[0]))
    copy, _ = await ann.spaces.share(pin.id, "team")
    assert copy.id in (await ann.purge([recorded.message_ids[0]])).erased
    assert await found_by(memory, "ben") == []


async def test_what_was_shared_once_is_shared_again_as_the_same_record(memory: Memory) -> None:
    pin, copy = await shared(memory)
    ann = memory.of_owner("ann")
    assert (await ann.spaces.share(pin))[0].id == copy
    await memory.of_owner("cora").forget(copy)
    assert await found_by(memory, "ben") == []
    assert (await ann.spaces.share(pin))[0].id == copy
    assert await found_by(memory, "ben") == [(RULE, "team")]


async def test_the_same_words_of_two_people_are_shown_once(memory: Memory) -> None:
    copies = {(await shared(memory, user))[1] for user in ("ann", "ben")}
    [hit] = (await memory.of_owner("rae").search_memory("deploy to production")).hits
    assert (hit.text, {hit.record_id, *hit.same}) == (RULE, copies)
    assert await known_to(memory, "rae") == [(RULE, "team")]
    assert len((await memory.of_owner("rae").records.profile()).lines) == 1
    [own] = (await memory.of_owner("ann").search_memory("deploy to production")).hits
    assert (own.space, {*own.same}) == (None, copies)


@pytest.mark.parametrize("end", ["taken back", "erased", "corrected", "somebody erased"])
async def test_one_who_shared_the_same_words_changes_nothing_of_the_other_s(memory: Memory, end: str) -> None:
    (pin, of_ann), (_, of_ben) = await shared(memory, "ann"), await shared(memory, "ben")
    ann = memory.of_owner("ann")
    if end == "taken back":
        await ann.forget(of_ann)
    elif end == "erased":
        assert set((await ann.purge([pin])).erased) == {pin, of_ann}
    elif end == "corrected":
        await ann.update_memory(pin, {"text": "Releases are on Fridays."}, expected_revision=1)
    else:
        assert (await memory.people.erase("ann")).spaces == {"team": 1}
    [hit] = (await memory.of_owner("rae").search_memory("production only on Tuesdays")).hits
    assert (hit.text, hit.record_id, hit.same) == (RULE, of_ben, ())
    [made] = await memory.of_owner("rae").records.history(of_ben)
    assert made["editor_id"] == "ben by terminal"
    await memory.of_owner("ben").forget(of_ben)
    assert await found_by(memory, "rae", "production only on Tuesdays") == []


async def test_words_that_many_shared_take_no_hit_from_a_page(memory: Memory) -> None:
    users = [f"user {number}" for number in range(6)]
    for user in users:
        await memory.spaces.set_member("team", user, Role.WRITER)
        await shared(memory, user)
    await shared(memory, text="The deploy key is kept in drawer three.")
    page = await memory.of_owner("rae").search_memory(SearchRequest("deploy to production", k=2))
    assert {one.text for one in page.hits} == {RULE, "The deploy key is kept in drawer three."}
    assert page.next_cursor is None


async def test_a_space_of_a_project_is_seen_in_that_project_alone(memory: Memory) -> None:
    await memory.spaces.create("payments", "github.com/acme/payments")
    for user in ("ann", "ben"):
        await memory.spaces.set_member("payments", user, Role.WRITER)
    ann = memory.of_owner("ann")
    pin = await ann.create_pin(CreatePinRequest(None, RULE, scope=Reach.PERSON))
    await ann.spaces.share(pin.id, "payments")
    assert await known_to(memory, "ben", project="github.com/acme/payments") == [(RULE, "payments")]
    assert await known_to(memory, "ben", project="github.com/acme/website") == []
    assert await known_to(memory, "ben", project="personal") == []


async def test_limits_of_a_token_hold_in_spaces(memory: Memory) -> None:
    await memory.spaces.create("payments", "github.com/acme/payments")
    for user in ("ann", "ben"):
        await memory.spaces.set_member("payments", user, Role.WRITER)
    ann = memory.of_owner("ann")
    pin = await ann.create_pin(CreatePinRequest(None, RULE, scope=Reach.PERSON))
    copy, _ = await ann.spaces.share(pin.id, "payments")
    within = memory.of_owner("ben", Limits(project="github.com/acme/payments"))
    beyond = memory.of_owner("ben", Limits(project="github.com/acme/website"))
    of_agent = memory.of_owner("ben", Limits(agent="default"))
    assert [one.space for one in (await within.search_memory("deploy")).hits] == ["payments"]
    assert (await within.records.get(copy.id)).text == RULE
    assert [one.first.record.space for one in await within.records.statements()] == ["payments"]
    for other in (beyond, of_agent):
        assert not await other.records.statements()
        assert not (await other.search_memory("deploy")).hits
        with pytest.raises(RecordNotFound):
            await other.records.get(copy.id)


async def test_words_of_others_are_found_and_are_no_known_fact(memory: Memory) -> None:
    ann = memory.of_owner("ann")
    recorded = await ann.record_messages("s", [NewMessage(Sender.USER, RULE, origin=Origin.TOOL)])
    await ann.spaces.share(recorded.message_ids[0])
    assert await found_by(memory, "ben") == [(RULE, "team")]
    assert await known_to(memory, "ben") == []


async def test_a_copy_that_is_erased_while_it_is_shared_is_reported_as_gone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, copied = memory.of_owner("ann"), Sharing.copied

    async def erased_at_once(self: Sharing, *given: Any) -> MemoryRecord:
        copy = await copied(self, *given)
        await memory.of_owner("cora").purge([copy.id])
        return copy

    monkeypatch.setattr(Sharing, "copied", erased_at_once)
    pin = await ann.create_pin(CreatePinRequest(None, RULE, scope=Reach.PERSON))
    with pytest.raises(RecordNotFound, match="erased again meanwhile"):
        await ann.spaces.share(pin.id)


async def test_what_cannot_be_shared_says_why(memory: Memory) -> None:
    ann = memory.of_owner("ann")
    pin = await ann.create_pin(CreatePinRequest(None, RULE))
    await memory.spaces.create("guild")
    await memory.spaces.set_member("guild", "ann", Role.WRITER)
    with pytest.raises(InvalidInput, match=r"guild \(writer\), team \(writer\)"):
        await ann.spaces.share(pin.id)
    with pytest.raises(AccessDenied, match="cannot share in 'nowhere'"):
        await ann.spaces.share(pin.id, "nowhere")
    await ann.forget(pin.id)
    with pytest.raises(Conflict, match="forgotten"):
        await ann.spaces.share(pin.id, "team")
    with pytest.raises(RecordNotFound):
        await ann.spaces.share("msg_999", "team")
    _, copy = await shared(memory, "ben")
    with pytest.raises(RecordNotFound, match="is in the space 'team'; share a record of your own"):
        await ann.spaces.share(copy, "guild")


async def test_spaces_and_members_are_checked(memory: Memory) -> None:
    with pytest.raises(Conflict, match="already"):
        await memory.spaces.create("team")
    with pytest.raises(InvalidInput, match="61 characters"):
        await memory.spaces.create("x" * 61)
    with pytest.raises(InvalidInput, match="is a space"):
        await memory.spaces.set_member("team", "space:other", Role.READER)
    with pytest.raises(NotFound, match="no space 'other'"):
        await memory.spaces.set_member("other", "ann", Role.READER)
    with pytest.raises(InvalidInput):
        await memory.spaces.set_member("team", "ann", "king")
    with pytest.raises(AccessDenied):
        await memory.of_owner("ann", Limits(agent="a")).spaces.members("team")
    members = await memory.spaces.members("team")
    assert [(one.user, str(one.role)) for one in members] == [
        ("ann", "writer"),
        ("ben", "writer"),
        ("cora", "curator"),
        ("rae", "reader"),
    ]


@pytest.mark.parametrize(
    "name", ["Team", "team ", "te\u200bam", "t\u0435am"], ids=["case", "blank", "hidden", "Cyrillic"]
)
async def test_a_space_that_looks_like_another_is_not_made(memory: Memory, name: str) -> None:
    with pytest.raises(InvalidInput, match="there is a space 'team' already, which looks the same; take another name"):
        await memory.spaces.create(name)
    with pytest.raises(NotFound, match="did you mean 'team'"):
        await memory.spaces.members(name)


async def test_nobody_is_let_in_by_a_name_that_looks_like_somebody_else_s(memory: Memory) -> None:
    await memory.spaces.set_member("team", "Andr\u00e9", Role.READER)
    for name, like in (("Ann", "ann"), ("ben ", "ben"), ("Andre\u0301", "Andr\u00e9")):
        with pytest.raises(InvalidInput, match=f"there is {like!r} already; write the name the same way"):
            await memory.spaces.set_member("team", name, Role.READER)
        with pytest.raises(InvalidInput, match=f"there is {like!r} already"):
            await memory.access.create_token(Permission.READ, owner=name)
        with pytest.raises(InvalidInput, match=f"there is {like!r} already"):
            await memory.access.sign_in.passphrases.set(name, "correct horse battery staple")
    await memory.spaces.set_member("team", "ann", Role.CURATOR)
    await memory.spaces.set_member("team", "Andre", Role.READER)


async def test_a_space_that_is_removed_leaves_nothing_for_the_next_of_its_name(memory: Memory) -> None:
    pin, _ = await shared(memory)
    _, forgotten = await shared(memory, "ben", "The staging server is called heron.")
    await memory.of_owner("ben").forget(forgotten)
    assert await memory.spaces.remove("team") == 2
    await memory.spaces.create("team")
    await memory.spaces.set_member("team", "rae", Role.CURATOR)
    assert await found_by(memory, "rae") == []
    with pytest.raises(RecordNotFound):
        await memory.of_owner("rae").restore(forgotten)
    assert (await memory.of_owner("ann").records.get(pin)).text == RULE
    await memory.spaces.set_member("team", "ann", Role.WRITER)
    await memory.of_owner("ann").spaces.share(pin)
    assert await found_by(memory, "rae") == [(RULE, "team")]
    with pytest.raises(NotFound):
        await memory.spaces.remove("guild")
