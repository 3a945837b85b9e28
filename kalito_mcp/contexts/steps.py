"""Ranks the sentences of hits and of the messages around them for a context. Pure.

A step is a sentence of a turn; a context shows the first steps that fit. Its value is the score of the hit, more if the
sentence is probably informative or matches the query (`Sentences.worth`). A message around a hit has half the score of
the hit, and less with every turn between them.

What an assistant said never stands without the user's answer to it, which is in the same step: a proposal that was
overruled reads like a decision. Nor does a question without the first sentence of its answer: alone it says nothing. A
reply that only asks answers nothing.

The figures were chosen on 180 questions of three people, and hold for each of them: see "A context is chosen by the
sentence" in `docs/decisions/contexts.md`.
"""

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from kalito_mcp.contexts.excerpts import Sentences
from kalito_mcp.contexts.passages import Turn
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.text.analysis import query_terms
from kalito_mcp.text.questions import questions_in

HIT_CHARS: Final = 4_000
"""Of a hit. Of a longer one, an excerpt is taken for the whole."""

AROUND_CHARS: Final = 2_000
"""The same of a message around a hit."""

END_CHARS: Final = 400
"""The same of a message at the end of a conversation."""

ANSWER_CHARS: Final = 240
"""The part of a user's answer that is shown with any sentence of the message that it answers. The rest are separate
steps."""

BEFORE: Final = 2
AFTER: Final = 5
"""How many messages before and after a hit may be shown around it."""

ANSWERED_WITHIN: Final = 4
"""How many messages after one of the assistant's the user's answer to it is at most."""

_LAST: Final = 2
"""Turns at the end of a conversation."""

_WORTH: Final = 0.2
"""Of a sentence of a hit, added to the score of the hit."""

_AROUND: Final = 0.5
"""The value of a message around a hit, as a share of the score of the hit."""
_AROUND_WORTH: Final = 0.1
_PER_TURN: Final = 0.05
"""The loss of value with every turn between them."""

NEWEST: Final = 0.2
"""In a new conversation, added to an informative sentence of the newest message, and less the older the message is
among those found: work begins from the current state."""


_FIRST_CHARS: Final = 1_200
"""Of a hit, in its best sentences. The others lose half of its score, so that a long text does not fill a context."""
_FIRST_AROUND_CHARS: Final = 600
"""The same of a message around a hit."""
_FURTHER: Final = 0.5


class Part(NamedTuple):
    """A sentence of a turn: the id of its record, and its place in the text."""

    record_id: str
    place: int


class _Entry(NamedTuple):
    """A turn at a distance from a hit, 0 for the hit itself, that is not split yet; or with `part`, a sentence of it.
    `loss` is the negative value; for a turn, the value of the best sentence that it could have."""

    loss: float
    rank: int
    distance: int
    place: int
    part: Part | None


