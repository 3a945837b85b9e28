"""Writes summaries without a model: the most informative sentences of a range, with their speakers. Pure.

The same messages produce the same bytes in every process and on every platform. The head line is the only sentence it
writes itself, and it resolves no pronouns. A summary of summaries is made the same way, with a share of the room for
each part. It can be a part of a higher summary.
Source: the head line is `createFallbackSummary` of the memory manager's reference; the choice of sentences is greedy
maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998) by points per character.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Final

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Origin, Role, SummaryMethod
from kalito_mcp.safety.trust import is_withheld
from kalito_mcp.summaries.salience import (
    SentenceFeatures,
    addressed_names,
    extract_features,
    group_frequency,
    is_informative,
    score,
)
from kalito_mcp.summaries.selection import Candidate, choose, lines, tighten, trim
from kalito_mcp.summaries.topics import extract_topics
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import clauses, cut, split_sentences, without_opener, without_request
from kalito_mcp.text.times.annotation import languages_of, with_dates

NOTHING_TO_SUMMARIZE: Final = "No messages to summarize"
NOTHING_IN_SIGHT: Final = "What was said here is forgotten or hidden."
"""The summary of a range in which every message is forgotten or hidden."""

_MAX_TOPICS: Final = 5
_MAX_READ_FOR_LANGUAGE: Final = 120
_MAX_SPEAKER: Final = 40
# A longer message is a paste, whose middle is seldom news: only its beginning and end are read.
_MAX_HEAD_CHARS: Final = 24_000
_MAX_TAIL_CHARS: Final = 8_000
# Prose of these lengths has fewer.
_MOST_HEAD_SENTENCES: Final = 600
_MOST_TAIL_SENTENCES: Final = 200

# In an assistant's answer of more sentences than this, each sentence is worth less.
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
    """Return a head line with counts and topics, then the best sentences in order of time, a line a turn.

    A time that depends on when it was said has its date behind it: last Friday (2023-08-18).
    The text has at most `max_chars` characters, and a head line if `max_chars` is 40 or more. A question is kept only
    if no sentence of its answer is. Hidden messages do not count. No messages: NOTHING_TO_SUMMARIZE; all of them
    hidden: NOTHING_IN_SIGHT.
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
    languages = languages_of(" ".join(message.text[:_MAX_READ_FOR_LANGUAGE] for message in messages))
    spoken = [
        _extract_all(
            [
                with_dates(sentence, message.created_at, languages)
                for sentence in _trusted(_sentences(message.text), message.origin)
            ]
        )
        for message in messages
    ]
    candidates = _candidates(
        spoken,
        [[speaker] * len(sentences) for speaker, sentences in zip(speakers, spoken, strict=True)],
        [message.importance_score for message in messages],
        room,
    )
    candidates = _with_answers(candidates, speakers)
    return "\n".join([head, *lines(choose(candidates, room))])


