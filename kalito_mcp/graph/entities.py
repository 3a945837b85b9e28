"""What a text is about: the names, files, identifiers, addresses, dates and tags that stand in it. Pure.

One pass over the tokens between white space; what is a plain lower-case word costs one comparison. A name is a run
of capitalised words. A single one that opens a sentence counts unless it is a common word, looks like a verb or an
exclamation, or introduces an object ("Book a table"); in mid-sentence elsewhere in the text it always counts. No
model and no gazetteer: names in scripts without capitals are not found, lower-case names neither, and where every
noun has a capital, as in German, the nouns come along. In code only what is code, a file or an address is looked for.

Only the first 20,000 characters are read, and a run of 400 characters without white space is data, not a word.
Measured on the messages of `tests/graph/labelled_entities.py`, precision and recall:
- held out (116 messages): 0.95, 0.95; names 90/96, 90/95; of the other kinds 31/32, 31/32
- known while the rules were written (229): 0.97, 0.99; names 184/190, 184/187; other kinds 99/101, 99/100
Long answers in Markdown keep more noise than chat: headings without markup, capitalised common nouns.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kalito_mcp.graph.entity_shapes import (
    EntityKind,
    date_at,
    is_bare_file,
    is_camel_case,
    is_emphatic,
    quoted_kind,
    spans,
)
from kalito_mcp.graph.entity_words import (
    ADDRESSING,
    COMMON,
    NEVER,
    NO_VERBS,
    OBJECTS,
    OPENING,
    ORDINARY,
    SINGULAR_VERBS,
)

__all__ = ["MAX_ENTITIES", "Entity", "EntityKind", "entities"]

MAX_ENTITIES: Final = 24
"""At most so many of a text, the first ones."""

_MAX_LENGTH: Final = 120
_MAX_READ: Final = 20_000
_MAX_TOKEN: Final = 400
_MAX_NAME_WORDS: Final = 6
_MIN_ACRONYM: Final = 2
_MAX_ACRONYM: Final = 6
_MIN_SUFFIXED: Final = 6
_MIN_SHOUT: Final = 3
_LOOK_AROUND: Final = 24
_MIN_CAMEL: Final = 4


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing that a text names, as it is written there: at most 120 characters."""

    kind: EntityKind
    text: str


# Han, kana and Hangul are not separated by spaces from what stands in them.
_TOKEN: Final = re.compile("[^\\s\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uff60]++")
_LEFT_EDGE: Final = ",;:!?()[]{}*\"'“”‘’«»…<>|=&"
_RIGHT_EDGE: Final = _LEFT_EDGE + "."

_MAYBE_CODE: Final = re.compile(r"[`;{]|\):|->|import ")
_CODE: Final = re.compile(
    r"(?P<fence>```(?:[^`]++|`(?!``))*+(?:```|\Z))"
    r"|^(?P<line>(?:import [\w.*{]|from [\w.]++ import |[ \t]*+(?:def|class) \w++[(:]|(?:const|let|var) [^`\n=]++="
    r"|#include |(?: {4}|\t)[ \t]*+[^\s`*•–0-9-])[^`\n]*+(?=\n|\Z)|[^`\n]*+(?:(?<=[;{])|(?<=\):)|(?<=->))(?=\n|\Z))"
    r"|`(?P<inline>[^`\n]{1,120}+)`",
    re.MULTILINE,
)

_HAN_DATE: Final = re.compile(r"(?:\d{4}年)?\d{1,2}月\d{1,2}日|\d{4}年\d{1,2}月")