class Steps:
    """The steps of hits, which are best first, and of the messages around them, in no order. Each turn is split into
    sentences when its turn comes, because most never fit."""

    def __init__(self, hits: Sequence[Hit], around: Sequence[Candidate], query: str, *, newest: float = 0.0) -> None:
        """Sentences with the query's terms come earlier, and an excerpt of a long text is taken around them. `newest`
        is added to the value of the newest message."""
        self._asked = frozenset(query_terms(query))
        self._hits = hits
        said: list[Hit | Candidate] = [*around, *hits]
        self._said = {one.record_id: one for one in said}
        self._at = {(one.session_id, one.seq): one for one in self._said.values() if one.seq is not None}
        self._ranks = {one.record_id: rank for rank, one in enumerate(hits)}
        self._split: dict[str, Sentences] = {}
        self._turns: dict[tuple[str, frozenset[int]], Turn] = {}
        self._listed = {one.record_id for one in hits}
        self._made: list[frozenset[Part]] = []
        self._newest = newest
        moments = sorted({one.created_at for one in said})
        self._lateness = {at: (place + 1) / len(moments) for place, at in enumerate(moments)}
        self._entries = [_Entry(-hit.score - _WORTH - newest, rank, 0, -1, None) for rank, hit in enumerate(hits)]
        for distance in (*range(-BEFORE, 0), *range(1, AFTER + 1)):
            lost = _PER_TURN * (abs(distance) - 1) - _AROUND_WORTH - newest
            self._entries += [
                _Entry(lost - _AROUND * hit.score, rank, distance, -1, None) for rank, hit in enumerate(hits)
            ]
        heapify(self._entries)

    def first(self, count: int) -> list[frozenset[Part]]:
        """The best steps, at most this many."""
        while self._entries and len(self._made) < count:
            best = heappop(self._entries)
            if best.part is not None:
                self._made.append(frozenset([best.part, *self._belonging(best.part)]))
                continue
            said = self._at_distance(self._hits[best.rank], best.distance)
            if said is not None and (not best.distance or said.record_id not in self._listed):
                self._add_sentences(said, best)
        return self._made[:count]

    def turns(self, parts: Collection[Part]) -> list[Turn]:
        """The turns that have these parts, in no order."""
        places: dict[str, set[int]] = {}
        for part in parts:
            places.setdefault(part.record_id, set()).add(part.place)
        return [self._turn(record_id, frozenset(found)) for record_id, found in places.items()]

    def _add_sentences(self, said: Hit | Candidate, entry: _Entry) -> None:
        self._listed.add(said.record_id)
        self._ranks.setdefault(said.record_id, entry.rank)
        sentences = self._sentences(said.record_id)
        most, most_first = (_AROUND_WORTH, _FIRST_AROUND_CHARS) if entry.distance else (_WORTH, _FIRST_CHARS)
        worth = [sentences.worth(place, is_assistant=said.role is Role.ASSISTANT) for place in sentences.places]
        used, lateness = 0, self._lateness[said.created_at]
        for place in sorted(sentences.places, key=lambda place: (-worth[place], place)):
            loss = entry.loss + most * (1 - worth[place]) + self._newest * (1 - lateness * worth[place])
            used += len(sentences.texts[place])
            if used > most_first:
                loss += _FURTHER * self._hits[entry.rank].score
            heappush(self._entries, _Entry(loss, entry.rank, entry.distance, place, Part(said.record_id, place)))

    def _turn(self, record_id: str, places: frozenset[int]) -> Turn:
        made = self._turns.get((record_id, places))
        if made is None:
            sentences = self._sentences(record_id)
            text, is_whole = sentences.shown(places), sentences.is_whole(places)
            made = Turn(self._said[record_id], text, self._ranks[record_id], is_whole)
            self._turns[record_id, places] = made
        return made

    def _sentences(self, record_id: str) -> Sentences:
        made = self._split.get(record_id)
        if made is None:
            said = self._said[record_id]
            at_most = HIT_CHARS if isinstance(said, Hit) else AROUND_CHARS
            made = self._split[record_id] = Sentences(said.text, self._asked, at_most)
        return made

    def _belonging(self, part: Part) -> list[Part]:
        """What must stand with a sentence: after one of the assistant's, the reply of the user; after a question of
        anybody else, the first sentence of the answer, and the reply to that."""
        said = self._said[part.record_id]
        if said.role is Role.ASSISTANT:
            return self._reply(said)
        if said.seq is None or not questions_in(self._sentences(part.record_id).texts[part.place]):
            return []
        following = (self._at_distance(said, distance) for distance in range(1, ANSWERED_WITHIN + 1))
        answer = next((one for one in following if one and (one.role, one.name) != (said.role, said.name)), None)
        if answer is None:
            return []
        self._ranks.setdefault(answer.record_id, self._ranks[said.record_id])
        first = Part(answer.record_id, 0)
        return [first, *(self._reply(answer) if answer.role is Role.ASSISTANT else ())]

    def _reply(self, said: Hit | Candidate) -> list[Part]:
        """The beginnings of the messages after the assistant's up to the user's reply. Empty if the user did not reply
        soon, or only asked."""
        found: list[Part] = []
        for distance in range(1, ANSWERED_WITHIN + 1):
            following = self._at_distance(said, distance)
            if following is None:
                continue
            sentences = self._sentences(following.record_id)
            beginning = sentences.beginning(ANSWER_CHARS)
            found += [Part(following.record_id, place) for place in beginning]
            if following.role is Role.USER:
                if all(questions_in(sentences.texts[place]) for place in beginning):
                    return []
                for one in found:
                    self._ranks.setdefault(one.record_id, self._ranks[said.record_id])
                return found
        return []

    def _at_distance(self, said: Hit | Candidate, distance: int) -> Hit | Candidate | None:
        """The turn at this distance, if it is known."""
        if not distance:
            return said
        return None if said.seq is None else self._at.get((said.session_id, said.seq + distance))


class Ends:
    """The steps of the ends of conversations, the latest conversation first: the last turns of each, then those before
    them."""

    def __init__(self, conversations: Sequence[Sequence[Hit]], query: str) -> None:
        wanted = frozenset(query_terms(query))
        self._turns: dict[str, Turn] = {}
        for rank, said in enumerate(conversations):
            for one in said:
                sentences = Sentences(one.text, wanted, END_CHARS)
                text = sentences.shown(sentences.places)
                self._turns[one.record_id] = Turn(one, text, rank, sentences.is_whole(sentences.places))
        steps = [said[-_LAST:] for said in conversations] + [said[:-_LAST] for said in conversations]
        self._steps = [frozenset(Part(one.record_id, 0) for one in said) for said in steps if said]

    def first(self, count: int) -> list[frozenset[Part]]:
        """The first steps, at most this many."""
        return self._steps[:count]

    def turns(self, parts: Collection[Part]) -> list[Turn]:
        """The turns that have these parts, in no order."""
        return [self._turns[part.record_id] for part in parts]
