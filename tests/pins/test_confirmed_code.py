"""Code of an assistant's answer is pinned where the person's next message says that it worked, or will be kept."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import Memory, Settings, open_memory
from kalito_mcp.domain.records import NewMessage, Origin, Role
from tests.scripted import CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio
ANSWER = "Clear the cache first.\n\n```sh\nnpm cache clean --force\nnpm ci\n```\nThat usually helps."
PIN = "sh: npm cache clean --force\nnpm ci"


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(database, Settings(), clock=clock, ids=CountedIds()) as opened:
        yield opened


async def pins(memory: Memory, *said: NewMessage) -> list[str]:
    """The pins of a session with these messages, each of which arrives by itself."""
    for one in said:
        await memory.record_messages("work", [one])
        await memory.settled()
    context = await memory.build_context("work")
    return [pin.content for pin in context.semantic_pins]


def user(text: str) -> NewMessage:
    return NewMessage(Role.USER, text)


def assistant(text: str) -> NewMessage:
    return NewMessage(Role.ASSISTANT, text)


@pytest.mark.parametrize(
    "said",
    [
        "That worked, thanks!",
        "perfect, that fixed it",
        "it works now. Next: how do I add a test for it?",
        "ok builds fine. now the login page",
        "Let's keep this as the standard way.",
        "all green",
        "Super, das funktioniert jetzt.",
        "好了，谢谢",
    ],
)
async def test_code_that_the_next_message_confirms_is_pinned(memory: Memory, said: str) -> None:
    assert await pins(memory, user("npm install fails"), assistant(ANSWER), user(said)) == [PIN]


@pytest.mark.parametrize(
    "said",
    [
        "Does that work on Windows?",
        "that didn't work",
        "it works if I run it twice",
        "this almost works",
        "How does that work?",
        "I will try it tonight",
        "It worked but now the tests fail",
        "ok thanks",
    ],
)
async def test_code_that_nobody_confirms_is_not_pinned(memory: Memory, said: str) -> None:
    assert await pins(memory, user("npm install fails"), assistant(ANSWER), user(said)) == []


async def test_only_the_newest_version_of_a_function_stays_pinned(memory: Memory) -> None:
    first, second = (f"```python\ndef slug(text):\n    return text.{verb}()\n```" for verb in ("lower", "casefold"))
    found = await pins(
        memory, assistant(first), user("that works"), assistant(second), user("this works too, let's keep this")
    )
    assert found == ["python: def slug(text):\n    return text.casefold()"]


async def test_code_with_a_secret_or_of_a_tool_is_not_pinned(memory: Memory) -> None:
    secret = assistant("```sh\nexport PASSWORD='correct-horse-battery'\n```")
    page = NewMessage(Role.ASSISTANT, ANSWER, origin=Origin.TOOL)
    assert await pins(memory, secret, user("that worked"), page, user("that worked")) == []


async def test_a_pin_of_confirmed_code_goes_and_comes_with_the_answer_that_it_quotes(memory: Memory) -> None:
    answered = await memory.record_messages("work", [assistant(ANSWER), user("That worked!")])
    await memory.settled()
    await memory.forget(answered.message_ids[0])
    assert await pins(memory) == []
    await memory.restore(answered.message_ids[0])
    assert await pins(memory) == [PIN]
    await memory.update_memory(
        answered.message_ids[0], {"text": ANSWER.replace("npm ci", "npm install")}, expected_revision=3
    )
    assert await pins(memory) == [PIN.replace("npm ci", "npm install")]
    await memory.purge([answered.message_ids[0]])
    assert await pins(memory) == []