_ELIDED: Final = re.compile(r"[a-zA-Z]{1,2}['’](?=[^\W\d_a-zß-ÿ])")
_NAME_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*+")
_CONTRACTED: Final = re.compile(r"['’](?:s|m|d|re|ve|ll)?\Z")
_LOWER_TAIL: Final = re.compile(r"-[a-zß-ÿ].*")
_PLAIN: Final = re.compile(r"[^\W\d_]++(?:['’-][^\W\d_]++)*+\Z")
# What may stand between the words of one name.
_LINKS: Final = frozenset(
    f" {link}{' ' * bool(link)}"
    for link in (
        "", "&", "of", "of the", "van", "van der", "van den", "van de", "von", "von der", "de", "de la", "de los",
        "del", "della", "der", "di", "da", "do", "dos", "das", "du", "des", "la", "le", "el", "al", "bin", "ibn", "ten",
        "ter", "zu", "af",
    )
) | {"&"}  # fmt: skip
_MAX_LINK: Final = max(map(len, _LINKS))
_ABBREVIATED: Final = re.compile(r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Sra|Hr|Fr|Mme|Mt))\.\Z")
_INITIAL: Final = re.compile(r"(?:\b[A-Z]|\bSt|\bMt)\Z")
_AFTER_INITIAL: Final = frozenset((". ", "."))
_ITEM_EDGE: Final = " \t-*•–—.,:0123456789)[]"
_INSIDE: Final = frozenset(",;”\"'’/&+=%$€£@#_°")
_ORDINAL: Final = re.compile(r"(?<![^\s*])\d{1,2}\)\Z")
_OPENERS: Final = frozenset('"“(«„‘[')
# A dash with a space after it, and a bullet, let a sentence begin; Jean-Luc does not.
_DASHES: Final = frozenset("-–—")

_SINGULAR_TAILS: Final = frozenset(("ss", "us", "is"))
# Verbs, adverbs and abstract nouns by their ending.
_ENDINGS: Final = tuple(
    "able age ance ate ed ful hood ing ism ity ive ize less logy ly ment ness ous ship sion tion ture ware".split()
)
# Headings, and the bold labels of list items, are written in capitals and name no one.
_LABEL: Final = re.compile(
    r"^(?:#{1,6} [^\n]*+|[ \t]*+(?:(?:[-*•]|\d{1,3}[.)])[ \t]++)?\*\*[^*\n]{1,100}+"
    r"(?:(?<=:)\*\*|\*\*(?=[ \t]*+(?::|\n|\Z))))",
    re.MULTILINE,
)
_NEXT_WORD: Final = re.compile(r"(,?) ([a-z']++)")


@dataclass(slots=True)
class _Run:
    """Capitalised words that may be one name: their places in the text, and whether they open a sentence."""

    words: list[tuple[int, int]]
    is_initial: bool


def entities(text: str) -> tuple[Entity, ...]:
    """The distinct things named in the text, in order of first appearance; distinct by kind and folded text.

    At most 24, none longer than 120 characters. A text without any: empty, no error.
    """
    text = _readable(text)
    reader = _Reader(text)
    at = 0
    if _MAYBE_CODE.search(text):
        for match in _CODE.finditer(text):
            reader.read(at, match.start())
            at = match.end()
            quoted = match["inline"]
            if quoted:
                start = match.start("inline") + len(quoted) - len(quoted.lstrip())
                quoted = quoted.strip()
                reader.found.append((start, start + len(quoted), quoted_kind(quoted)))
            else:
                reader.read_code(match.start(), at)
    reader.read(at, len(text))
    if "月" in text:
        reader.found.extend((*match.span(), EntityKind.DATE) for match in _HAN_DATE.finditer(text))
    if reader.runs:
        reader.found.extend((start, end, EntityKind.NAME) for start, end in _names(text, reader.runs))
    kept: dict[tuple[EntityKind, str], Entity] = {}
    for start, end, kind in sorted(reader.found):
        if 0 < end - start <= _MAX_LENGTH:
            written = text[start:end]
            kept.setdefault((kind, written.casefold()), Entity(kind, written))
            if len(kept) == MAX_ENTITIES:
                break
    return tuple(kept.values())


def _readable(text: str) -> str:
    """The text up to its limit, without a word that the limit cuts."""
    if len(text) <= _MAX_READ:
        return text
    near = _MAX_READ - _MAX_TOKEN
    cut = max(text.rfind(" ", near, _MAX_READ), text.rfind("\n", near, _MAX_READ))
    return text[: cut if cut >= 0 else _MAX_READ]


