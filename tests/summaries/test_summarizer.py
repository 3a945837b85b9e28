"""The summarizer against a real model server on loopback, through the real registry and client."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Role, SummaryMethod
from kalito_mcp.errors import ModelUnavailable
from kalito_mcp.inference.registry import ModelRegistry, ModelServer
from kalito_mcp.ports.chat import ChatModel, ChatRequest
from kalito_mcp.summaries.prompts import SUMMARY_OF_SUMMARIES, fit_lines
from kalito_mcp.summaries.summarizer import Summarizer, SummaryPolicy, WrittenSummary, length_of_fold, length_of_summary
from tests.inference import model_server as scripted
from tests.inference.model_server import Reply, ScriptedServer
from tests.summaries.by_words import BY_WORDS, fold_summaries, summarize_messages

POLICY = SummaryPolicy()
GOOD = "User asked which medications grandma takes; Lisinopril 10mg was confirmed, once daily at 8am."
POEM = "Title: A Spring Day\n\nIn fields where flowers gently sway,\nThe sun shines bright on this spring day."
TURNS = (
    (Role.USER, "What medications does grandma take?"),
    (Role.ASSISTANT, "Your grandmother is currently taking Lisinopril 10mg for blood pressure, and nothing else."),
    (Role.USER, "What time should she take it?"),
    (Role.ASSISTANT, "The Lisinopril should be taken once daily at 8am, with water, before breakfast if she can."),
)
LOCAL_SYSTEM = """TASK: Create a brief summary of the conversation below. Focus ONLY on what was discussed, not generating new content.

FORMAT: 1-2 sentences describing the key topics and outcomes.
EXAMPLE: "User asked about poetry types, discussed sonnets and free verse, then collaborated on writing original poems with simple themes."

DO NOT: Create new poems, stories, or content. Only summarize what was already discussed."""  # noqa: E501
CLOUD_SYSTEM = """You are a conversation summarizer. Create a concise summary of the following conversation that preserves:
1. Key topics discussed
2. Important decisions made
3. Facts or information shared
4. Current context/state

Keep the summary under 200 words and focus on what's most relevant for continuing the conversation."""  # noqa: E501


@dataclass
class ScriptedClock:
    def now_ms(self) -> int:
        return 0

    def steady_s(self) -> float:
        return 0.0


@dataclass(frozen=True)
class OneModel:
    """A ChatModels that knows one model by every id."""

    chat: ChatModel

    def find(self, model_id: str) -> ChatModel | None:
        return self.chat


def message(seq: int, role: Role, text: str, name: str | None = None) -> MessageWithImportance:
    return MessageWithImportance(
        id=seq,
        session_id="session_123",
        role=role,
        text=text,
        model_id=None,
        token_usage=None,
        created_at=seq,
        importance_score=0.5,
        seq=seq,
        tokens=len(text) // 4,
        name=name,
    )


def part(number: int, text: str) -> ConversationSummary:
    return ConversationSummary(
        id=f"summary_{number}_abcdefghi",
        session_id="session_123",
        summary=text,
        message_count=15,
        start_message_id=f"msg_{number * 15 - 14}",
        end_message_id=f"msg_{number * 15}",
        importance_score=0.7,
        created_at=number,
        tokens=20,
        level=0,
        start_seq=number * 15 - 14,
        end_seq=number * 15,
        started_at=0,
        ended_at=0,
        method=SummaryMethod.MODEL,
    )


CONVERSATION = [message(seq, role, text) for seq, (role, text) in enumerate(TURNS * 3, start=1)]


def registry(url: str, *, total_timeout_s: float = 10.0) -> ModelRegistry:
    """`llama3.2` on a local server and every `gpt-*` in the cloud, both played by one scripted server."""
    return ModelRegistry(
        [
            ModelServer("home", "ollama", url, ("llama3.2",), total_timeout_s=total_timeout_s, max_retries=2),
            ModelServer("cloud", "openai", f"{url}/v1", ("gpt-*",), is_local=False, total_timeout_s=total_timeout_s),
        ],
        ScriptedClock(),
    )


