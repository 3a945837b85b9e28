"""Finds past answers: questions of users that ask the same, the assistant's replies to them, and the feedback on both.
Reads only.

A reply answers the last message of a user among the eight messages before it. A forgotten message ends the search for
replies: it may have been another question.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, NamedTuple

from kalito_mcp.domain.graph import FEEDBACK_DELTA, FeedbackLabel, liking_factor
from kalito_mcp.domain.past_answers import AnswerFound, PastAnswer
from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.safety.trust import is_withheld
from kalito_mcp.text.questions import answers_nothing

LEAST: Final = 0.65
"""The likeness (`text.questions`) of questions that ask the same."""

_MOST: Final = 3
"""Questions, and answers to each."""

_ANSWERED_WITHIN: Final = 8
_SHOWN_CHARS: Final = 1_000
_MESSAGES: Final = SearchFilters(types=frozenset({RecordType.MESSAGE}))
_WORD: Final = re.compile(r"\w+")

Labels = Mapping[str, Mapping[FeedbackLabel, int]]
"""How often a message got each label of feedback, by its id."""


class _Turn(NamedTuple):
    """A question and the replies to it, in order."""

    similarity: float
    question: Candidate
    replies: Sequence[Candidate]


async def past_answers(store: Store, scope: Scope, text: str) -> Sequence[PastAnswer]:
    """Past answers in the scope to the question of a text, the most alike and best liked first."""
    if not text.strip():
        return ()

    async def look(view: ReadView) -> tuple[Sequence[_Turn], Labels]:
        turns = await view.search.in_index(scope, partial(_turns, text)) or ()
        ids = [one.record_id for turn in turns for one in (turn.question, *turn.replies)]
        return turns, await view.graphs.feedback(scope, ids) if ids else {}

    turns, labels = await store.read(look)
    alike: dict[tuple[str, ...], list[_Turn]] = {}
    for turn in turns:
        alike.setdefault(_folded(turn.question.text), []).append(turn)
    found = [one for same in alike.values() if (one := _past_answer(same, labels)) is not None]
    folded = _folded(text)
    return sorted(found, key=lambda one: _best_first(one, is_same=_folded(one.question) == folded))[:_MOST]


def _turns(text: str, index: SearchIndex) -> Sequence[_Turn]:
    from kalito_mcp.retrieval.asked_before import asked_before  # noqa: PLC0415 - numpy loads when first needed
    from kalito_mcp.retrieval.turns_around import turns_around  # noqa: PLC0415 - the same

    alike = asked_before(index, text, least=LEAST)
    ids = [question.record_id for _, question in alike]
    around = turns_around(index, ids, _MESSAGES, before=0, after=_ANSWERED_WITHIN, with_centres=True) if ids else ()
    at = {(one.session_id, one.seq): one for one in around}
    return [_Turn(similarity, question, _replies(question, at)) for similarity, question in alike]


def _replies(question: Candidate, at: Mapping[tuple[str | None, int | None], Candidate]) -> Sequence[Candidate]:
    first = question.seq or 0
    following = (at.get((question.session_id, first + step)) for step in range(1, _ANSWERED_WITHIN + 1))
    until_next = takewhile(lambda one: one is not None and one.role is not Role.USER, following)
    said = [one for one in until_next if one is not None and one.role is Role.ASSISTANT]
    return [one for one in said if not is_withheld(one.origin, one.text)]


def _past_answer(same: Sequence[_Turn], labels: Labels) -> PastAnswer | None:
    """Questions in equal words as one, with all replies; None without a reply that answers."""
    same = sorted(same, key=lambda turn: _newest_first(turn.question))
    said: dict[tuple[str, ...], list[Candidate]] = {}
    for reply in sorted((one for turn in same for one in turn.replies), key=_newest_first):
        said.setdefault(_folded(reply.text), []).append(reply)
    answers = [_answer(each, labels) for each in said.values() if not answers_nothing(each[0].text)]
    if not answers:
        return None
    counts = _counts((one for turn in same for one in (turn.question, *turn.replies)), labels)
    return PastAnswer(
        _beginning(same[0].question.text),
        tuple(turn.question.record_id for turn in same),
        max(turn.similarity for turn in same),
        tuple(sorted(answers, key=lambda one: (-one.feedback, -one.given_at))[:_MOST]),
        **{str(label): counts[label] for label in FeedbackLabel},
    )


def _answer(each: Sequence[Candidate], labels: Labels) -> AnswerFound:
    counts = _counts(each, labels)
    feedback = sum(FEEDBACK_DELTA[label] * count for label, count in counts.items())
    return AnswerFound(_beginning(each[0].text), tuple(one.record_id for one in each), each[0].created_at, feedback)


def _counts(messages: Iterable[Candidate], labels: Labels) -> Counter[FeedbackLabel]:
    counts: Counter[FeedbackLabel] = Counter()
    for one in messages:
        counts.update(labels.get(one.record_id, {}))
    return counts


def _newest_first(said: Candidate) -> tuple[int, int]:
    return -said.created_at, -(said.seq or 0)


def _best_first(one: PastAnswer, *, is_same: bool) -> tuple[float, bool, int]:
    score = one.similarity * liking_factor(one.answers[0].feedback)
    return -score, not is_same, -one.answers[0].given_at


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"


def _folded(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
