"""What is shared in spaces, over HTTP: it is there with the name of its space, and is changed by whom the role lets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.records import Reach
from kalito_mcp.domain.spaces import Role
from tests.sign_in.harness import Home, home
from tests.web.page.visitor import forms, visiting

pytestmark = pytest.mark.anyio
RULE = "We deploy to production only on Tuesdays."


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Home]:
    """A memory with the space `<team>`: ann shared a rule there, rae reads, and cora is its curator."""
    async with home(tmp_path) as served:
        await served.memory.spaces.create("<team>")
        for user, role in (("ann", Role.WRITER), ("rae", Role.READER), ("cora", Role.CURATOR)):
            await served.memory.spaces.set_member("<team>", user, role)
        ann = served.memory.of_owner("ann")
        pin = await ann.create_pin(CreatePinRequest(None, RULE, scope=Reach.PERSON))
        await ann.spaces.share(pin.id)
        yield served


async def test_what_is_shared_is_known_with_the_name_of_its_space(at: Home) -> None:
    for user in ("ann", "rae", "cora"):
        async with visiting(at, owner=user) as person:
            page = await person.get("/known")
        assert RULE in page.text
        assert page.text.count('Shared in <bdi class="tag">&lt;team&gt;</bdi>') == 1
    async with visiting(at, owner="dan") as person:
        assert RULE not in (await person.get("/known")).text


CHANGES = frozenset({"/act/correct", "/act/forget", "/act/restore", "/act/go_back"})


async def test_who_may_not_change_it_is_offered_no_act_that_does(at: Home) -> None:
    [hit] = (await at.memory.of_owner("rae").search_memory("deploy")).hits
    views = ("/known", "/ask?q=deploy", f"/r/{hit.record_id}", f"/r/{hit.record_id}?like=1")
    for user, permission, may in (
        ("rae", Permission.ADMIN, False),
        ("cora", Permission.READ, False),
        ("cora", Permission.WRITE, True),
    ):
        async with visiting(at, permission, owner=user) as person:
            for view in views:
                page = await person.get(view)
                assert RULE in page.text
                assert bool(CHANGES & {one.action for one in forms(page)}) is may, (user, view)


async def test_one_s_own_statement_takes_the_place_of_none_in_a_space(at: Home) -> None:
    async with visiting(at, owner="ann") as ann:
        page = await ann.get("/known")
    assert "1 other statement about it" in page.text
    assert "No longer holds" not in page.text


async def test_a_curator_corrects_forgets_and_brings_it_back(at: Home) -> None:
    async with visiting(at, owner="cora") as cora, visiting(at, owner="rae") as rae:
        page = await cora.act(await cora.get("/known"), "correct", text="We deploy on Wednesdays.")
        assert "We deploy on Wednesdays." in page.text
        assert "We deploy on Wednesdays." in (await rae.get("/known")).text
        assert RULE in (await cora.undo(page)).text
        page = await cora.act(await cora.get("/known"), "forget")
        assert "1 record forgotten" in page.text
        assert RULE not in (await rae.get("/known?gone=1")).text
        await cora.act(await cora.get("/known?gone=1"), "restore")
        assert RULE in (await rae.get("/known")).text


async def test_a_copy_does_not_say_how_often_it_was_shown(at: Home) -> None:
    rae = at.memory.of_owner("rae")
    await rae.remember("note", {"text": "The kettle is blue."})
    [hit] = (await rae.search_memory("When do we deploy?")).hits
    async with visiting(at, owner="rae") as person:
        page = await person.get(f"/r/{hit.record_id}")
        assert "Contexts and searches with it" in page.text
        assert "<dt>Shown</dt>" not in page.text
    record = (await rae.records.get(hit.record_id)).to_dict()
    assert not {"usage_count", "last_used"} & record.keys()
    [mine] = (await at.memory.of_owner("ann").search_memory("When do we deploy?")).hits
    async with visiting(at, owner="ann") as person:
        assert "<dt>Shown</dt>" in (await person.get(f"/r/{mine.record_id}")).text


async def test_a_context_shows_the_words_that_are_from_a_space(at: Home) -> None:
    rae = at.memory.of_owner("rae")
    await rae.remember("note", {"text": "The kettle is blue."})
    await rae.build_context(None, query="When do we deploy?")
    [entry] = await rae.given.recent()
    async with visiting(at, owner="rae") as person:
        page = await person.get(f"/given/{entry.id}")
        assert RULE in page.text
        assert "Shared in" in page.text
        assert ">gone: erased" not in page.text
        assert ">wrong</a>" not in page.text.partition(RULE)[2].partition("</li>")[0]
        await at.memory.spaces.remove_member("<team>", "rae")
        page = await person.get(f"/given/{entry.id}")
        assert RULE not in page.text
        assert ">gone: erased" in page.text


async def test_what_others_propose_waits_in_the_inbox_and_is_kept_there(at: Home) -> None:
    ann = at.memory.of_owner("ann")
    pin = await ann.create_pin(CreatePinRequest(None, "Always run `make check`.", scope=Reach.PERSON))
    await ann.spaces.share(pin.id)
    async with visiting(at, owner="rae") as person:
        inbox = await person.get("/known?show=found")
        assert "Proposed in your spaces" in inbox.text
        done = await person.act(inbox, "keep")
        assert "1 note kept as your own" in done.text
        assert "Proposed in your spaces" not in (await person.get("/known?show=found")).text