@asynccontextmanager
async def summarizing(
    *replies: Reply, total_timeout_s: float = 10.0
) -> AsyncIterator[tuple[Summarizer, ScriptedServer]]:
    async with ScriptedServer(*replies) as server:
        models = registry(server.url, total_timeout_s=total_timeout_s)
        yield Summarizer(models, BY_WORDS), server
        await models.aclose()


def assert_extractive(written: WrittenSummary, flaw: str) -> None:
    assert written.text == summarize_messages(CONVERSATION, max_chars=length_of_summary(CONVERSATION))
    assert (written.method, written.model_id) == (SummaryMethod.EXTRACTIVE, None)
    assert written.flaw is not None
    assert flaw in written.flaw


@pytest.mark.parametrize(
    ("session_model", "summarization_model"),
    [("llama3.2", "llama3.2"), ("gpt-4o-mini", "gpt-4.1-mini"), (None, "gpt-4.1-mini")],
)
def test_a_local_session_keeps_its_model_and_any_other_goes_to_the_cloud_model(
    session_model: str | None, summarization_model: str
) -> None:
    """memory-manager-reference, Selection Strategy, rows 1-3."""
    summarizer = Summarizer(registry("http://127.0.0.1:9"), BY_WORDS)

    assert summarizer.summarization_model(session_model) == summarization_model


def test_an_unknown_model_is_not_local() -> None:
    summarizer = Summarizer(registry("http://127.0.0.1:9"), BY_WORDS)

    assert summarizer.is_local_model("llama3.2")
    assert not summarizer.is_local_model("gpt-4o-mini")
    assert not summarizer.is_local_model("claude-opus")
    assert not summarizer.is_local_model("")


@pytest.mark.anyio
async def test_a_local_model_is_asked_with_the_strict_prompt_and_100_tokens() -> None:
    """memory-manager-reference, Local Model Prompt, Input Preparation, Settings (0.1, 100)."""
    async with summarizing(scripted.ollama_says(f" {GOOD}\n")) as (summarizer, server):
        written = await summarizer.summarize(CONVERSATION[:4] * 2, session_model="llama3.2")

    assert written == WrittenSummary(GOOD, SummaryMethod.MODEL, "llama3.2", None)
    [call] = server.calls
    system, user = (turn["content"] for turn in call.body["messages"])
    assert system == LOCAL_SYSTEM
    lines = [f"{role}: {text}" for role, text in TURNS] * 2
    assert user == "Conversation to summarize:\n" + "\n".join(lines) + "\n\nProvide only the summary:"
    assert call.body["model"] == "llama3.2"
    assert call.body["options"] == {"temperature": 0.1, "num_predict": 100}


@pytest.mark.anyio
async def test_a_cloud_model_is_asked_with_the_flexible_prompt_and_300_tokens() -> None:
    """memory-manager-reference, Cloud Model Prompt, Input Preparation, Settings (0.1, 300)."""
    async with summarizing(scripted.openai_says(GOOD)) as (summarizer, server):
        written = await summarizer.summarize(CONVERSATION, session_model="gpt-4o-mini")

    assert written == WrittenSummary(GOOD, SummaryMethod.MODEL, "gpt-4.1-mini", None)
    [call] = server.calls
    system, user = (turn["content"] for turn in call.body["messages"])
    assert system == CLOUD_SYSTEM
    lines = [f"{role}: {text}" for role, text in TURNS] * 3
    assert user == "Please summarize this conversation:\n\n" + "\n".join(lines)
    assert call.body["model"] == "gpt-4.1-mini"
    assert (call.body["temperature"], call.body["max_tokens"]) == (0.1, 300)


@pytest.mark.anyio
async def test_a_speaker_with_a_name_goes_by_it_and_braces_are_just_braces() -> None:
    async with summarizing(scripted.ollama_says("?")) as (summarizer, server):
        await summarizer.summarize([message(1, Role.USER, "{0} %s {text}", name="Ada")], session_model="llama3.2")

    assert "\nAda: {0} %s {text}\n" in server.calls[0].body["messages"][1]["content"]


@pytest.mark.anyio
async def test_a_poem_gives_way_to_the_extractive_text() -> None:
    """memory-manager-reference, Step 6: Validate Summary (a poem instead of a summary)."""
    async with summarizing(scripted.ollama_says(POEM)) as (summarizer, server):
        written = await summarizer.summarize(CONVERSATION, session_model="llama3.2")

    assert_extractive(written, "its answer begins with a title")
    assert len(server.calls) == 1


