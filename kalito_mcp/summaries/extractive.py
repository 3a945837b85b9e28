"""Writes summaries without a language model: a head line, and the sentences worth keeping under four headings. Pure.

The caller judges the kind and worth of sentences (`kalito_mcp.kinds`): a `Draft` has the sentences, `write` takes the
judgements. The same messages produce the same bytes in every process and on every platform. It writes only the head
line and the headings itself, and resolves no pronouns. A summary of summaries is made the same way, with a share of the
room for each part. It can be a part of a higher summary. Source: the head line is `createFallbackSummary` of the memory
manager's reference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Origin, Role, SummaryMethod
from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.kinds.own import Own
from kalito_mcp.safety.trust import is_withheld
from kalito_mcp.summaries.selection import (
    ANSWERED,
    BAR,
    BAR_AMONG_PEOPLE,
    HEADINGS,
    Candidate,
    choose,
    choose_of_parts,
    ended,
    last_words,
    lines,
)
from kalito_mcp.summaries.topics import extract_topics
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.questions import questions_in
from kalito_mcp.text.sentences import cut, split_sentences, without_opener, without_request
from kalito_mcp.text.times.annotation import languages_of, with_dates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOTHING_TO_SUMMARIZE: Final = "No messages to summarize"
NOTHING_IN_SIGHT: Final = "What was said here is forgotten or hidden."
"""The summary of a range in which every message is forgotten or hidden."""

_MAX_TOPICS: Final = 5
_MAX_READ_FOR_LANGUAGE: Final = 120
_MAX_SPEAKER: Final = 40
# A longer message is a paste, whose middle is seldom news: only its beginning and end are read, and a millisecond is
# spent on each of their sentences.
_MAX_HEAD_CHARS: Final = 24_000
_MAX_TAIL_CHARS: Final = 8_000
_MOST_HEAD_SENTENCES: Final = 60
_MOST_TAIL_SENTENCES: Final = 20

_NOT_PEOPLE: Final = frozenset(map(str, Role)) - {str(Role.USER)}
_MIN_ROOM: Final = 24
_HEADING: Final = 12
"""Characters of the longest heading and what goes with a speaker."""
_MAX_SENTENCE: Final = 320
_MIN_SENTENCE: Final = 80
_MAX_PROPOSAL: Final = 160
_SHORT_ANSWER: Final = 80
"""Characters. A longer decision names its own subject."""
_ANSWERS: Final = frozenset({Kind.DECISION, Kind.CHANGE})
_LIKENESS_COUNTS: Final = 2
"""How much more the likeness of a proposal counts than its worth."""

_HEAD: Final = lazy(
    r"(?:Conversation with \d+ messages?(?: \(\d+ user, \d+ assistant\))?|\d+ messages?"
    r"|Messages \d+-\d+(?: \(\d+ summar(?:y|ies)\))?)(?: about: ([^\n]*))?\.?"
)
_SPOKEN: Final = lazy(rf"([^:]{{1,{_MAX_SPEAKER}}}): (.+)")


class Said(NamedTuple):
    """A sentence, and who says it in which message or part. `proposal` is what it answers, where that is known. What
    `is_given` somebody pasted: it is not what they decided or learned."""

    text: str
    speaker: str
    group: int
    proposal: str = ""
    is_given: bool = False

    @property
    def sentence(self) -> Sentence:
        """As it is judged."""
        return Sentence(self.text, self.speaker in _NOT_PEOPLE)


@dataclass(frozen=True, slots=True)
class Draft:
    """The material of a summary: its head lines, the longest first, and the sentences, in order. `parts` is the number
    of parts of a summary of summaries."""

    heads: Sequence[str]
    said: Sequence[Said] = ()
    parts: int = 0


def read_messages(messages: Sequence[MessageWithImportance], own: Mapping[int, Own] | None = None) -> Draft:
    """Read the messages. Hidden ones do not count. Of those in `own`, by seq, only the person's own sentences are read,
    if there are any.

    A time that depends on when it was said gets its date behind it: last Friday (2023-08-18).
    """
    if not messages:
        return Draft([NOTHING_TO_SUMMARIZE])
    messages = [message for message in messages if not message.is_hidden]
    if not messages:
        return Draft([NOTHING_IN_SIGHT])
    languages = languages_of(" ".join(message.text[:_MAX_READ_FOR_LANGUAGE] for message in messages))
    said: list[Said] = []
    for group, message in enumerate(messages):
        speaker = _speaker_label(message)
        mine = (own or {}).get(message.seq)
        sentences = [one.text for one in mine.said] if mine and mine.said else _sentences(message.text)
        for sentence in _trusted(sentences, message.origin):
            text = with_dates(without_request(sentence), message.created_at, languages)
            said.append(Said(text, speaker, group, is_given=mine is not None and not mine.said))
    return Draft(_heads_of_messages(messages), said)


def read_summaries(summaries: Sequence[ConversationSummary]) -> Draft:
    """Read the summaries: their sentences without their head lines and headings."""
    if not summaries:
        return Draft([NOTHING_TO_SUMMARIZE])
    informative = keep_informative(summaries)
    if not informative:
        return Draft([NOTHING_IN_SIGHT])
    topics: list[str] = []
    said: list[Said] = []
    for group, summary in enumerate(informative):
        of_part, sentences = _parse(summary, group)
        topics += of_part
        said += sentences
    return Draft(_heads_of_summaries(summaries, len(informative), topics), said, len(informative))


def write(draft: Draft, judged: Sequence[Judged], vectors: "NDArray[np.float32] | None", *, max_chars: int) -> str:
    """Write the head line, and the sentences worth keeping that fit into `max_chars` characters.

    `judged` says of each sentence of the draft what it is, and `vectors` are theirs, of unit length (n, m), or None.
    There is a head line if `max_chars` is 40 or more. What was asked and answered fills the room that is left. If no
    sentence is worth anything, every message counts as a question.
    """
    head = _longest_fitting(draft.heads, max_chars)
    room = max_chars - len(head) - 1
    if room < _MIN_ROOM or not draft.said:
        return head
    likeness = [] if vectors is None else (100 * (vectors @ vectors.T)).round().astype(int).tolist()
    has_assistant = not _is_among_people(draft)
    bar = BAR_AMONG_PEOPLE if likeness and not has_assistant else BAR
    worthy = _candidates(draft, judged, likeness, room, bar=bar)
    exchanges = _exchanges(draft, worthy, room)
    worthy = last_words(worthy, likeness, has_decisions=has_assistant, of_parts=bool(draft.parts))
    candidates = sorted([*worthy, *exchanges], key=lambda one: one.order)
    if draft.parts:
        kept = choose_of_parts(candidates, room, share=max(room // draft.parts, _MIN_SENTENCE))
    else:
        kept = choose(candidates, room, surest_first=has_assistant)
    return "\n".join([head, *lines(kept)])


def keep_informative(summaries: Sequence[ConversationSummary]) -> list[ConversationSummary]:
    """Return the summaries that are not forgotten and have at least one visible message."""
    return [summary for summary in summaries if summary.summary.strip() and summary.summary != NOTHING_IN_SIGHT]


def _candidates(
    draft: Draft, judged: Sequence[Judged], likeness: Sequence[Sequence[int]], room: int, *, bar: int
) -> list[Candidate]:
    """The sentences worth keeping. Of summaries, all that answer something; and all others, if nobody can say what they
    are worth, or none is worth anything."""
    found: list[Candidate] = []
    longest = min(room, _MAX_SENTENCE)
    keeps_all = draft.parts and (not likeness or all(100 * one.worth < bar for one in judged))
    for order, (said, one) in enumerate(zip(draft.said, judged, strict=True)):
        if said.is_given:
            continue
        worth = round(100 * one.worth)
        if worth >= bar or keeps_all or said.proposal:
            text = cut(said.text, min(longest, room - len(said.speaker) - _HEADING))
            if not text:
                continue
            proposal = said.proposal or ("" if draft.parts else _proposal(draft, judged, order, likeness))
            by_assistant = said.sentence.is_assistant
            found.append(Candidate(order, said.group, said.speaker, text, one.kind, worth, by_assistant, proposal))
    return found


def _exchanges(draft: Draft, worthy: Sequence[Candidate], room: int) -> list[Candidate]:
    """The questions of people with the first sentence of the answer, where nothing of the question's message is worth
    keeping: a question alone says nothing, and an answer alone not about what. If nothing at all is worth keeping,
    whatever people said counts as a question, and stays without an answer too; without people, the last message."""
    kept = {one.group for one in worthy}
    of_messages = groupby(enumerate(draft.said), lambda one: one[1].group)
    openings = [] if draft.parts else [_opening([*sentences]) for _, sentences in of_messages]
    found: list[Candidate] = []
    for (order, asked), (place, answer) in zip_longest(openings, openings[1:], fillvalue=(0, None)):
        if asked is None or asked.sentence.is_assistant or asked.group in kept:
            continue
        if answer is not None and answer.speaker != asked.speaker and (not worthy or questions_in(asked.text)):
            found.append(_candidate(place, answer, room, f"{asked.speaker}: {ended(cut(asked.text, room // 2))}"))
        elif not worthy:
            found.append(_candidate(order, asked, room))
    if openings and not (found or worthy):
        found = [_candidate(*openings[-1], room)]
    return list({(one.proposal, one.text): one for one in found if one.text}.values())


def _opening(sentences: Sequence[tuple[int, Said]]) -> tuple[int, Said]:
    """The sentence by which a message is known, and its place: the first question of a person, else the first that is
    not a greeting."""
    told = [one for one in sentences if without_opener(one[1].text)] or sentences
    asked = [one for one in told if not one[1].sentence.is_assistant and questions_in(one[1].text)]
    return (asked or told)[0]


def _candidate(order: int, said: Said, room: int, proposal: str = "") -> Candidate:
    """A sentence that nobody says is worth keeping."""
    text = cut(said.text, min(room - len(said.speaker) - len(proposal) - _HEADING, _MAX_SENTENCE))
    return Candidate(order, said.group, said.speaker, text, Kind.FACT, 0, said.sentence.is_assistant, proposal)


def _is_among_people(draft: Draft) -> bool:
    """Whether everybody has a name, so that no assistant is there. Then hardly anything is decided, and how likely a
    note-keeper would keep a sentence tells little."""
    return frozenset(map(str, Role)).isdisjoint(one.speaker for one in draft.said)


def _proposal(draft: Draft, judged: Sequence[Judged], order: int, likeness: Sequence[Sequence[int]]) -> str:
    """The sentence that a short decision answers: the one of the message before that is most similar or worth most, if
    another speaker said it. Empty for any other sentence."""
    said = draft.said[order]
    is_answer = order > 0 and draft.said[order - 1].group == said.group - 1 and not said.sentence.is_assistant
    if not (is_answer and likeness and judged[order].kind in _ANSWERS and len(said.text) <= _SHORT_ANSWER):
        return ""
    before = [
        (likeness[order][at] * _LIKENESS_COUNTS + round(100 * judged[at].worth), -at)
        for at, one in enumerate(draft.said[:order])
        if one.group == said.group - 1 and one.speaker != said.speaker
    ]
    best, at = max(before, default=(0, 0))
    if best < BAR:
        return ""
    return f"{draft.said[-at].speaker}: {ended(cut(draft.said[-at].text, _MAX_PROPOSAL))}"


def _parse(summary: ConversationSummary, group: int) -> tuple[list[str], list[Said]]:
    """The topics of a summary, and its sentences."""
    if summary.method != SummaryMethod.EXTRACTIVE:
        sentences = _sentences("\n".join(line for line in summary.summary.split("\n") if line not in HEADINGS))
        return [], [Said(one, "", group) for one in _trusted(sentences, summary.origin)]
    turns = _drop_middle(summary.summary).split("\n")
    topics: list[str] = []
    head = _HEAD().fullmatch(turns[0])
    if head:
        turns = turns[1:]
        topics = [topic for topic in (head.group(1) or "").rstrip(".").split(", ") if topic]
    said: list[Said] = []
    for turn in turns:
        if turn in HEADINGS:
            continue
        proposal, _, answer = turn.rpartition(ANSWERED)
        proposal = " ".join(_trusted([proposal], summary.origin))
        match = _SPOKEN().fullmatch(answer)
        speaker, text = match.groups() if match else ("", answer)
        for sentence in _trusted(split_sentences(text), summary.origin):
            said.append(Said(sentence, speaker, group, proposal))
            proposal = ""
    return topics, said


def _trusted(sentences: Sequence[str], origin: Origin) -> Sequence[str]:
    """The sentences without those that a context would leave out (`safety.trust`). One of them in a summary would take
    the summary of all other messages along."""
    if not is_withheld(origin, " ".join(sentences)):
        return sentences
    kept = [sentence for sentence in sentences if not is_withheld(origin, sentence)]
    return [] if is_withheld(origin, " ".join(kept)) else kept


def _sentences(text: str) -> list[str]:
    """The sentences of a text, without those in the middle of a long one."""
    found = split_sentences(_drop_middle(text))
    if len(found) <= _MOST_HEAD_SENTENCES + _MOST_TAIL_SENTENCES:
        return found
    return [*found[:_MOST_HEAD_SENTENCES], *found[-_MOST_TAIL_SENTENCES:]]


def _drop_middle(text: str) -> str:
    if len(text) <= _MAX_HEAD_CHARS + _MAX_TAIL_CHARS:
        return text
    return f"{text[:_MAX_HEAD_CHARS]}\n{text[-_MAX_TAIL_CHARS:]}"


def _speaker_label(message: MessageWithImportance) -> str:
    """Return the name on one line, without colons, which would end it when the summary is parsed."""
    return " ".join(message.speaker.replace(":", " ").split())[:_MAX_SPEAKER].strip() or str(message.role)


def _heads_of_messages(messages: Sequence[MessageWithImportance]) -> list[str]:
    count = _plural(len(messages), "message", "messages")
    users = sum(message.role == Role.USER for message in messages)
    assistants = sum(message.role == Role.ASSISTANT for message in messages)
    whole = f"Conversation with {count} ({users} user, {assistants} assistant)"
    topics = ", ".join(extract_topics(messages))
    about = [f"{whole} about: {topics}."] if topics else []
    return [*about, f"{whole}.", f"Conversation with {count}.", f"{count}."]


def _heads_of_summaries(
    summaries: Sequence[ConversationSummary], informative_count: int, topics: Sequence[str]
) -> list[str]:
    first, last = summaries[0].start_seq, summaries[-1].end_seq
    span = f"Messages {first}-{last}"
    whole = f"{span} ({_plural(informative_count, 'summary', 'summaries')})"
    # The most frequent topic comes first. Ties: the earlier one.
    ranked = sorted(dict.fromkeys(topics), key=lambda topic: -topics.count(topic))[:_MAX_TOPICS]
    about = [f"{whole} about: {', '.join(ranked)}."] if ranked else []
    return [*about, f"{whole}.", f"{span}."]


def _plural(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _longest_fitting(heads: Sequence[str], max_chars: int) -> str:
    """Return the first head that fits, else the beginning of the last. Heads are longest first."""
    return next((head for head in heads if len(head) <= max_chars), cut(heads[-1], max_chars))
