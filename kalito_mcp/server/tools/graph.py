"""The tool of feedback, record_feedback, and the wording of past answers."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.domain.past_answers import PastAnswer
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.tools.answers import answer, redaction_lines
from kalito_mcp.server.tools.shapes import AgentId, RecordedFeedback
from kalito_mcp.shapes import PastQuestion
from kalito_mcp.text.plurals import plural


class GraphTools:
    """The tool that records what the user thought of an answer."""

    def __init__(self, opened: MemoryHandle) -> None:
        self._opened = opened

    async def record_feedback(
        self,
        target_id: Annotated[
            str,
            Field(
                description="The rated message, such as `msg_45`, or a node of a graph.",
                min_length=1,
                max_length=200,
            ),
        ],
        label: Annotated[
            Literal["up", "down", "retry"],
            Field(description="`retry`: the user asked for another answer; counts as half a `down`."),
        ],
        note: Annotated[
            str | None, Field(description="Why, in the user's words.", min_length=1, max_length=4000, pattern=r"\S")
        ] = None,
        session_id: Annotated[
            str | None,
            Field(description="Only for a node of a session's graph: its conversation.", max_length=200),
        ] = None,
        agent_id: AgentId = None,
    ) -> Annotated[CallToolResult, RecordedFeedback]:
        """Record what the user thought of an answer or a question. It changes which past answers search_memory returns
        for similar questions. Not for facts or preferences: pin those with create_pin."""
        memory = await self._opened.memory()
        # Every tool accepts a message id without its prefix.
        target_id = f"msg_{target_id}" if target_id.isdecimal() else target_id
        kept = await memory.record_feedback(
            target_id, label, note, session_id=session_id or None, agent_id=agent_id or None
        )
        redacted = list(kept.redacted)
        return answer(
            "\n".join([f"Recorded {label} on {target_id} as {kept.id}.", *redaction_lines(redacted)]),
            RecordedFeedback(feedback_id=kept.id, target_id=target_id, label=label, redacted=redacted or None),
        )


def past_question(past: PastAnswer) -> PastQuestion:
    """A past answer as structured content."""
    return PastQuestion(**past.to_dict())


def past_lines(found: Sequence[PastAnswer]) -> Iterator[str]:
    """Past answers as lines of text: a heading, then each question with its answers below it."""
    if found:
        yield f"{plural(len(found), 'similar question')} asked before:"
    for past in found:
        liked = f"{past.up} up, {past.down} down, {plural(past.retry, 'retry')}"
        yield f"{_messages(past.record_ids)} (similarity {round(past.similarity, 4)}, {liked}): {past.question}"
        for one in past_question(past).answers:
            yield f"  answered by {_messages(one.message_ids)} ({one.given_at}, feedback {one.feedback}): {one.text}"


def _messages(record_ids: Sequence[str]) -> str:
    return ", ".join(record_ids)