@pytest.mark.anyio
async def test_a_cloud_models_poem_does_too() -> None:
    async with summarizing(scripted.openai_says(POEM)) as (summarizer, _):
        assert_extractive(await summarizer.summarize(CONVERSATION, session_model=None), "begins with a title")


@pytest.mark.anyio
async def test_300_characters_bound_a_local_answer_and_not_a_cloud_one() -> None:
    answer = ("Grandma takes Lisinopril once daily at 8am. " * 8)[:310].strip()
    long_talk = CONVERSATION * 4
    async with summarizing(scripted.ollama_says(answer), scripted.openai_says(answer)) as (summarizer, _):
        local = await summarizer.summarize(long_talk, session_model="llama3.2")
        cloud = await summarizer.summarize(long_talk, session_model="gpt-4o-mini")

    assert local.method is SummaryMethod.EXTRACTIVE
    assert cloud.method is SummaryMethod.MODEL


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "flaw"),
    [
        (scripted.never_answers, "within 0.7 s"),
        (scripted.hangs_after_the_head, "within 0.7 s"),
        (scripted.drips, "within 0.7 s"),
        (scripted.body(b"garbage"), "not JSON"),
        (scripted.json_body({"message": 7}), "not a chat completion"),
        (scripted.status(401), "answered 401"),
        (scripted.ollama_says(" \n"), "is empty"),
        (scripted.ollama_says("Lisinopril \x1b[2J once daily"), "control characters"),
        (scripted.ollama_says("Lisinopril \ud800 once daily"), "lone surrogates"),
    ],
)
async def test_whatever_the_server_does_there_is_a_summary_in_time(reply: Reply, flaw: str) -> None:
    async with summarizing(reply, total_timeout_s=0.7) as (summarizer, server):
        written = await summarizer.summarize(CONVERSATION, session_model="llama3.2")

    assert_extractive(written, flaw)
    assert len(server.calls) == 1


@pytest.mark.anyio
async def test_a_failing_server_is_called_at_most_three_times_a_summary_and_five_times_in_all() -> None:
    async with summarizing(scripted.status(500)) as (summarizer, server):
        written = await summarizer.summarize(CONVERSATION, session_model="llama3.2")
        assert_extractive(written, "answered 500")
        assert len(server.calls) == 3

        for _ in range(4):
            written = await summarizer.summarize(CONVERSATION, session_model="llama3.2")

    assert_extractive(written, "was not asked because it failed too often")
    assert len(server.calls) == 5


@pytest.mark.anyio
async def test_the_summarizer_has_a_deadline_of_its_own() -> None:
    async with ScriptedServer(scripted.never_answers) as server:
        models = registry(server.url)
        summarizer = Summarizer(models, BY_WORDS, deadline_s=0.2)
        with anyio.fail_after(5):
            written = await summarizer.summarize(CONVERSATION, session_model="llama3.2")
        await models.aclose()

    assert_extractive(written, "did not answer within 0.2 s")


@pytest.mark.anyio
async def test_without_a_server_nothing_is_asked_and_nothing_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    summarizer = Summarizer(ModelRegistry([], ScriptedClock()), BY_WORDS)

    for session_model in (None, "llama3.2", "gpt-4o-mini"):
        written = await summarizer.summarize(CONVERSATION, session_model=session_model)
        assert written.method is SummaryMethod.EXTRACTIVE
        assert written.text
        assert (written.model_id, written.flaw) == (None, None)

    assert caplog.records == []


@pytest.mark.anyio
async def test_no_messages_give_the_specifications_sentence_and_no_call() -> None:
    """memory-manager-reference, Step 1: Handle Empty Input."""
    async with summarizing(scripted.ollama_says(GOOD)) as (summarizer, server):
        nothing = await summarizer.summarize([], session_model="llama3.2")
        assert await summarizer.fold([], session_model="llama3.2") == nothing

    assert nothing == WrittenSummary("No messages to summarize", SummaryMethod.EXTRACTIVE, None, None)
    assert server.calls == []


