"""The tool of feedback, record_feedback, and the wording of past answers, sleep cycles and promotions."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.domain.graph import (
    PastAnswer,
    PromotionReport,
)
from kalito_mcp.domain.sleep import (
    SleepCycleReport,
)
from kalito_mcp.domain.time import to_iso
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.tools.answers import answer, redaction_lines
from kalito_mcp.server.tools.shapes import (
    AgentId,
    PastAnswerText,
    PastQuestion,
    Promoted,
    RecordedFeedback,
    SleepCluster,
    SleepReport,
)
from kalito_mcp.text.plurals import plural

_SHOWN_CLUSTERS: Final = 10
_DECIMALS: Final = 4


class GraphTools:
    """The tool that records what the user thought of an answer."""

    def __init__(self, opened: MemoryHandle) -> None:
        self._opened = opened

    async def record_feedback(
        self,
        target_id: Annotated[
            str,
            Field(
                description="The rated message, such as `msg_45`, or a node_id of a past answer.",
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
            Field(description="Only for a node_id of source `session`: its conversation.", max_length=200),
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
    return PastQuestion(
        node_id=past.query_id,
        question=past.query,
        answers=[
            PastAnswerText(
                node_id=one.node_id,
                text=one.text,
                message_ids=list(one.record_ids),
                given_at=to_iso(one.given_at),
                feedback=round(one.feedback, _DECIMALS),
            )
            for one in past.answers
        ],
        message_ids=list(past.record_ids),
        similarity=round(past.similarity, _DECIMALS),
        score=round(past.score, _DECIMALS),
        source=past.scope.value,
        session_id=past.session_id,
        up=past.up,
        down=past.down,
        retry=past.retry,
    )


def past_lines(found: Sequence[PastAnswer]) -> Iterator[str]:
    """Past answers as lines of text: a heading, then each question with its answers below it."""
    if found:
        yield f"{plural(len(found), 'similar question')} asked before:"
    for past in found:
        shown = past_question(past)
        place = f" of session {shown.session_id}" if shown.session_id else ""
        liked = f"{past.up} up, {past.down} down, {plural(past.retry, 'retry')}"
        yield (
            f"{shown.node_id} (in the {shown.source}'s graph{place}, similarity {shown.similarity}, "
            f"score {shown.score}, {liked}, {_messages(past.record_ids)}): {shown.question}"
        )
        for one in shown.answers:
            yield (
                f"  answered by {one.node_id} ({one.given_at}, feedback {one.feedback}, "
                f"{_messages(one.message_ids)}): {one.text}"
            )


def sleep_report(report: SleepCycleReport) -> SleepReport:
    """A sleep cycle as structured content."""
    return SleepReport(
        trigger=report.trigger.value,
        inspected=report.inspected,
        freed_capacity=report.freed_capacity,
        clusters=[
            SleepCluster(
                anchor_id=one.anchor_id,
                merged_node_ids=list(one.merged_node_ids),
                summary=one.summary,
                before_rank=round(one.before_rank, _DECIMALS),
                after_rank=round(one.after_rank, _DECIMALS),
                freed_nodes=one.freed_nodes,
            )
            for one in report.clusters[:_SHOWN_CLUSTERS]
        ],
        clusters_in_all=len(report.clusters),
        timestamp=to_iso(report.timestamp),
    )


def promoted(report: PromotionReport) -> Promoted:
    """A promotion as structured content."""
    return Promoted(
        questions=len(report.query_ids),
        merged_with_known=report.merged,
        answers=report.answers,
        entities=report.entities,
    )


def _messages(record_ids: Sequence[str]) -> str:
    return ", ".join(record_ids) if record_ids else "no message"
