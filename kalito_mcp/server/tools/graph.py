"""The tool of feedback, record_feedback, and the wording of past answers."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from mcp.types import CallToolResult

from kalito_mcp.domain.past_answers import PastAnswer
from kalito_mcp.memory.verbs import search as verbs
from kalito_mcp.memory.verbs.shapes import PastQuestion
from kalito_mcp.server.tools.answers import answer, redaction_lines
from kalito_mcp.server.tools.serving import ToolContext, caller_of, serving
from kalito_mcp.server.tools.shapes import RecordedFeedback
from kalito_mcp.text.plurals import plural


async def record_feedback(context: ToolContext, sent: verbs.Feedback) -> Annotated[CallToolResult, RecordedFeedback]:
    """Record what the user thought of an answer or a question. It changes which past answers search_memory returns
    for similar questions. Not for facts or preferences: pin those with create_pin."""
    kept = await verbs.record_feedback(caller_of(context, await serving(context).opened.memory()), sent)
    redacted = list(kept.redacted)
    return answer(
        "\n".join([f"Recorded {sent.label} on {sent.target_id} as {kept.id}.", *redaction_lines(redacted)]),
        RecordedFeedback(feedback_id=kept.id, target_id=sent.target_id, label=sent.label, redacted=redacted or None),
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
