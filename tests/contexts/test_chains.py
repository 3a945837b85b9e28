"""A match comes with what belongs to it: a proposal with the answer, a failure with what mended it."""

from pathlib import Path

import pytest

from kalito_mcp import Memory
from tests.contexts.talks import opened, talk

pytestmark = pytest.mark.anyio

RETRIES = (
    "Let us decide how often the importer tries again, so that the exporter does the same later.",
    "Proposal for a shared retry policy: at most 5 attempts, and never longer than 8 s in total.",
    "fine, but 4, and cap it at 6",
    "Done: 4 attempts, at most 6 s, in app/common/again.py.",
    "commit it",
    "Committed as 4c1e2aa.",
)
MIGRATION = (
    "Run the migration on the new table.",
    "`alembic upgrade head` failed: permission denied for schema public.",
    "ah yes, that needs the owner role. use $MIGRATOR_URL",
    "That worked.",
)


async def filled(memory: Memory) -> None:
    await talk(memory, "retries", *RETRIES, days_ago=9)
    await talk(memory, "migration", *MIGRATION, days_ago=8)
    for number in range(12):
        garden = (f"The garden needs water on day {number}.", "I noted that the garden needs water.")
        await talk(memory, f"garden {number}", *garden, days_ago=7)


async def test_a_context_shows_the_decision_wherever_it_shows_the_proposal(database: Path) -> None:
    async with opened(database) as memory:
        await filled(memory)
        for budget in (500, 1_000, 2_000, 4_000):
            context = await memory.build_context(None, budget, query="use the same retry policy with attempts in total")
            assert "at most 5 attempts" in context.text
            assert "fine, but 4, and cap it at 6" in context.text
            assert budget < 1_000 or "Done: 4 attempts" in context.text


QUESTIONS = {
    "Which port does the staging database use?": "Staging listens on 5433, behind pgbouncer.",
    "Who is on call this week?": "Tom, and Ines when he is away.",
    "When do we deploy?": "Thursday at noon.",
    "Where are the backups of the staging database?": "In the bucket kite-backups in Frankfurt.",
    "Which branch is on staging?": "release/2.4, since Monday.",
    "How do I reset the staging cache?": "Run make flush on the jump host.",
}


@pytest.mark.parametrize("budget", [*range(200, 451, 50), 600, 1_000])
async def test_a_question_never_stands_without_its_answer(database: Path, budget: int) -> None:
    async with opened(database) as memory:
        await talk(memory, "asked", *(one for pair in QUESTIONS.items() for one in pair), days_ago=3)
        await talk(memory, "now", "Hello.", "Hello!")
        for query, answer in QUESTIONS.items():
            text = (await memory.build_context("now", budget, query=query)).text
            assert answer in text
            assert [one for one, answered in QUESTIONS.items() if one in text and answered not in text] == []


async def test_a_structured_context_has_the_turns_around_a_match(database: Path) -> None:
    async with opened(database) as memory:
        await filled(memory)
        context = await memory.build_context(None, 2_000, query="shared retry policy: at most 5 attempts")
    [proposal] = [one for one in context.relevant_messages if "at most 5 attempts" in one.text]
    shown = [*(one.text for one in context.relevant_messages), *(turn.text for turn in proposal.turns)]
    assert set(RETRIES) <= set(shown)
    [given] = [one for one in context.to_dict()["relevant_messages"] if "at most 5" in one["text"]]
    assert {"record_id", "role", "text"} <= set(given["turns"][0])


async def test_a_prompt_gets_what_mended_or_decided_it_and_an_order_that_names_little_nothing(database: Path) -> None:
    pasted = (
        "hm, I am adding a column to the table of parcels for the kind of barcode and now this comes up:\n\n"
        "ProgrammingError: (psycopg.errors.InsufficientPrivilege) permission denied for schema public\n"
        "[SQL: CREATE TABLE label_barcodes (id bigint NOT NULL, kind text)]"
    )
    async with opened(database) as memory:
        await filled(memory)
        for prompt, mended in (
            ("`alembic upgrade head` says: permission denied for schema public", "use $MIGRATOR_URL"),
            (pasted, "use $MIGRATOR_URL"),
            ("write the exporter with our shared retry policy: attempts and seconds in total", "fine, but 4"),
            ("did we agree on a retry policy?", "fine, but 4"),
        ):
            assert mended in (await memory.hooks.inject("new", prompt)).text, prompt
        for prompt in ("commit it", "run the migration", "now do it there too", "thanks, that worked!"):
            assert (await memory.hooks.inject("new", prompt)).text == "", prompt
