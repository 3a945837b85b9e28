"""Ask: what the assistant's search finds, and why; and what a subject would take along if it were forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from kalito_mcp.domain.search import NEAR_FROM, Hit, SearchPage
from kalito_mcp.errors import KalitoError
from kalito_mcp.memory.verbs import forgetting, search
from kalito_mcp.memory.verbs.shapes import SessionName
from kalito_mcp.web.page.chart import Segment, side_by_side
from kalito_mcp.web.page.view import Shown, View, ViewFields, Visit

_HITS: Final = 10
_FULL_BAR: Final = 100
_PARTS: Final[Mapping[str, str]] = {
    "words": "words",
    "meaning": "meaning",
    "nearby": "turns around it",
    "time": "time",
    "speaker": "speaker",
    "assistant": "said by the assistant",
}
"""The terms of a score, in the order of its bar, with their names for people."""


class Ask(ViewFields):
    """A question, its other wordings (one on each line), and a second question."""

    q: Annotated[str | None, Field(max_length=4_000)] = None
    also: Annotated[str | None, Field(max_length=4_000)] = None
    q2: Annotated[str | None, Field(max_length=4_000)] = None
    session: SessionName | None = None
    cursor: Annotated[str | None, Field(max_length=400)] = None


class About(ViewFields):
    """What is to be forgotten: everything on a subject, or with a number, a key or an address."""

    about: Annotated[str | None, Field(max_length=200)] = None
    identifier: Annotated[str | None, Field(max_length=200)] = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A hit as it is shown: with the parts of its score, and what it has in common with the question."""

    hit: Hit
    segments: tuple[Segment, ...]
    lowered: float
    nearness: str


@dataclass(frozen=True, slots=True)
class Answers:
    """One question, and what was found for it: what is near, and what is further away."""

    question: str
    near: tuple[Passage, ...]
    far: tuple[Passage, ...]
    note: str | None
    next_cursor: str | None


async def ask(visit: Visit[Ask]) -> Shown:
    """The passages of one question, or of two side by side."""
    sent = visit.sent
    also = [line for line in (sent.also or "").splitlines() if line.strip()]
    asked = [one for one in (sent.q, sent.q2) if one]
    found = [await _answers(visit, one, also if one == sent.q else []) for one in asked]
    title = sent.q or "Ask"
    hits = [one.hit for answers in found for one in (*answers.near, *answers.far)]
    fixed = await visit.memory.spaces.fixed({one.record_id: one.space for one in hits})
    return Shown("ask.html", title, {"sent": sent, "found": found, "fixed": fixed})


async def about(visit: Visit[About]) -> Shown:
    """What forgetting a subject would take along."""
    sent = visit.sent
    records, problem = [], None
    if sent.about or sent.identifier:
        try:
            subject = forgetting.SubjectToPreview(about=sent.about, identifier=sent.identifier)
            records = list((await forgetting.preview(visit.caller(), subject)).records)
        except KalitoError as error:
            problem = str(error)
    return Shown("about.html", "Forget everything about", {"sent": sent, "records": records, "problem": problem})


async def _answers(visit: Visit[Ask], question: str, also: list[str]) -> Answers:
    sent = search.Search(
        query=question,
        also=also or None,
        k=_HITS,
        session_id=visit.sent.session,
        explain=True,
        cursor=visit.sent.cursor if question == visit.sent.q else None,
    )
    # A person who looks is no assistant that was given something.
    found = await search.search(visit.caller(), sent, is_preview=True)
    passages = [passage_of(hit) for hit in found.page.hits]
    near = tuple(one for one in passages if one.hit.score >= NEAR_FROM)
    far = tuple(one for one in passages if one.hit.score < NEAR_FROM)
    return Answers(question, near, far, _note(found.page), found.next_cursor)


def _note(page: SearchPage) -> str | None:
    """Why nothing was found, or what could not be searched."""
    return page.note or (None if page.hits else "nothing matches; ask in other words, or of all projects")


def passage_of(hit: Hit) -> Passage:
    """A hit with the bar of its score. Only the terms that raise it have a width."""
    values = ((name, label, hit.parts.get(name, 0.0)) for name, label in _PARTS.items())
    segments = side_by_side((name, label, value, value * _FULL_BAR) for name, label, value in values)
    return Passage(hit, segments, -min(0.0, hit.parts.get("assistant", 0.0)), _nearness(hit))


def _nearness(hit: Hit) -> str:
    if hit.parts.get("words", 0.0) > 0 and not (hit.why or "").startswith("other messages"):
        return "has your words"
    return "near in meaning" if hit.parts.get("meaning", 0.0) > 0 else "next to a match"


ASK: Final = (View("/ask", ask, Ask), View("/about", about, About))
