"""Summaries without a model: the most informative sentences of a range, with who said them. Pure.

The same messages give the same bytes in every process and on every platform. It never writes a sentence of its own,
but for the head line, and resolves no pronouns. A summary of summaries is made the same way, with a share of the
room for each part, and can itself be a part again.
Source: the head line is `createFallbackSummary` of the memory manager's reference; the choice of sentences is greedy
maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998) by points per character.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Final

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Role, SummaryMethod
from kalito_mcp.summaries.salience import Reading, addressed_names, points, read, tells_something, term_spread
from kalito_mcp.summaries.selection import Candidate, choose, lines, trimmed
from kalito_mcp.summaries.topics import extract_topics
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import clauses, cut, split_sentences, without_opener, without_request

NOTHING_TO_SUMMARIZE: Final = "No messages to summarize"
NOTHING_IN_SIGHT: Final = "What was said here is forgotten or hidden."
"""The summary of messages that all are: their range keeps its summary."""

_MAX_TOPICS: Final = 5
_MAX_SPEAKER: Final = 40
# Of a message longer than this, the beginning and the end are read: it is a paste, and its middle is seldom news.
_MAX_HEAD_CHARS: Final = 24_000
_MAX_TAIL_CHARS: Final = 8_000

# An assistant's answer of more sentences than this is an exposition, and each of them worth less.
_BRIEF: Final = 3
_MIN_ROOM: Final = 24
_MAX_SENTENCE: Final = 240
_MIN_SENTENCE: Final = 80

_HEAD: Final = lazy(
    r"(?:Conversation with \d+ messages?(?: \(\d+ user, \d+ assistant\))?|\d+ messages?"
    r"|Messages \d+-\d+(?: \(\d+ summar(?:y|ies)\))?)(?: about: ([^\n]*))?\.?"
)
_SPOKEN: Final = lazy(rf"([^:]{{1,{_MAX_SPEAKER}}}): (.+)")


def summarize_messages(messages: Sequence[MessageWithImportance], *, max_chars: int) -> str:
    """The head line with counts and topics, then the best sentences in order of time, a line for each speaker's turn.

    At most `max_chars` characters, whatever that is; from 40 on there is a head line. No messages: the
    specification's sentence for that. A question is kept only where no sentence of its answer is. Hidden messages
    do not count; where all are hidden, it says so.
    """
    if not messages:
        return cut(NOTHING_TO_SUMMARIZE, max_chars)
    messages = [message for message in messages if not message.is_hidden]
    if not messages:
        return cut(NOTHING_IN_SIGHT, max_chars)
    head = _head_of_messages(messages, max_chars)
    room = max_chars - len(head) - 1
    if room < _MIN_ROOM:
        return head
    speakers = [_speaker_label(message) for message in messages]
    spoken = [_readings(split_sentences(_bounded(message.text))) for message in messages]
    candidates = _candidates(
        spoken,
        [[speaker] * len(readings) for speaker, readings in zip(speakers, spoken, strict=True)],
        [message.importance_score for message in messages],
        room,
    )
    candidates = _with_answers(candidates, speakers)
    return "\n".join([head, *lines(choose(candidates, room))])


def fold_summaries(summaries: Sequence[ConversationSummary], *, max_chars: int) -> str:
    """The head line with the range and the parts' topics, then the best of the parts' sentences, in order.

    At most `max_chars` characters. Every part has its share of the room first, then the best of what is left fill
    it. The parts' own head lines are dropped. No summaries: as without messages, and where none says anything, as
    with hidden ones; the range is that of all of them.
    """
    if not summaries:
        return cut(NOTHING_TO_SUMMARIZE, max_chars)
    span = summaries
    summaries = telling(summaries)
    if not summaries:
        return cut(NOTHING_IN_SIGHT, max_chars)
    parts = [_parse(summary) for summary in summaries]
    head = _head_of_summaries(span, len(parts), [topic for part in parts for topic in part.topics], max_chars)
    room = max_chars - len(head) - 1
    if room < _MIN_ROOM:
        return head
    candidates = _candidates(
        [part.readings for part in parts],
        [part.speakers for part in parts],
        [summary.importance_score for summary in summaries],
        room,
    )
    share = max(room // len(parts), _MIN_SENTENCE)
    return "\n".join([head, *lines(choose(candidates, room, share=share))])


def telling(summaries: Sequence[ConversationSummary]) -> list[ConversationSummary]:
    """Those that say something: not forgotten themselves, nor of messages that all are."""
    return [summary for summary in summaries if summary.summary.strip() and summary.summary != NOTHING_IN_SIGHT]


@dataclass(frozen=True, slots=True)
class _Part:
    """A summary taken apart: `speakers` has one for each reading, empty where nobody is credited."""

    topics: list[str]
    speakers: list[str]
    readings: list[Reading]


def _parse(summary: ConversationSummary) -> _Part:
    if summary.method != SummaryMethod.EXTRACTIVE:
        readings = _readings(split_sentences(_bounded(summary.summary)))
        return _Part([], [""] * len(readings), readings)
    turns = _bounded(summary.summary).split("\n")
    topics: list[str] = []
    head = _HEAD().fullmatch(turns[0])
    if head:
        turns = turns[1:]
        topics = [topic for topic in (head.group(1) or "").rstrip(".").split(", ") if topic]
    speakers: list[str] = []
    said: list[Reading] = []
    for turn in turns:
        match = _SPOKEN().fullmatch(turn)
        speaker, text = match.groups() if match else ("", turn)
        found = _readings(split_sentences(text))
        said.extend(found)
        speakers.extend([speaker] * len(found))
    return _Part(topics, speakers, said)


def _bounded(text: str) -> str:
    if len(text) <= _MAX_HEAD_CHARS + _MAX_TAIL_CHARS:
        return text
    return f"{text[:_MAX_HEAD_CHARS]}\n{text[-_MAX_TAIL_CHARS:]}"


def _readings(sentences: Sequence[str]) -> list[Reading]:
    openings = map(without_request, map(without_opener, sentences))
    return [read(text) for text in openings if text]


def _candidates(
    groups: Sequence[Sequence[Reading]],
    speakers: Sequence[Sequence[str]],
    importance: Sequence[float],
    room: int,
) -> list[Candidate]:
    """The sentences in order, trimmed to a length that leaves room for others, with their points."""
    spread = term_spread(groups)
    known_names = frozenset(name for group in groups for reading in group for name in reading.names)
    addressed = addressed_names(list(dict.fromkeys(name for names in speakers for name in names)), groups)
    limit = min(max(room // 3, _MIN_SENTENCE), _MAX_SENTENCE)
    found: list[Candidate] = []
    for group, (readings, names, weight) in enumerate(zip(groups, speakers, importance, strict=True)):

        def worth(reading: Reading, weight: float = weight) -> int:
            return points(reading, spread=spread, known_names=known_names, speakers=addressed, importance=weight)

        share = isqrt(_BRIEF * 10_000 // max(_BRIEF, len(readings)))

        for reading, speaker in zip(readings, names, strict=True):
            if not tells_something(reading, addressed):
                continue
            longest = min(limit, room - len(speaker) - 3)
            kept = reading
            if len(reading.text) > longest:
                kept = read(trimmed(reading.text, longest, worth))
                # A question without its end is still one; its first clause, left alone, may be a statement.
                if reading.is_question and len(clauses(reading.text)) == 1:
                    kept = replace(kept, is_question=True)
            value = worth(kept)
            # A long answer has many sentences, one of which is always striking: share what it can win among them.
            if speaker == Role.ASSISTANT:
                value = value * share // 100
            found.append(Candidate(len(found), group, speaker, kept, value))
    return found


def _with_answers(candidates: Sequence[Candidate], speakers: Sequence[str]) -> list[Candidate]:
    """Each question marked with the next message of another speaker, where that one says something."""
    telling = {candidate.group for candidate in candidates if not candidate.reading.is_question}
    marked: list[Candidate] = []
    for candidate in candidates:
        if candidate.reading.is_question:
            later = range(candidate.group + 1, len(speakers))
            answer = next((group for group in later if speakers[group] != candidate.speaker), None)
            if answer in telling:
                candidate = replace(candidate, answer_group=answer)  # noqa: PLW2901
        marked.append(candidate)
    return marked


def _speaker_label(message: MessageWithImportance) -> str:
    """The name on one line, without what would end it when the summary is read again."""
    return " ".join(message.speaker.replace(":", " ").split())[:_MAX_SPEAKER].strip() or str(message.role)


def _head_of_messages(messages: Sequence[MessageWithImportance], max_chars: int) -> str:
    count = _counted(len(messages), "message", "messages")
    users = sum(message.role == Role.USER for message in messages)
    assistants = sum(message.role == Role.ASSISTANT for message in messages)
    whole = f"Conversation with {count} ({users} user, {assistants} assistant)"
    topics = ", ".join(extract_topics(messages))
    about = [f"{whole} about: {topics}."] if topics else []
    return _longest([*about, f"{whole}.", f"Conversation with {count}.", f"{count}."], max_chars)


def _head_of_summaries(
    summaries: Sequence[ConversationSummary], telling_count: int, topics: Sequence[str], max_chars: int
) -> str:
    first, last = summaries[0].start_seq, summaries[-1].end_seq
    span = f"Messages {first}-{last}"
    whole = f"{span} ({_counted(telling_count, 'summary', 'summaries')})"
    # What most parts are about comes first; ties as they came up.
    ranked = sorted(dict.fromkeys(topics), key=lambda topic: -topics.count(topic))[:_MAX_TOPICS]
    about = [f"{whole} about: {', '.join(ranked)}."] if ranked else []
    return _longest([*about, f"{whole}.", f"{span}."], max_chars)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _longest(heads: Sequence[str], max_chars: int) -> str:
    """The first head that fits, else the beginning of the last."""
    return next((head for head in heads if len(head) <= max_chars), cut(heads[-1], max_chars))