@pytest.mark.anyio
async def test_the_log_says_why_and_quotes_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with summarizing(scripted.ollama_says(POEM)) as (summarizer, _):
        await summarizer.summarize(CONVERSATION, session_model="llama3.2")

    [record] = [record for record in caplog.records if record.name == "kalito.summaries"]
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "using an extractive summary instead of llama3.2: its answer begins with a title"
    assert "Lisinopril" not in caplog.text


@pytest.mark.anyio
async def test_summaries_are_folded_by_the_model_oldest_first() -> None:
    answer = "User set up pill reminders, then moved grandma's checkup to Nov 5."
    parts = [part(1, "User set up pill reminders at 8am. " * 5), part(2, "Checkup moved to Nov 5 at 10am. " * 5)]
    async with summarizing(scripted.ollama_says(answer)) as (summarizer, server):
        written = await summarizer.fold(parts, session_model="llama3.2")

    assert written == WrittenSummary(answer, SummaryMethod.MODEL, "llama3.2", None)
    system, user = (turn["content"] for turn in server.calls[0].body["messages"])
    assert system == SUMMARY_OF_SUMMARIES.system
    assert user.index("Part 1: User set up") < user.index("Part 2: Checkup moved")


@pytest.mark.anyio
async def test_a_fold_that_adds_a_story_gives_way_to_the_extractive_one() -> None:
    parts = [part(number, "User set up pill reminders at 8am. " * 5) for number in (1, 2)]
    async with summarizing(scripted.ollama_says("Once upon a time")) as (summarizer, _):
        written = await summarizer.fold(parts, session_model="llama3.2")

    assert written.method is SummaryMethod.EXTRACTIVE
    assert written.text == fold_summaries(parts, max_chars=length_of_fold(parts))
    assert written.flaw == "its answer begins like a story or a poem"


@pytest.mark.anyio
async def test_a_long_range_is_trimmed_for_a_small_context_and_every_message_keeps_its_head() -> None:
    long_talk = [message(seq, Role.USER, f"point {seq} " + "and so on " * 2_000) for seq in range(1, 16)]
    async with summarizing(scripted.ollama_says("?"), scripted.openai_says("?")) as (summarizer, server):
        await summarizer.summarize(long_talk, session_model="llama3.2")
        await summarizer.summarize(long_talk, session_model=None)

    local, cloud = (call.body["messages"][1]["content"] for call in server.calls)
    assert 5_900 < len(local) < 6_100
    assert 47_900 < len(cloud) < 48_100
    for seq in range(1, 16):
        assert f"\nuser: point {seq} and so on" in local


@given(st.lists(st.text(max_size=300).map(lambda text: text.replace("\n", " ")), max_size=60), st.integers(100, 3_000))
def test_lines_always_fit_and_short_ones_are_whole(lines: list[str], room: int) -> None:
    fitted = fit_lines(lines, room)

    assert len(fitted) <= room
    if len("\n".join(lines)) <= room:
        assert fitted == "\n".join(lines)


def test_the_longest_line_pays_first_and_the_middle_goes_when_there_are_too_many() -> None:
    assert fit_lines(["short", "x" * 500, "also short"], 100) == "short\n" + "x" * 82 + "…\nalso short"

    lines = fit_lines([f"{number}: {'x' * 50}" for number in range(100)], 410).split("\n")
    assert len(lines) == 10
    assert lines[0].startswith("0: ")
    assert lines[5] == "[91 lines left out]"
    assert lines[-1].startswith("99: ")


@pytest.mark.anyio
async def test_an_error_that_is_no_model_error_is_not_hidden() -> None:
    class Broken:
        is_local = True

        async def complete(self, request: ChatRequest) -> str:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Summarizer(OneModel(Broken()), BY_WORDS).summarize(CONVERSATION, session_model="m")


@pytest.mark.anyio
async def test_any_chat_model_will_do() -> None:
    class Away:
        is_local = False

        async def complete(self, request: ChatRequest) -> str:
            raise ModelUnavailable("it is away; wait")

    written = await Summarizer(OneModel(Away()), BY_WORDS).summarize(CONVERSATION, session_model="m")

    assert_extractive(written, "it is away; wait")
