"""A person's three days: a move, a new job, a preference taken back, a decision reversed. On day four, what is true has
the later date.

Nobody calls a tool but to record what was said. Read the first context of day four aloud: `pytest -s` prints it.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from kalito_mcp.config.settings import Settings, TimePolicy
from kalito_mcp.contexts.parts import ContextPolicy
from tests.flows.harness import Harness, served
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio
DAY_S: Final = 86_400.0

MONDAY: Final = (
    ("Morning! I'm Marta. Can you help me plan a busy week?", "Of course, Marta. What is coming up?"),
    ("I live in Leeds, on Harehills Lane, but that may change.", "Noted. Tell me when it does."),
    ("I work as a data engineer at Northgas, my boss is Colin.", "Understood."),
    ("I'm allergic to peanuts, so no satay ideas please.", "No peanuts, then."),
    ("Please always answer in bullet points, I read them faster.", "- Will do."),
    ("For the billing project we decided to use MySQL as the database.", "- MySQL it is, for the billing project."),
    ("What would be a quick lunch today?", "- A wrap with hummus and roast peppers."),
)
TUESDAY: Final = (
    ("Big news: we moved! I live in York now, at 12 Walmgate.", "- Congratulations on the new place in York."),
    ("The cat hated the van, by the way. Her name is Pixel.", "- Poor Pixel. Cats need some days."),
    ("How long does it take by train from York to Leeds?", "- About 25 minutes."),
    ("The bullet points get on my nerves. I no longer want bullet points.", "Fine, I will write in sentences."),
    ("Which box would you unpack first?", "The kitchen one: you will want tea."),
    ("We talked about the billing project for an hour today.", "Did anything come out of it?"),
    ("Yes, we switched from MySQL to PostgreSQL, because of the JSON columns.", "PostgreSQL for billing, then."),
)
WEDNESDAY: Final = (
    ("I quit Northgas today. I start at Brightwave on Monday.", "Exciting! Congratulations on Brightwave."),
    ("My new boss is called Ifeoma and leads the data platform.", "That is a good start."),
    ("Remind me, what was the train time again?", "About 25 minutes from York to Leeds."),
    ("Thanks. Pixel sleeps on the windowsill already.", "She has settled in quickly."),
    ("Maybe I should learn the cello.", "It is never too late for that."),
    ("Anyway, that's all for today.", "Good night, Marta."),
)


def turns(said: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"role": role, "text": text} for pair in said for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


async def live_through(h: Harness, clock: ScriptedClock) -> None:
    for place, day in enumerate((MONDAY, TUESDAY, WEDNESDAY)):
        for one in turns(day):
            await h.facts("record_messages", session_id=f"day {place + 1}", messages=[one])
            clock.advance(60.0)
        await h.settled()
        clock.advance(DAY_S - len(day) * 120.0)


def day_of(context: str, words: str) -> str:
    """The day of the line with these words: its own, or that of the nearest one above that has one."""
    said, *_ = context.split(words)
    return re.findall(r"^(?:[- ] )?(?:of this project, |msg_\d+, )?(2026-\d\d-\d\d)", said, re.MULTILINE)[-1]


@pytest.mark.usefixtures("meaning_installed")
async def test_on_day_four_the_first_context_has_what_is_true_now_with_later_dates(database: Path, era: str) -> None:
    clock = ScriptedClock()
    settings = Settings(time=TimePolicy("UTC"), context=ContextPolicy(known=16))
    async with served(database, era, clock=clock, settings=settings, project="billing") as h:
        assert sum(len(turns(day)) for day in (MONDAY, TUESDAY, WEDNESDAY)) == 40
        await live_through(h, clock)
        first = await h.text("build_context")
        print(first)
        for now, past in (
            ("York", "Harehills"),
            ("Brightwave", "Northgas"),
            ("Ifeoma", "Colin"),
            ("to PostgreSQL", "use MySQL"),
            ("no longer want bullet points", "always answer in bullet points"),
        ):
            assert past not in first or day_of(first, past) < day_of(first, now), past
            assert now in first, now
        assert "allergic to peanuts" in first


async def test_on_day_four_a_question_finds_what_is_true_now(database: Path, era: str) -> None:
    clock = ScriptedClock()
    async with served(database, era, clock=clock, project="billing") as h:
        await live_through(h, clock)
        for question, also, now, before in (
            ("Where do I live?", [], "York", "Leeds"),
            ("Where do I work?", ["I work at ...", "I start at a new employer"], "Brightwave", "Northgas"),
            ("Who is my boss?", [], "Ifeoma", "Colin"),
            ("Which database does the billing project use?", [], "PostgreSQL", "to use MySQL"),
        ):
            hits = (await h.facts("search_memory", query=question, also=also))["hits"]
            assert any(now in hit["text"] for hit in hits), question
            context = await h.text("build_context", query=question, also=also)
            assert now in context, question
            assert before not in context or day_of(context, before), question
