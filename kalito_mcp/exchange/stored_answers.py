"""Answers that are stored, found by what a source has of them. Pure.

Each is found by its words, its first paragraph or one of its words, not by looking at all: a prompt such as "continue"
can have hundreds of answers.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Answer:
    """The rest of a stored answer. Empty, once all of it is found."""

    text: str
    digest: bytes
    """Of its words, as it is stored."""
    is_whole: bool = True
    """Whether nothing of it was found yet."""


@dataclass(slots=True)
class StoredAnswers:
    """The answers to one prompt, or all of a session, in order."""

    _answers: list[Answer] = field(default_factory=list[Answer])
    _by_digest: dict[bytes, deque[Answer]] = field(default_factory=dict[bytes, deque[Answer]])
    _by_head: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """The places of the answers, by their first paragraphs."""
    _by_word: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """The same by each of their words. It is made when it is first needed, with `_words`."""
    _words: list[str] = field(default_factory=list[str])
    """The rest of each answer, with one space between two words."""

    @property
    def has_any(self) -> bool:
        """Whether there are answers, found or not."""
        return bool(self._answers)

    def add(self, answer: Answer) -> None:
        """Add an answer after those that are there."""
        self._by_digest.setdefault(answer.digest, deque()).append(answer)
        self._by_head.setdefault(_head(answer.text), []).append(len(self._answers))
        self._answers.append(answer)

    def take(self, digest: bytes) -> bool:
        """Take the first whole answer with these words. False if it does not exist."""
        same = self._by_digest.get(digest)
        while same:
            answer = same.popleft()
            if answer.is_whole:
                answer.text, answer.is_whole = "", False
                return True
        return False

    def cut_out(self, text: str) -> tuple[Answer, str] | None:
        """Take the first answer that is in the text, between blank lines. Returns it and the rest of the text."""
        for place in sorted(self._at_heads_of(text)):
            if (rest := self._cut_out(place, text)) is not None:
                return self._answers[place], rest
        return None

    def cut_either(self, text: str) -> tuple[Answer, str] | None:
        """Take the first answer that is in the text, as `cut_out` does, or cut the text out of the first that has its
        words. Then the rest is empty."""
        words = " ".join(text.split())
        having = self._having(words)
        for place in sorted(self._at_heads_of(text) | having):
            if (rest := self._cut_out(place, text)) is not None:
                return self._answers[place], rest
            answer = self._answers[place]
            left = _cut(self._words[place], words, " ") if answer.text and place in having else None
            if left is not None:
                answer.text = self._words[place] = left
                answer.is_whole = False
                self._by_head.setdefault(left, []).append(place)
                return answer, ""
        return None

    def _cut_out(self, place: int, text: str) -> str | None:
        answer = self._answers[place]
        rest = _cut(text, answer.text.strip(), "\n\n")
        if rest is not None:
            answer.text, answer.is_whole = "", False
        return rest

    def _at_heads_of(self, text: str) -> set[int]:
        """The places of the answers whose first paragraph is one of the text."""
        return {place for one in text.split("\n\n") for place in self._by_head.get(one.strip("\n"), ())}

    def _having(self, words: str) -> set[int]:
        """The places of the answers that have the word of these that the fewest have."""
        for place in range(len(self._words), len(self._answers)):
            all_words = self._answers[place].text.split()
            self._words.append(" ".join(all_words))
            for word in set(all_words):
                self._by_word.setdefault(word, []).append(place)
        fewest = min((self._by_word.get(word, []) for word in words.split()), key=len, default=[])
        return set(fewest)


def _head(text: str) -> str:
    return text.strip().partition("\n\n")[0]


def _cut(text: str, part: str, between: str) -> str | None:
    """The text without the first place where the part stands between these marks, or at an end; None if it does not
    occur."""
    if not part or len(part) > len(text):
        return None
    begin = f"{between}{text}{between}".find(f"{between}{part}{between}")
    if begin < 0:
        return None
    before, after = text[:begin].strip(), text[begin + len(part) :].strip()
    return between.join(one for one in (before, after) if one)