def fold_summaries(summaries: Sequence[ConversationSummary], *, max_chars: int) -> str:
    """Return a head line with the whole range and the parts' topics, then the best of the parts' sentences, in order.

    The text has at most `max_chars` characters. Every part first gets its share of the room; the best other sentences
    fill the rest. The parts' own head lines are dropped. No summaries: NOTHING_TO_SUMMARIZE; none of them
    informative: NOTHING_IN_SIGHT.
    """
    if not summaries:
        return cut(NOTHING_TO_SUMMARIZE, max_chars)
    span = summaries
    summaries = keep_informative(summaries)
    if not summaries:
        return cut(NOTHING_IN_SIGHT, max_chars)
    parts = [_parse(summary) for summary in summaries]
    head = _head_of_summaries(span, len(parts), [topic for part in parts for topic in part.topics], max_chars)
    room = max_chars - len(head) - 1
    if room < _MIN_ROOM:
        return head
    candidates = _candidates(
        [part.sentences for part in parts],
        [part.speakers for part in parts],
        [summary.importance_score for summary in summaries],
        room,
    )
    share = max(room // len(parts), _MIN_SENTENCE)
    return "\n".join([head, *lines(choose(candidates, room, share=share))])


def keep_informative(summaries: Sequence[ConversationSummary]) -> list[ConversationSummary]:
    """Return the summaries that are not forgotten and have at least one visible message."""
    return [summary for summary in summaries if summary.summary.strip() and summary.summary != NOTHING_IN_SIGHT]


@dataclass(frozen=True, slots=True)
class _Part:
    """A parsed summary. `speakers` has one name for each sentence, empty if the summary names none."""

    topics: list[str]
    speakers: list[str]
    sentences: list[SentenceFeatures]


def _parse(summary: ConversationSummary) -> _Part:
    if summary.method != SummaryMethod.EXTRACTIVE:
        sentences = _extract_all(_trusted(_sentences(summary.summary), summary.origin))
        return _Part([], [""] * len(sentences), sentences)
    turns = _drop_middle(summary.summary).split("\n")
    topics: list[str] = []
    head = _HEAD().fullmatch(turns[0])
    if head:
        turns = turns[1:]
        topics = [topic for topic in (head.group(1) or "").rstrip(".").split(", ") if topic]
    speakers: list[str] = []
    said: list[SentenceFeatures] = []
    for turn in turns:
        match = _SPOKEN().fullmatch(turn)
        speaker, text = match.groups() if match else ("", turn)
        found = _extract_all(_trusted(split_sentences(text), summary.origin))
        said.extend(found)
        speakers.extend([speaker] * len(found))
    return _Part(topics, speakers, said)


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


def _extract_all(texts: Sequence[str]) -> list[SentenceFeatures]:
    openings = map(without_request, map(without_opener, texts))
    return [extract_features(text) for text in openings if text]


def _candidates(
    groups: Sequence[Sequence[SentenceFeatures]],
    speakers: Sequence[Sequence[str]],
    importance: Sequence[float],
    room: int,
) -> list[Candidate]:
    """Score the informative sentences, in order, without what says little and trimmed to leave room for others."""
    frequency = group_frequency(groups)
    known_names = frozenset(name for group in groups for sentence in group for name in sentence.names)
    addressed = addressed_names(list(dict.fromkeys(name for names in speakers for name in names)), groups)
    limit = min(max(room // 3, _MIN_SENTENCE), _MAX_SENTENCE)
    found: list[Candidate] = []
    for group, (sentences, names, weight) in enumerate(zip(groups, speakers, importance, strict=True)):

        def worth(sentence: SentenceFeatures, weight: float = weight) -> int:
            return score(sentence, frequency=frequency, known_names=known_names, speakers=addressed, importance=weight)

        share = isqrt(_BRIEF * 10_000 // max(_BRIEF, len(sentences)))

        for sentence, speaker in zip(sentences, names, strict=True):
            if not is_informative(sentence, addressed):
                continue
            longest = min(limit, room - len(speaker) - 3)
            kept = sentence
            text = sentence.text if sentence.is_question else tighten(sentence.text, worth)
            if len(text) > longest:
                text = trim(text, longest, worth)
            if text != sentence.text:
                kept = extract_features(text)
                # A question without its end is still a question, but the first of several clauses may be a statement.
                if sentence.is_question and len(clauses(sentence.text)) == 1:
                    kept = replace(kept, is_question=True)
            value = worth(kept)
            # One of a long answer's many sentences always scores high: divide the answer's chances among them.
            if speaker == Role.ASSISTANT:
                value = value * share // 100
            found.append(Candidate(len(found), group, speaker, kept, value))
    return found


def _with_answers(candidates: Sequence[Candidate], speakers: Sequence[str]) -> list[Candidate]:
    """Give each question the next message of another speaker as its answer, if that is informative."""
    informative = {candidate.group for candidate in candidates if not candidate.sentence.is_question}
    marked: list[Candidate] = []
    for candidate in candidates:
        if candidate.sentence.is_question:
            later = range(candidate.group + 1, len(speakers))
            answer = next((group for group in later if speakers[group] != candidate.speaker), None)
            if answer in informative:
                candidate = replace(candidate, answer_group=answer)  # noqa: PLW2901
        marked.append(candidate)
    return marked


def _speaker_label(message: MessageWithImportance) -> str:
    """Return the name on one line, without colons, which would end it when the summary is parsed."""
    return " ".join(message.speaker.replace(":", " ").split())[:_MAX_SPEAKER].strip() or str(message.role)


def _head_of_messages(messages: Sequence[MessageWithImportance], max_chars: int) -> str:
    count = _plural(len(messages), "message", "messages")
    users = sum(message.role == Role.USER for message in messages)
    assistants = sum(message.role == Role.ASSISTANT for message in messages)
    whole = f"Conversation with {count} ({users} user, {assistants} assistant)"
    topics = ", ".join(extract_topics(messages))
    about = [f"{whole} about: {topics}."] if topics else []
    return _longest_fitting([*about, f"{whole}.", f"Conversation with {count}.", f"{count}."], max_chars)


def _head_of_summaries(
    summaries: Sequence[ConversationSummary], informative_count: int, topics: Sequence[str], max_chars: int
) -> str:
    first, last = summaries[0].start_seq, summaries[-1].end_seq
    span = f"Messages {first}-{last}"
    whole = f"{span} ({_plural(informative_count, 'summary', 'summaries')})"
    # The most frequent topic comes first. Ties: the earlier one.
    ranked = sorted(dict.fromkeys(topics), key=lambda topic: -topics.count(topic))[:_MAX_TOPICS]
    about = [f"{whole} about: {', '.join(ranked)}."] if ranked else []
    return _longest_fitting([*about, f"{whole}.", f"{span}."], max_chars)


def _plural(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _longest_fitting(heads: Sequence[str], max_chars: int) -> str:
    """Return the first head that fits, else the beginning of the last. Heads are longest first."""
    return next((head for head in heads if len(head) <= max_chars), cut(heads[-1], max_chars))
