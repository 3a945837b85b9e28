"""Endpoints that find: search, past answers, and the feedback on them.

Queries are sent as bodies, never in a URL: proxies and browsers keep URLs.
"""

from typing import Final, Literal

from kalito_mcp.memory.verbs import search as verbs
from kalito_mcp.memory.verbs.shapes import Hit, Output, PastQuestion, Redacted
from kalito_mcp.web.rest.endpoint import Call, InProject, Reply, serves
from kalito_mcp.web.rest.shapes import NextCursor


class Found(Output):
    """Hits, best first. `note` says why there are none, or what could not be searched."""

    hits: list[Hit]
    next_cursor: NextCursor = None
    note: str | None = None


class PastQuestions(Output):
    """Similar questions that were asked before."""

    past_answers: list[PastQuestion]


class KeptFeedback(Output):
    """The feedback that was stored."""

    feedback_id: str
    target_id: str
    label: Literal["up", "down", "retry"]
    redacted: Redacted = None


async def search(call: Call[verbs.Search, InProject]) -> Reply:
    """One page of hits."""
    found = await verbs.search(await call.caller(), call.body)
    hits = [Hit(**one.to_dict()) for one in found.page.hits]
    return Reply(Found(hits=hits, next_cursor=found.next_cursor, note=found.page.note))


async def past_answers(call: Call[verbs.AskBefore, InProject]) -> Reply:
    """Similar questions, with their answers."""
    found = await verbs.past_answers(await call.caller(), call.body)
    return Reply(PastQuestions(past_answers=[PastQuestion(**one.to_dict()) for one in found]))


async def record_feedback(call: Call[verbs.Feedback, InProject]) -> Reply:
    """Remember what the user thought."""
    kept = await verbs.record_feedback(await call.caller(), call.body)
    target_id, label, redacted = call.body.target_id, call.body.label, list(kept.redacted)
    return Reply(KeptFeedback(feedback_id=kept.id, target_id=target_id, label=label, redacted=redacted or None))


FOUND: Final = (
    serves(verbs.SEARCH, "POST", "/search", search, Found, tag="search", is_idempotent=True),
    serves(verbs.PAST_ANSWERS, "POST", "/past-answers", past_answers, PastQuestions, tag="search", is_idempotent=True),
    serves(verbs.FEEDBACK, "POST", "/feedback", record_feedback, KeptFeedback, status=201, tag="search"),
)