class _Reader:
    """Walks over a text once: what it found, and the runs of words that may be names."""

    def __init__(self, text: str) -> None:
        self.found: list[tuple[int, int, EntityKind]] = []
        self.runs: list[_Run] = []
        self._text = text

    def read_code(self, start: int, end: int) -> None:
        """Take what is an identifier, a file or an address; no names, dates or tags."""
        for match in _TOKEN.finditer(self._text, start, end):
            if len(match.group()) <= _MAX_TOKEN:
                at = match.start()
                for left, right, kind in spans(match.group(), in_code=True):
                    if kind is not None:
                        self.found.append((at + left, at + right, kind))

    def read(self, start: int, end: int) -> None:
        """Take everything that prose may name."""
        text = self._text
        dated = 0
        for match in _TOKEN.finditer(text, start, end):
            token = match.group()
            if token.islower() and token.isalpha():
                continue
            at = match.start()
            if at < dated or len(token) > _MAX_TOKEN:
                continue
            bare = token.lstrip(_LEFT_EDGE)
            left = at + len(token) - len(bare)
            bare = bare.rstrip(_RIGHT_EDGE)
            if not text.startswith("(", left + len(bare)):
                if bare.islower() and _PLAIN.match(bare):
                    continue
                if bare.isalpha():
                    self._word(left, left + len(bare))
                    continue
            date = date_at(text, left, bare) if bare[:1].isdigit() else None
            if date is not None:
                self.found.append((*date, EntityKind.DATE))
                dated = date[1]
            else:
                self._shapes(token, at)

    def _shapes(self, token: str, at: int) -> None:
        for left, right, kind in spans(token):
            if kind is not None:
                self.found.append((at + left, at + right, kind))
                continue
            for word in _NAME_WORD.finditer(token, left, right):
                self._word(at + word.start(), at + word.end())

    def _word(self, start: int, end: int) -> None:
        """Take a word by itself where its letters tell what it is, otherwise as a part of a run if it has a capital."""
        word = self._text[start:end]
        if not word[0].isupper():
            elided = _ELIDED.match(word)
            if elided:
                start += elided.end()
                word = word[elided.end() :]
            elif not word.islower() and len(word) >= _MIN_CAMEL and word.isascii() and word.isalpha():
                self.found.append((start, end, EntityKind.CODE if is_camel_case(word) else EntityKind.NAME))
                return
            else:
                return
        word = _name_part(word)
        if not word:
            return
        end = start + len(word)
        if is_bare_file(word):
            self.found.append((start, end, EntityKind.FILE))
        elif word.isalpha() and not word[1:].islower() and not word.isupper() and is_camel_case(word):
            self.found.append((start, end, EntityKind.CODE))
        elif self._continues(start):
            self.runs[-1].words.append((start, end))
        else:
            self.runs.append(_Run([(start, end)], _opens_sentence(self._text, start)))

    def _continues(self, start: int) -> bool:
        """Whether a word that starts here belongs to the run before it."""
        if not self.runs:
            return False
        end = self.runs[-1].words[-1][1]
        if start - end > _MAX_LINK:
            return False
        gap = self._text[end:start]
        is_after_initial = gap in _AFTER_INITIAL and _INITIAL.search(self._text, max(0, end - 3), end) is not None
        return is_after_initial or gap in _LINKS


def _name_part(word: str) -> str:
    """The capitalised word without possessive, plural of an acronym and lower-case tail; empty where it is no name."""
    if not word.isalpha():
        if word.casefold().replace("’", "'") in NEVER:
            return ""
        word = _CONTRACTED.sub("", word)
        if "-" in word:
            word = _LOWER_TAIL.sub("", word)
    if word.casefold() in NEVER:
        return ""
    if len(word) > _MIN_ACRONYM and word[-1] == "s" and word[:-1].isupper():
        word = word[:-1]
    if len(word) > 1 and word.isupper():
        letters = sum(map(str.isalpha, word))
        if not _MIN_ACRONYM <= letters <= _MAX_ACRONYM or is_emphatic(word):
            return ""
    return word


def _opens_sentence(text: str, start: int) -> bool:
    """Whether the word stands at the beginning of a text, line, sentence, quotation or list item."""
    at = start - 1
    while at >= 0 and text[at] == " ":
        at -= 1
    before = text[at] if at >= 0 else "\n"
    if before in _OPENERS:
        return at == start - 1
    if before in _DASHES:
        return at < start - 1
    if before == ".":
        return _ABBREVIATED.search(text, max(0, at - 5), at + 1) is None
    if before == ")":
        return _ORDINAL.search(text, max(0, at - 3), at + 1) is not None
    return not before.isalnum() and before not in _INSIDE


