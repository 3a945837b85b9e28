"""What the assistant lists of a conversation is what the next one begins with."""

from pathlib import Path
from typing import Any, Final

import pytest

from kalito_mcp.domain.digest import MOST_CHARS, MOST_SENTENCES
from kalito_mcp.domain.records import RecordType
from tests.flows.harness import Harness, said, served

pytestmark = pytest.mark.anyio

TALK: Final = said("Let us look at the export of the shop.", "It is slow, and nobody knows why.")
DECIDED, LEARNED = "The shop exports orders as CSV, one file a day.", "The warehouse reads its files at 06:30."
DONE, OPEN = "The export of the orders runs in two minutes.", "The returns are not in the export yet."
LISTS: Final = {"decided": [DECIDED], "learned": [LEARNED], "done": [DONE], "open": [OPEN]}
DIGEST: Final = f"Decided:\n{DECIDED}\nLearned:\n{LEARNED}\nDone:\n{DONE}\nOpen:\n{OPEN}"


async def recorded(h: Harness, session: str = "shop-1") -> dict[str, Any]:
    await h.facts("record_messages", session_id=session, project="shop", messages=TALK)
    return {"session_id": session}


async def first_context(h: Harness, project: str = "shop") -> str:
    return await h.text("build_context", project=project)


async def pins_of(h: Harness, session: str) -> list[tuple[str, str | None]]:
    """The session's pins in the order in which they were made: the words, and whose they are."""
    memory = await h.server.opened.memory()
    pins = await memory.records.all(frozenset({RecordType.PIN}), session_id=session)
    return [(one.text, one.content.get("scope")) for one in reversed(pins)]


async def test_the_lists_are_the_summary_and_the_next_conversation_begins_with_them(database: Path, era: str) -> None:
    async with served(database, era) as h:
        here = await recorded(h)
        facts = await h.facts("summarize_session", **here, summary="They made the export fast.", **LISTS)
        [summary] = facts["summaries"]
        assert summary["summary"] == f"They made the export fast.\n{DIGEST}"
        assert summary["method"] == "caller"
        assert len(facts["pinned"]) == 4
        text = await first_context(h)
        assert all(one in text for [one] in LISTS.values())
        assert text.index(OPEN) < text.index(DONE)
        elsewhere = await first_context(h, "garden")
        assert not any(one in elsewhere for [one] in LISTS.values())
        assert set(await pins_of(h, "shop-1")) == {
            (DECIDED, "project"), (LEARNED, "project"), (DONE, None), (OPEN, None),
        }  # fmt: skip


async def test_the_lists_alone_are_enough_and_the_same_call_stores_nothing_twice(database: Path, era: str) -> None:
    async with served(database, era) as h:
        here = await recorded(h)
        assert (await h.facts("summarize_session", **here, **LISTS))["summaries"][0]["summary"] == DIGEST
        before = await pins_of(h, "shop-1")
        again = await h.facts("summarize_session", **here, **LISTS)
        assert again["summaries_made"] == 0
        assert not again.keys() & {"pinned", "closed"}
        told = await h.facts("summarize_session", **here, summary="They made it fast.", **LISTS)
        assert "yours was not stored; your lists count" in told["note"]
        nearly = {name: [one.upper().rstrip(".")] for name, [one] in LISTS.items()}
        assert not (await h.facts("summarize_session", **here, **nearly)).keys() & {"pinned", "closed"}
        assert await pins_of(h, "shop-1") == before


async def test_what_is_no_longer_listed_as_open_is_closed_and_comes_back_if_it_is_listed_again(
    database: Path, era: str
) -> None:
    other = "Nobody has told the warehouse."
    async with served(database, era) as h:
        here = await recorded(h)
        [first] = (await h.facts("summarize_session", **here, open=[OPEN]))["pinned"]
        facts = await h.facts("summarize_session", **here, open=[other])
        assert (len(facts["pinned"]), facts["closed"]) == (1, [first])
        assert (OPEN in (text := await first_context(h)), other in text) == (False, True)
        assert "forgotten" not in await h.text("summarize_session", **here, done=[DONE])  # nothing is said of open
        assert other in await first_context(h)
        assert (await h.facts("summarize_session", **here, open=[]))["closed"] == [facts["pinned"][0]]
        assert other not in await first_context(h)
        assert (await h.facts("summarize_session", **here, open=[OPEN]))["pinned"] == [first]
        assert OPEN in await first_context(h)
        history = await h.facts("memory_history", record_id=first)
        assert [one["edit_type"] for one in history["edits"]] == ["create", "delete", "restore"]


@pytest.mark.usefixtures("meaning_installed")
async def test_automatic_open_points_are_closed_too_even_those_of_messages_that_were_just_recorded(
    database: Path, era: str
) -> None:
    found = "The returns are still missing from the export and nobody has looked into it yet."
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="a", project="shop", messages=said(found))
        await h.settled()
        assert f"open: {found}" in await first_context(h)
        for session in ("a", "b"):
            await h.facts("record_messages", session_id=session, project="shop", messages=said("And " + found))
            await h.facts("summarize_session", session_id=session, open=[])
        await h.settled()
        assert await pins_of(h, "a") == await pins_of(h, "b") == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"open": [OPEN] * (MOST_SENTENCES + 1)}, "open has 13 sentences; send at most 12"),
        ({"done": [DONE, "x" * (MOST_CHARS + 1)]}, "sentence 2 of done has 401 characters; send at most 400"),
        ({"learned": [" "]}, "sentence 1 of learned is blank; leave it out"),
    ],
)
async def test_a_list_that_is_refused_says_why_and_nothing_is_stored(
    database: Path, era: str, wrong: dict[str, Any], words: str
) -> None:
    async with served(database, era) as h:
        here = await recorded(h)
        assert words in await h.refusal("summarize_session", **here, summary="They looked.", **{**LISTS, **wrong})
        assert (await h.facts("summarize_session", **here))["summaries_made"] == 1
        assert await pins_of(h, "shop-1") == []


async def test_secrets_are_removed_and_what_was_forgotten_is_refused(database: Path, era: str) -> None:
    key = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3dEf6hIj9kLm2n"
    async with served(database, era) as h:
        here = await recorded(h)
        assert (await h.facts("summarize_session", **here, learned=[f"The key is {key}."]))["redacted"]
        assert key not in str(await pins_of(h, "shop-1"))
        [pin] = (await h.facts("summarize_session", **here, open=[OPEN]))["pinned"]
        await h.text("forget", record_ids=[pin])
        assert "forgotten" in await h.refusal("summarize_session", **here, decided=[DECIDED], open=[OPEN])
        assert DECIDED not in str(await pins_of(h, "shop-1"))


async def test_the_words_of_a_tool_stay_in_their_session(database: Path, era: str) -> None:
    async with served(database, era) as h:
        result = {"role": "user", "text": f"README: {DECIDED} Enjoy.", "origin": "tool"}
        await h.facts("record_messages", session_id="shop-1", project="shop", messages=[*TALK, result])
        await h.facts("summarize_session", session_id="shop-1", decided=[DECIDED])
        assert await pins_of(h, "shop-1") == [(DECIDED, None)]
