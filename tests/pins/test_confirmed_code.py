"""Code of an assistant's answer is pinned where the person's next message says that it worked, or will be kept."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import Memory, Settings, open_memory
from kalito_mcp.domain.records import NewMessage, Origin, Role
from tests.scripted import CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio
ANSWER = "Clear the cache first.\n\n```sh\nnpm run clean\nnpm run build\n```\nThat usually helps."
PIN = "sh: npm run clean\nnpm run build"


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
        "it works now. Next: how do I add a test for it?",
        "ok builds fine. now the login page",
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
        "I will try it tonight",
        "It worked but now the tests fail",
    ],
)
async def test_code_that_nobody_confirms_is_not_pinned(memory: Memory, said: str) -> None:
    assert await pins(memory, user("npm install fails"), assistant(ANSWER), user(said)) == []


TWO = "Either\n\n```yaml\nretries: 3\n```\nor\n\n```sh\nmake retry\n```"


@pytest.mark.parametrize(
    ("said", "pinned"),
    [
        ("The second please, we may move.", "sh: make retry"),
        ("let's go with the first one. next: logging", "yaml: retries: 3"),
        ("yesss it's online. use this one for deploys from now on", "sh: make retry"),
        ("load 14, and three times as fast. this is the one to keep", "sh: make retry"),
        ("prints nothing now = good. saved to my runbook.", "sh: make retry"),
        ("should I go with the third one?", None),
        ("I'll keep this in mind", None),
        ("the first one failed on the second try", None),
    ],
)
async def test_what_is_chosen_or_to_be_kept_is_pinned_whatever_it_is(
    memory: Memory, said: str, pinned: str | None
) -> None:
    assert await pins(memory, user("how?"), assistant(TWO), user(said)) == ([pinned] if pinned else [])


@pytest.mark.parametrize(
    ("code", "is_pinned"),
    [
        ("sh\nnpm install", False),
        ("bash\nkubectl -n web logs api-1", False),
        ("bash\ngit reset --soft HEAD~2\ngit commit -m again", False),
        ("python\nx = compute()", False),
        ("bash\nexport A=1\nmake all", True),
        ("sql\nselect count(*) from visits;", True),
    ],
)
async def test_of_what_only_worked_commands_to_run_again_are_pinned(memory: Memory, code: str, is_pinned: bool) -> None:
    found = await pins(memory, user("how?"), assistant(f"Try\n\n```{code}\n```"), user("That worked, thanks!"))
    assert bool(found) == is_pinned


@pytest.mark.parametrize(
    ("said", "is_pinned"),
    [
        ('The command I use is this:\n```bash\npytest -q -m "not slow"\n```', True),
        ("clippy: I run it like this in CI\n```bash\ncargo clippy -- -D warnings\n```\nit says 9 arguments", True),
        ("It says\n```\nunknown key ExecStar, refusing\n```\nFixed, it runs", False),
        ("Can we use this from now on?\n```sh\nmake all\n```", False),
    ],
)
async def test_a_person_s_own_command_is_pinned_where_it_is_what_they_use(
    memory: Memory, said: str, is_pinned: bool
) -> None:
    assert bool(await pins(memory, assistant(ANSWER), user(said))) == is_pinned


@pytest.mark.parametrize(
    "asked",
    [
        "write the steps down, I'll want them next month",
        "can you give me the full thing once more?",
    ],
)
async def test_commands_that_were_asked_for_to_be_kept_are_pinned_and_follow_what_they_quote(
    memory: Memory, asked: str
) -> None:
    answered = await memory.record_messages("work", [user(asked), assistant(ANSWER)])
    await memory.settled()
    assert await pins(memory) == [PIN]
    await memory.update_memory(
        answered.message_ids[1], {"text": ANSWER.replace("npm run build", "npm run all")}, expected_revision=1
    )
    assert await pins(memory) == [PIN.replace("npm run build", "npm run all")]


async def test_of_two_proposals_the_one_that_is_named_is_pinned(memory: Memory) -> None:
    said = "zigbuild worked at the first try!"
    both = "Either\n```sh\ncross build --release\n```\nor\n```sh\ncargo zigbuild --release\n```"
    assert await pins(memory, user("how?"), assistant(both), user(said)) == ["sh: cargo zigbuild --release"]


async def test_a_newer_form_of_a_command_replaces_the_older(memory: Memory) -> None:
    old, new = (f"```sh\nuv run report --month {month}\n```" for month in ("may", "june"))
    found = await pins(memory, user("how?"), assistant(old), user("that works"), assistant(new), user("this works too"))
    assert found == ["sh: uv run report --month june"]


async def test_code_that_is_too_long_to_be_whole_is_not_pinned(memory: Memory) -> None:
    long = "```python\ndef f():\n" + "".join(f"    step_{n}()\n" for n in range(60)) + "```"
    assert await pins(memory, user("how?"), assistant(long), user("perfect, keep this one")) == []


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
        answered.message_ids[0], {"text": ANSWER.replace("npm run build", "npm run all")}, expected_revision=3
    )
    assert await pins(memory) == [PIN.replace("npm run build", "npm run all")]
    await memory.purge([answered.message_ids[0]])
    assert await pins(memory) == []
