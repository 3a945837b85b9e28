"""Which prompts get something by themselves, with and without vectors."""

from pathlib import Path
from typing import Final

import pytest

from kalito_mcp import Memory
from tests.contexts.talks import opened, talk

pytestmark = pytest.mark.anyio

SEMICOLONS: Final = "The supplier's price list, lists/acme.csv, has a semicolon between its columns."
ROUNDING: Final = "Never round a price in the basket, only on the invoice. The auditor wants it so."
TEMPERATURE: Final = "The rye loaves are baked at 240 degrees for ten minutes, then at 200."
PASTED: Final = "ValueError: could not convert string to float: '3,20' in readers/acme.py line 41"
COMMA: Final = "It is a decimal comma: I replace it before the conversion."

SILENT: Final = [
    "run the tests",
    "run the tests again, please",
    "commit",
    "commit and push",
    "thanks, that's perfect!",
    "show me the diff",
    "ugh, it has been raining since Monday",
    "do the same in the other file",
    "explain how a heap works",
    "give me a name for a goldfish",
    "Translate this into Dutch: the ferry leaves at nine from the northern pier, and bicycles travel free of charge.",
]
ANSWERED: Final = [
    ("how are the columns of the supplier's price list separated?", SEMICOLONS),
    ("at how many degrees are the rye loaves baked?", TEMPERATURE),
    ("what did we say about rounding?", ROUNDING),
    ("round each price in the basket", ROUNDING),
    ("put the rye loaves into the oven plan, at 240 degrees", TEMPERATURE),
    ("write an export with the same columns as the supplier's price list", SEMICOLONS),
    (
        "this came up again after I had changed the reader for the new supplier of flour:\n\n"
        "ValueError: could not convert string to float: '7,95' in readers/mill.py line 12",
        COMMA,
    ),
]


@pytest.fixture(params=["by words", "by meaning"])
def by(request: pytest.FixtureRequest) -> str:
    """How is searched."""
    if request.param == "by meaning":
        request.getfixturevalue("meaning_installed")
    return str(request.param)


async def filled(memory: Memory) -> None:
    await talk(memory, "importer", SEMICOLONS, "Then the reader splits at semicolons.", days_ago=9)
    await talk(memory, "basket", "next, the basket", "What about it?", ROUNDING, "Understood.", days_ago=8)
    await talk(memory, "oven", TEMPERATURE, "I noted both temperatures.", days_ago=7)
    await talk(memory, "reader", PASTED, COMMA, "great, that was it", "Good.", days_ago=6)
    for number in range(12):
        work = ("run the tests", f"All {number + 40} pass.", "commit it", f"Committed as 4c1e{number:03}.")
        await talk(memory, f"work {number}", *work, days_ago=5)


async def test_a_prompt_gets_what_it_asks_for_or_names_and_else_nothing(database: Path, by: str) -> None:
    async with opened(database) as memory:
        await filled(memory)
        for prompt in SILENT:
            assert (await memory.hooks.inject("new", prompt)).text == "", (by, prompt)
        for prompt, remembered in ANSWERED:
            assert remembered in (await memory.hooks.inject("new", prompt)).text, (by, prompt)


async def test_what_is_far_from_an_answer_that_was_given_is_not_given_beside_it(database: Path, by: str) -> None:
    async with opened(database) as memory:
        await filled(memory)
        prompt = "at how many degrees are the rye loaves baked?"
        [answer, *_] = (await memory.search_memory(prompt)).hits
        assert answer.text == TEMPERATURE
        assert (await memory.hooks.inject("new", prompt, shown=frozenset([answer.record_id]))).text == "", by
