"""What a person says in a prompt, in their own words; and what of it they ask to keep.

`text.own_words` knows material by its shape. Here the head says which sentence announces material: "translate this".
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.records import Reach
from kalito_mcp.kinds.cues import asks_to_be_called, explicit_kind, names_its_speaker, says_to_keep
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.kinds.requests import said_reach, without_frame
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.text.own_words import Passage, passages
from kalito_mcp.text.sentences import without_opener

_ASKS: Final = ("?", "？", "؟", "吗。", "か。", ":", "：")
_KEPT_FROM: Final = 0.55
"""How likely a sentence asks to keep something, from which it counts as a request."""
_SAID_FROM: Final = 0.2
"""The same of one with words of remembering or of what holds for good."""
_ANNOUNCES_FROM: Final = 0.46
_ASKING_ANNOUNCES_FROM: Final = 0.3
"""The same of announcing material; and of a question or a line that ends with a colon, before another line."""
_POINTS_BACK_FROM: Final = 0.5
"""The same of the last paragraph, which may speak of what stands before it."""
_LEAST_WORDS: Final = 3
_LEAST_UNSPACED: Final = 8
"""Words, or characters of a script without spaces, below which a sentence asks nothing."""
_MAX_CHARS: Final = 20_000
_MOST_PASSAGES: Final = 80
_CHARS_AT_ONCE: Final = 4_096


class Spoken(NamedTuple):
    """A sentence of a person's own, and what it is."""

    passage: Passage
    judged: Judged

    @property
    def text(self) -> str:
        """Its words."""
        return self.passage.text

    @property
    def request(self) -> str | None:
        """What it asks to keep, without the words of the asking. None if it asks nothing of the kind."""
        said = without_opener(self.passage.text)
        if not said or said.endswith(_ASKS):
            return None
        # The words of the asking count only if they are not quoted.
        framed = without_frame(said)
        if framed is not None and without_frame(without_opener(self.passage.unquoted)) is not None:
            return framed
        words = self.passage.unquoted
        least = _SAID_FROM if says_to_keep(words) else _KEPT_FROM
        asks = self.judged.asks_to_keep >= least and _is_long_enough(words)
        return said if asks or self.names_somebody else None

    @property
    def names_somebody(self) -> bool:
        """Whether it says how its speaker is called."""
        return names_its_speaker(self.passage.unquoted) or asks_to_be_called(self.passage.unquoted)

    @property
    def said_reach(self) -> Reach | None:
        """Where it says itself that it holds."""
        return said_reach(self.passage.unquoted)


class Own(NamedTuple):
    """The sentences of a prompt that are the person's own, in order; and whether it is all theirs, with nothing pasted
    or given to work on."""

    said: Sequence[Spoken] = ()
    is_all: bool = True

    @property
    def statements(self) -> list[Spoken]:
        """Those that may state something, without asking to keep it. None of a prompt with material: one of them may be
        its title."""
        return [one for one in self.said if one.passage.paragraph == 0 and one.request is None] if self.is_all else []


async def own_words(judge: SentenceJudge, texts: Sequence[str]) -> list[Own]:
    """What of each prompt is the person's own."""
    chars = sum(map(len, texts))
    read = await read_aside(chars, lambda: [passages(text[:_MAX_CHARS]) for text in texts], most=_CHARS_AT_ONCE)
    each = [found[:_MOST_PASSAGES] for found, _ in read]
    sentences = [Sentence(without_opener(one.unquoted) or one.unquoted) for found in each for one in found]
    labels = [Sentence(f"{one.label}:") for found in each for one in found if one.label]
    judged = await judge.judge([*sentences, *labels])
    of_sentences, of_labels = iter(judged[: len(sentences)]), iter(judged[len(sentences) :])
    owned: list[Own] = []
    for found, (_, is_all) in zip(each, read, strict=True):
        said = [Spoken(one, next(of_sentences)) for one in found]
        kept = _own([(one, next(of_labels) if one.passage.label else None) for one in said])
        owned.append(Own(kept, is_all and len(kept) == len(said)))
    return owned


def _own(said: Sequence[tuple[Spoken, Judged | None]]) -> list[Spoken]:
    """Those before the first that announces material, or whose label does; and without what the last paragraph speaks
    of."""
    kept: list[Spoken] = []
    for one, label in said:
        if label is not None and label.announces >= _ANNOUNCES_FROM and not _is_label_of_own(one.passage.label):
            return kept
        kept.append(one)
        if one.passage.leads and _announces(one):
            return kept
    return _without_what_it_points_at(kept)


def _without_what_it_points_at(kept: Sequence[Spoken]) -> list[Spoken]:
    """Without the paragraphs that the last one speaks of: "... (a letter) ... is that even allowed?"."""
    if not kept:
        return []
    last = kept[-1].passage
    before = [one for one in kept if one.passage.stretch == last.stretch and one.passage.paragraph < last.paragraph]
    end = [one for one in kept if (one.passage.stretch, one.passage.paragraph) == (last.stretch, last.paragraph)]
    if before and any(one.request is None and one.judged.announces >= _bar_back(one) for one in end):
        return [one for one in kept if one not in before]
    return list(kept)


def _bar_back(one: Spoken) -> float:
    return _ANNOUNCES_FROM if one.text.endswith(_ASKS) else _POINTS_BACK_FROM


def _is_label_of_own(label: str) -> bool:
    """Whether it is a request itself: "remember", "one rule for this repo"."""
    is_request = without_frame(f"{label}: {label}") is not None or explicit_kind(label) is Kind.RULE
    return is_request or said_reach(label) is not None


def _is_long_enough(text: str) -> bool:
    return len(text.split()) >= _LEAST_WORDS or (not text.isascii() and len(text) >= _LEAST_UNSPACED)


def _announces(one: Spoken) -> bool:
    least = _ASKING_ANNOUNCES_FROM if one.text.endswith(_ASKS) else _ANNOUNCES_FROM
    return one.request is None and one.judged.announces >= least
