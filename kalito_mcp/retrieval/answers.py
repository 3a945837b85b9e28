"""The answers to hits that ask: the next turn of the session, if somebody else said it.

A question is often the best match for the same question, and tells nothing. Where the query asks what the assistant
said, each message of a user asks.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Answer, Candidate
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.filtering import SHOWN, in_scope
from kalito_mcp.safety.trust import is_withheld
from kalito_mcp.text.questions import ends_by_asking
from kalito_mcp.text.sentences import cut

_MAX_CHARS: Final = 300


def asks(hit: Candidate, *, of_assistant: bool) -> bool:
    """Whether a hit has an answer: it asks, or a user said it and the query asks what the assistant said."""
    return hit.seq is not None and (ends_by_asking(hit.text) or (of_assistant and hit.role is Role.USER))


def answers_to(index: SearchIndex, hits: Sequence[Candidate], *, of_assistant: bool) -> Mapping[int, Answer]:
    """The answers to those of the hits that ask, by the hit's key. What is a hit itself is no answer, nor is text of a
    tool that reads like an instruction."""
    records = index.records
    asking = np.array([hit.key for hit in hits if asks(hit, of_assistant=of_assistant)], np.int64)
    places = np.searchsorted(records.keys, asking)
    places = places[np.append(records.keys, -1)[places] == asking]
    following = records.next_turns[places]
    is_turn = (following >= 0) & (following < records.count)
    places, following = places[is_turn], following[is_turn]
    is_other = (records.names[places] != records.names[following]) | (records.roles[places] != records.roles[following])
    is_shown = in_scope(index, SHOWN)[following]
    known = ~np.isin(records.keys[following], [hit.key for hit in hits])
    places, following = places[is_other & is_shown & known], following[is_other & is_shown & known]
    said = {one.key: one for one in index.candidates(records.keys[following].tolist())}
    pairs = zip(records.keys[places].tolist(), records.keys[following].tolist(), strict=True)
    return {
        asked: _answer(said[answer])
        for asked, answer in pairs
        if answer in said and not is_withheld(said[answer].origin, said[answer].text)
    }


def _answer(said: Candidate) -> Answer:
    return Answer(said.record_id, said.role, said.name, cut(" ".join(said.text.split()), _MAX_CHARS))
