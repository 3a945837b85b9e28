"""Now, over HTTP: the feed of what was recorded and given, what an answer was made of, the pause, and live events."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx2
import pytest

from kalito_mcp import CreatePinRequest, NewMessage, Role
from kalito_mcp.cli.this_machine import ThisMachine
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.records import HOOK_KEY
from kalito_mcp.domain.scope import Limits
from kalito_mcp.memory.given import Given
from kalito_mcp.runtime.database_address import DatabaseAddress
from kalito_mcp.web.page.live import Live
from tests.sign_in.harness import Home, home
from tests.stored import said
from tests.web.page.visitor import forms, visiting

pytestmark = pytest.mark.anyio
BOAT = "/home/ann/code/boat"
ASKED = "when does the ferry to Oslo leave from the northern pier?"


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Home]:
    """A memory with an earlier conversation, and one with a pin, whose context was given."""
    machine = ThisMachine(Settings(database=DatabaseAddress(tmp_path / "memory.db")), None)
    async with home(tmp_path, machine=machine) as served:
        boat = await served.memory.in_project(BOAT)
        await boat.record_messages("sail", said("The ferry to Oslo leaves at nine from the northern pier.", "Noted."))
        await boat.record_messages("oars", said("We need tickets.", "How many?"), client="codex")
        await boat.create_pin(CreatePinRequest("oars", "Nana needs a cabin.", None))
        await served.memory.settled()
        await boat.record_messages("oars", said("And when does it leave?"), client="codex")
        await boat.build_context("oars", 900, query="When does the ferry to Oslo leave?", client="codex")
        yield served


async def test_it_shows_what_was_recorded_and_given_newest_first(at: Home) -> None:
    async with visiting(at) as person:
        page = await person.get("/now")
    cards = re.findall(r'<article class="card".*?</article>', page.text, re.DOTALL)
    assert "Context" in cards[0]
    assert [word in card for word, card in zip(("And when", "How many", "We need"), cards[1:], strict=False)] == [
        True
    ] * 3
    assert all('href="/now?session=oars"' in card for card in cards[:4])
    assert all('href="/now?host=codex"' in card for card in cards[:4])
    assert f'href="/now?project={BOAT.replace("/", "%2F")}"' in page.text or 'href="/now?project=/home' in page.text
    assert re.search(r'role="img" aria-label="known|role="img" aria-label="found [\d,]+ tokens', cards[0])
    assert " style=" not in page.text
    assert 'aria-current="page">Now' in page.text


async def test_it_is_narrowed_by_session_by_host_and_by_project(at: Home) -> None:
    await at.memory.search_memory("ferry", client="cursor")
    async with visiting(at) as person:
        by_session = (await person.get("/now?session=sail")).text
        assert "northern pier" in by_session
        assert "We need tickets" not in by_session
        by_host = (await person.get("/now?host=codex")).text
        assert "We need tickets" in by_host
        assert "northern pier" not in by_host
        assert "Search" in (await person.get("/now?host=cursor")).text
        assert "We need tickets" not in (await person.get("/now?project=personal")).text
        assert "We need tickets" in (await person.get(f"/now?project={BOAT}")).text


async def test_an_answer_opens_to_its_records_and_to_what_it_answered(at: Home) -> None:
    [entry] = await at.memory.given.recent()
    found = next(part.ids[0] for part in entry.parts if part.name == "found")
    pin = next(part.ids[0] for part in entry.parts if part.name == "pins")
    async with visiting(at) as person:
        feed = await person.get("/now")
        assert f'href="/given/{entry.id}"' in feed.text
        page = (await person.get(f"/given/{entry.id}")).text
        assert "edited since" not in page
        assert re.search(r"Asked.*And when does it leave", page, re.DOTALL)
        assert all(f'href="/r/{one}"' in page for one in entry.record_ids)
        await at.memory.update_memory(found, {"text": "The ferry leaves at ten."}, expected_revision=1)
        await at.memory.forget(pin)
        page = (await person.get(f"/given/{entry.id}")).text
        assert f'href="/r/{found}?version=1">edited since</a>' in page
        assert "The ferry leaves at ten." in page
        assert ">forgotten</span>" in page
        await at.memory.purge([found])
        page = (await person.get(f"/given/{entry.id}")).text
        assert "gone: erased" in page
        assert "at ten" not in page


async def test_what_was_left_out_is_shown_with_the_reason(at: Home) -> None:
    await at.memory.record_messages("old", said(*(f"The barge {one} is {'late ' * 60}" for one in range(8))))
    await at.memory.build_context("oars", 300, query="barge")
    [entry, *_] = await at.memory.given.recent()
    async with visiting(at) as person:
        page = (await person.get(f"/given/{entry.id}")).text
        assert re.search(r"<h3>found: \d+ records?, did not fit</h3>", page)
        out = next(one for one in entry.left_out if one.part == "found")
        assert all(f'href="/r/{one}"' in page for one in out.ids)
        assert "left out" in (await person.get("/now")).text


async def test_an_answer_of_another_or_beyond_the_limits_is_as_missing(at: Home) -> None:
    [entry] = await at.memory.given.recent()
    other = await at.memory.of_owner("ben").access.create_token(Permission.ADMIN)
    limited = await at.memory.access.create_token(Permission.ADMIN, limits=Limits(project="kite"))
    for token in (other, limited):
        async with httpx2.AsyncClient(base_url=at.base, trust_env=False, verify=False) as http:
            page = await http.get("/enter")
            key = forms(page)[0].fields
            await http.post("/enter", data={**key, "token": token.text}, headers={"origin": at.base})
            texts = []
            for number in (str(entry.id), "987654"):
                answer = await http.get(f"/given/{number}")
                assert answer.status_code == 404
                texts.append(answer.text.replace(f"number {number}", "number N").replace(f"given/{number}", "given/N"))
            assert (await http.get("/given/x")).status_code == 404
            assert texts[0] == texts[1]
            feed = await http.get("/now")
            assert feed.status_code == 200
            assert "tickets" not in feed.text


async def test_an_empty_memory_says_what_to_do_first(tmp_path: Path) -> None:
    async with home(tmp_path) as at, visiting(at) as person:
        page = await person.get("/now")
        assert "Nothing was recorded or given yet" in page.text
        assert "No assistant records by itself yet" in page.text


async def test_it_says_which_hosts_record_and_when_they_were_heard_last(at: Home) -> None:
    prompt = NewMessage(Role.USER, ASKED, client_key=f"{HOOK_KEY}1")
    await at.memory.record_messages("hooked", [prompt], client="claude-code")
    async with visiting(at) as person:
        page = await person.get("/now")
    [card] = re.findall(r"<h2>Assistants record.*?</ul>", page.text, re.DOTALL)
    assert "claude-code" in card
    assert "codex" not in card, "its messages came by a tool"
    assert 'href="/s/hooked"' in card


async def test_the_memory_is_paused_and_resumed_and_both_can_be_undone(at: Home) -> None:
    async with visiting(at) as person:
        page = await person.act(await person.get("/now"), "pause", minutes="60")
        assert "Paused until" in page.text
        assert at.memory.place.switch().paused_until
        page = await person.undo(page)
        assert at.memory.place.switch().paused_until is None
        page = await person.undo(page)
        assert at.memory.place.switch().paused_until == at.clock.now_ms() + 3_600_000
        page = await person.act(page, "resume")
        page = await person.send("pause", {**forms(page)[1].fields, "until": "0"})
        assert "Paused: nothing is remembered" in page.text
        assert at.memory.place.switch().paused_until == 0
        page = await person.act(page, "resume")
        page = await person.undo(page)
        assert at.memory.place.switch().paused_until == 0


async def test_nobody_pauses_it_without_the_right_to(at: Home) -> None:
    async with visiting(at, Permission.WRITE) as person:
        page = await person.get("/now")
        assert "/act/pause" not in page.text
        [form] = [one for one in forms(page) if "form_key" in one.fields][:1] or [None]
        if form is not None:
            await person.send("pause", {"form_key": form.fields["form_key"], "back": "/now"}, status=403)
    assert at.memory.place.switch().paused_until is None


async def test_a_project_is_left_out_from_here(at: Home) -> None:
    async with visiting(at) as person:
        page = await person.get(f"/now?project={BOAT}")
        page = await person.act(page, "exclude_folder")
        assert at.memory.place.switch().excluded == (BOAT,)
        await person.undo(page)
        assert at.memory.place.switch().excluded == ()


async def test_an_open_page_hears_of_each_change_within_a_second(at: Home) -> None:
    async with visiting(at) as person:
        page = await person.get("/now")
        [since] = re.findall(r'hx-sse:connect="(/now/feed\?since=[^"]+)"', page.text)
        async with person.http.stream("GET", since) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.aiter_lines()
            for change in ("given", "recorded", "paused"):
                if change == "given":
                    await at.memory.search_memory("ferry")
                elif change == "recorded":
                    await at.memory.record_messages("oars", said("One more."))
                else:
                    await at.memory.projects.pause()
                with anyio.fail_after(3):
                    assert await anext(one async for one in lines if one.startswith("event")) == "event: changed"
    async with httpx2.AsyncClient(base_url=at.base, trust_env=False, verify=False) as stranger:
        assert (await stranger.get("/now/feed")).status_code == 401


async def test_twenty_open_pages_share_one_look(at: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    version = Given.version

    async def counted(given: Given) -> str:
        looks.append(await version(given))
        return looks[-1]

    monkeypatch.setattr(Given, "version", counted)
    streams = Live()
    events = [aiter(streams.events(at.memory, "")) for _ in range(20)]
    assert {(await anext(one))["data"] for one in events} == set(looks)
    assert len(looks) == 1


async def test_the_page_of_a_record_leads_to_the_answers_that_had_it(at: Home) -> None:
    [entry] = await at.memory.given.recent()
    async with visiting(at) as person:
        assert f'href="/given/{entry.id}"' in (await person.get(f"/r/{entry.record_ids[0]}")).text
