"""Whatever type a program hands to the library by mistake, it gets a KalitoError, and what is stored stays readable."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from kalito_mcp import (
    CreatePinRequest,
    CreateSummaryRequest,
    FinalizeOptions,
    GraphConfig,
    KalitoError,
    Memory,
    NewMessage,
    PinType,
    Role,
    SearchFilters,
    SearchRequest,
    open_memory,
)
from kalito_mcp.domain.digest import Digest
from kalito_mcp.domain.erasing import ForgetRequest
from kalito_mcp.domain.records import Origin
from kalito_mcp.errors import InvalidInput

pytestmark = pytest.mark.anyio

SAID: Final = NewMessage(Role.USER, "The gate code is on the fridge.")
FILTERS: Final = SearchFilters(roles=frozenset({Role.USER}))
ODD: Final[Sequence[Any]] = (
    None, True, 5, -1, 1.5, 10**30, float("nan"), "", "robot", "\ud83d", b"x", object(), ["x"], [1], [None], {"a": 1},
    {1: 2}, {"x"}, (), SAID,
)  # fmt: skip
CALLS: Final[Sequence[tuple[str, Sequence[Any], dict[str, Any]]]] = (
    ("record_messages", ("s", [replace(SAID, name="Ada", token_usage=3, details={"tags": ["a"]})]), {"agent_id": None}),
    ("build_context", ("s", 2000), {"query": "gate", "seen_messages": 0, "pending_input": False, "include": ()}),
    ("build_context", ("s",), {"query": "gate", "also": ("code",)}),
    ("search_memory", (SearchRequest("gate", filters=FILTERS, also=("code",)),), {"session_id": "s"}),
    ("past_answers", ("gate",), {"session_id": "s", "agent_id": None}),
    ("create_pin", (CreatePinRequest("s", "The code is on the fridge.", scope="session"),), {}),
    ("create_summary", (CreateSummaryRequest("s", "msg_1", "msg_1", message_count=1),), {}),
    ("conversations.summarize", ("s",), {}),
    ("conversations.adopt_summary", ("s", "The gate."), {}),
    ("keep_digest", ("s", Digest(decided=("The gate stays.",), open=("It squeaks.",))), {}),
    ("record_feedback", ("msg_1", "up", "thanks"), {"session_id": "s", "agent_id": None}),
    ("finalize_session", ("s", FinalizeOptions(dry_run=True)), {}),
    ("remember", ("task", {"text": "Oil the gate"}), {"session_id": "s", "agent_id": None, "client_key": None}),
    ("update_memory", ("msg_1", {"text": "The gate code is 7."}), {"expected_revision": 1}),
    ("forget", ("msg_1",), {"expected_revision": 1}),
    ("restore", ("msg_1",), {}),
    ("records.revert", ("msg_1", 1), {}),
    ("records.history", ("msg_1",), {}),
    ("records.get", ("msg_1",), {}),
    ("records.as_of", ("msg_1", 5), {}),
    ("records.version", ("msg_1", 1), {}),
    ("records.diff", ("msg_1", 1, 2), {}),
    ("records.tasks", (), {"agent_id": None, "is_done": None}),
    ("records.preview_forgetting", (ForgetRequest(about="gate"),), {}),
    ("records.forget_previewed", (ForgetRequest(about="gate"), "x"), {}),
    ("records.purge_previewed", (ForgetRequest(about="gate"), "x"), {}),
    ("purge", ([],), {}),
    ("conversations.stats", ("s",), {}),
    ("conversations.score", ("s",), {}),
    ("conversations.recent", (), {"prefix": "", "limit": 5, "before": None}),
    ("conversations.graph_overview", (), {"session_id": "s", "agent_id": None}),
    ("conversations.transcript", ("s",), {}),
    ("manager.needs_summarization", ("s",), {}),
    ("manager.auto_summarize_session", ("s",), {}),
    ("manager.find_relevant_messages", ("s", "gate", 3), {}),
    ("manager.update_message_importance", ("msg_1", 0.5), {}),
    ("manager.get_session_model", ("s",), {}),
    ("manager.is_local_model", ("m",), {}),
    ("orchestrator().search", ("s", "gate", 3), {}),
    ("orchestrator().upsert_query", ("s", "where is the code?"), {}),
    ("orchestrator().record_feedback", ("s", "msg_1", "up", None), {}),
)  # fmt: skip


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path / "memory.db") as opened:
        await opened.record_messages("s", [SAID])
        await opened.settled()
        yield opened


def spoilt(value: Any) -> Iterator[Any]:
    """The odd values, and what becomes of the value with an odd one in one of its fields."""
    yield from ODD
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            for odd in ODD:
                yield replace(value, **{field.name: odd})
    if isinstance(value, list):
        yield from ([one] for item in value for one in spoilt(item))


def verb(memory: Memory, name: str) -> Callable[..., Any]:
    part, _, last = name.rpartition(".")
    owner = {"": memory, "orchestrator()": memory.orchestrator()}.get(part) or getattr(memory, part)
    found: Callable[..., Any] = getattr(owner, last)
    return found


@pytest.mark.parametrize(("name", "given", "named"), CALLS, ids=[name for name, _, _ in CALLS])
async def test_any_argument_of_any_type_is_taken_or_refused_in_words(
    memory: Memory, name: str, given: Sequence[Any], named: dict[str, Any]
) -> None:
    calls = [
        ((*given[:place], odd, *given[place + 1 :]), named) for place, one in enumerate(given) for odd in spoilt(one)
    ]
    calls += [(tuple(given), {**named, key: odd}) for key, one in named.items() for odd in spoilt(one)]
    for arguments, keywords in calls:
        try:
            answer = verb(memory, name)(*arguments, **keywords)
            if hasattr(answer, "__await__"):
                await answer
        except KalitoError as error:
            assert error.code not in ("storage_damaged", "storage_error"), (arguments, keywords)
        except Exception as error:
            raise AssertionError(f"{name}{arguments!r} {keywords!r}") from error
    await memory.settled()
    for session in await memory.conversations.recent():
        for message in (await memory.conversations.transcript(session.id)).messages:
            message.to_dict()
        await memory.build_context(session.id)


@pytest.mark.parametrize("pin_type", ["zzz", "Manual", 5, ["code"]])
async def test_a_pin_of_a_type_that_does_not_exist_is_refused_and_the_session_goes_on(
    memory: Memory, pin_type: Any
) -> None:
    with pytest.raises(InvalidInput, match="pin_type must be 'manual', 'auto', 'code', 'concept' or 'system'"):
        await memory.create_pin(CreatePinRequest("s", "The code is on the fridge.", pin_type=pin_type))
    kept = await memory.create_pin(CreatePinRequest("s", "The code is on the fridge.", pin_type="code"))  # type: ignore[arg-type] # a string, as the documents write it
    assert kept.pin_type is PinType.CODE
    assert [pin.id for pin in (await memory.build_context("s")).semantic_pins] == [kept.id]
    assert (await memory.finalize_session("s")).session.state == "FINALIZED"


@pytest.mark.parametrize("tokens", ["x", -1, 1.5, True, 10**10])
async def test_a_message_with_a_wrong_number_of_tokens_is_refused(memory: Memory, tokens: Any) -> None:
    with pytest.raises(InvalidInput, match="token_usage must be"):
        await memory.record_messages("s", [replace(SAID, token_usage=tokens)])
    assert (await memory.conversations.stats("s")).total_messages == 1


async def test_roles_and_origins_may_be_strings(memory: Memory) -> None:
    message = NewMessage("assistant", "It is on the fridge.", origin="document")  # type: ignore[arg-type] # as the documents write them
    await memory.record_messages("s", [message])
    stored = (await memory.conversations.transcript("s")).messages
    assert (stored[-1].role, stored[-1].origin) == (Role.ASSISTANT, Origin.DOCUMENT)
    with pytest.raises(InvalidInput, match=r"messages\[0\]\.role must be 'user', 'assistant' or 'system', not 'robot'"):
        await memory.record_messages("s", [NewMessage("robot", "x")])  # type: ignore[arg-type] # what is refused


async def test_half_a_character_is_kept_as_a_replacement_and_searched_as_one(memory: Memory) -> None:
    text = "the pier is closed \ud83d today"
    await memory.record_messages(
        "s", [NewMessage(Role.USER, text, name="Ada \ud83d", details={"tags": ["sea \ud83d"]})]
    )
    found = (await memory.search_memory(SearchRequest("pier \ud83d"))).hits
    assert found[0].text == "the pier is closed \ufffd today"
    note = (await memory.remember("note", {"text": "ferry \udc00", "tags": ["\udc00"]}))[0]
    assert (note.text, note.content["tags"]) == ("ferry \ufffd", ["\ufffd"])


async def test_json_is_stored_as_deep_as_it_can_be_shown_and_refused_beyond(memory: Memory) -> None:
    def nested(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    kept = replace(SAID, details={"attachments": [{"name": nested(200)}]})
    [record_id] = (await memory.record_messages("s", [kept])).message_ids
    assert (await memory.records.get(record_id)).content["attachments"] == [{"name": nested(200)}]
    with pytest.raises(InvalidInput, match="nested more than 220 levels deep"):
        await memory.record_messages("s", [replace(SAID, details={"attachments": nested(900)})])
    with pytest.raises(InvalidInput, match="nested more than 220 levels deep"):
        await memory.remember("note", {"text": "x", "tags": nested(900)})


def test_a_policy_takes_only_numbers_where_it_has_numbers() -> None:
    with pytest.raises(InvalidInput, match="max_nodes must be a number, not 'a'"):
        GraphConfig(max_nodes="a")  # type: ignore[arg-type] # what is refused
