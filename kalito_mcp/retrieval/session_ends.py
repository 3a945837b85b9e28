"""How the latest conversations ended: their last messages. Pure, except for what it reads of the index."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.text.analysis import query_terms
from kalito_mcp.text.questions import answers_nothing
from kalito_mcp.text.sentences import without_opener
from kalito_mcp.text.times.expressions import Span

_TURNS: Final = 4
"""Of a conversation's end."""

_READ: Final = 8
_LEAST_TERMS: Final = 3
"""A turn of fewer ("thanks, bye", and the reply to it) tells nothing of the work."""
_MOST_CHARS: Final = 400
"""Of a message that are looked at for that."""


def session_ends(
    index: SearchIndex,
    *,
    most: int,
    filters: SearchFilters,
    of_project: bool = False,
    spans: Sequence[Span] = (),
    without: str | None = None,
) -> list[list[Candidate]]:
    """The last messages of the latest conversations, the latest conversation first; messages of one in their order.

    A conversation is as late as its newest message. `of_project` leaves out conversations without a project. `spans`
    narrow it to messages of these times. It leaves out the session `without`, turns that are too short to be
    informative, and conversations without an answer. A turn is left out as a whole: its reply would read as the reply
    to another prompt.
    """
    records = index.records
    found = np.flatnonzero(in_scope(index, filters) & (records.sessions >= 0))
    if of_project:
        found = found[records.projects[found] >= 0]
    found = found[is_admitted(index, found, filters)]
    if spans:
        said_at = records.created_at[found]
        found = found[np.any([(span.first <= said_at) & (said_at <= span.last) for span in spans], axis=0)]
    if without is not None:
        found = found[records.sessions[found] != records.session_numbers.get(without, -1)]
    if not len(found):
        return []
    sessions = records.sessions[found]
    latest = np.zeros(int(sessions.max()) + 1, np.int64)
    np.maximum.at(latest, sessions, records.created_at[found])
    last = [found[sessions == one][-_READ:] for one in np.argsort(-latest, kind="stable")[:most] if latest[one]]
    said = index.candidates(np.concatenate(last))
    ends = [[said[place] for place in places.tolist() if place in said] for places in last]
    return [end for end in map(_telling, ends) if len(end) > 1]


def _telling(said: Sequence[Candidate]) -> list[Candidate]:
    turns: list[list[Candidate]] = []
    for one in said:
        if one.role is Role.USER or not turns:
            turns.append([])
        turns[-1].append(one)
    return [one for turn in turns if _tells(turn) for one in turn][-_TURNS:]


def _tells(turn: Sequence[Candidate]) -> bool:
    begun = (without_opener(one.text[:_MOST_CHARS]) for one in turn)
    terms = {term for text in begun if text and not answers_nothing(text) for term in query_terms(text)}
    return len(terms) >= _LEAST_TERMS