def _names(text: str, runs: list[_Run]) -> Iterator[tuple[int, int]]:
    """The runs that are names, in order, without the ordinary words that open their sentence."""
    labels = [match.span() for match in _LABEL.finditer(text)] if "#" in text or "**" in text else []
    if labels:
        runs = _outside(runs, labels)
    inside = {text[start:end].casefold() for run in runs if not run.is_initial for start, end in run.words}
    for run in runs:
        words = _without_opening(text, run.words) if run.is_initial else run.words
        start, end = words[0][0], words[-1][1]
        # A blank to be filled in: [Company Name].
        if text.startswith("]", end) and not text.startswith("](", end):
            continue
        if _is_phrase(text, run, start, end) if len(words) > 1 else _is_single(text, run, start, end, inside):
            yield start, end


def _is_single(text: str, run: _Run, start: int, end: int, inside: set[str]) -> bool:
    """Whether the one word that is left of a run is a name; `inside` are the capitalised words of mid-sentence."""
    name = text[start:end]
    if len(name) == 1:
        return False
    if name.isupper():
        return not _is_shouted(text, start, end)
    folded = name.casefold()
    if not run.is_initial or folded in inside:
        return True
    return folded not in ORDINARY and (start > run.words[0][0] or not _is_doubtful(text, start, end))


def _is_phrase(text: str, run: _Run, start: int, end: int) -> bool:
    """Whether a run of several words is a name: no title, no shouting, no label made of ordinary words."""
    name = text[start:end]
    if len(run.words) > _MAX_NAME_WORDS or (name.isupper() and len(run.words) >= _MIN_SHOUT):
        return False
    return not run.is_initial or ORDINARY.isdisjoint(name.casefold().split()) or not _is_label(text, start, end)


def _outside(runs: list[_Run], labels: list[tuple[int, int]]) -> list[_Run]:
    """The runs that start in none of the labels; both in order."""
    kept: list[_Run] = []
    ends = iter([*labels, (_MAX_READ, _MAX_READ)])
    label = next(ends)
    for run in runs:
        start = run.words[0][0]
        while label[1] <= start:
            label = next(ends)
        if start < label[0]:
            kept.append(run)
    return kept


def _without_opening(text: str, words: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The run from its first word that may begin a name; at least its last word."""
    first = 0
    while first < len(words) - 1:
        start, end = words[first]
        folded = text[start:end].casefold()
        # "Photos of Oslo", but "New York".
        is_linked = words[first + 1][0] - end > 1
        is_verb = len(folded) >= _MIN_SUFFIXED and folded.endswith(("ing", "ed")) and folded not in NO_VERBS
        if folded not in OPENING and not is_verb and not (is_linked and folded in COMMON):
            break
        first += 1
    return words[first:]


def _is_doubtful(text: str, start: int, end: int) -> bool:
    """Whether a single word that opens a sentence may have its capital for its place alone."""
    folded = text[start:end].casefold()
    is_plural = folded[-1] == "s" and folded[-2:] not in _SINGULAR_TAILS
    if is_plural and folded[:-1] in ORDINARY:
        return True
    if (len(folded) >= _MIN_SUFFIXED and folded.endswith(_ENDINGS)) or text.startswith("!", end):
        return True
    following = _NEXT_WORD.match(text, end)
    if following is None:
        return _is_label(text, start, end)
    comma, word = following.groups()
    if comma:
        return word not in ADDRESSING
    is_verb = word in SINGULAR_VERBS or word.endswith(("s", "ed"))
    return word in OBJECTS or (is_plural and not is_verb)


def _is_label(text: str, start: int, end: int) -> bool:
    """Whether a colon follows, or a line holds nothing else: an item of a list, a heading."""
    if text.startswith((":", "**:"), end):
        return True
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    if line_start == 0 and line_end < 0:
        return False
    line_end = line_end if line_end >= 0 else len(text)
    if line_end - line_start > _LOOK_AROUND + end - start:
        return False
    return text[line_start:line_end].strip(_ITEM_EDGE) == text[start:end]


def _is_shouted(text: str, start: int, end: int) -> bool:
    """Whether ordinary words around an acronym stand in capitals too."""
    around = f"{text[max(0, start - _LOOK_AROUND) : start]} {text[end : end + _LOOK_AROUND]}".split()
    return sum(word.isupper() and is_emphatic(word.strip(_RIGHT_EDGE)) for word in around) > 1
