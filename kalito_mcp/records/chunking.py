"""Cuts a document into chunks, each small enough to be one record. Pure.

It cuts by structure first: at Markdown headings, then at blank lines, then at list items and the edges of fenced code,
then at blank lines inside code. Text without these is cut at a line, a sentence, a word, or at last between two
characters. A heading stays with the text below it. The joined chunks are the text: nothing is lost or added.

A document that is remembered again should keep most of its chunks. So among borders of one kind it cuts at the one
whose following text has the largest checksum, not at the last: soon after an edit, the cuts are the same as before.
Source: content-defined chunking, as in LBFS (Muthitacharoen, Chen, Mazieres, SOSP 2001), by local maximum.

Underlined headings, tables and HTML are treated as paragraphs and lines.
"""

import re
import unicodedata
import zlib
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ChunkPolicy(Policy):
    """The length of chunks, in characters. Only a whole paragraph or code block exceeds `target_chars`; nothing exceeds
    `max_chars`."""

    target_chars: int = bounded(2_000, least=1)
    max_chars: int = bounded(4_000, least=1)

    def __post_init__(self) -> None:
        """Raises InvalidInput for a number out of bounds, or if `target_chars` is above `max_chars`."""
        Policy.__post_init__(self)
        if self.target_chars > self.max_chars:
            raise InvalidInput(
                f"target_chars={self.target_chars} is above max_chars={self.max_chars}; "
                "lower the one or raise the other"
            )


DEFAULT_CHUNKS: Final = ChunkPolicy()

_LEVELS: Final = 6
# Kinds of borders other than headings, strongest first. Each includes the stronger ones and all headings.
_BLOCK, _PART, _CODE = 0, 1, 2

_STRUCTURE: Final = re.compile(
    r"^(?:(?P<blank>(?:[^\S\n]*+\n)++)"
    r"|[ ]{0,3}(?:(?P<heading>\#{1,6})(?=\s|\Z)|(?P<item>(?:[-*+]|[0-9]{1,9}[.)])(?=\s)))"
    r"|[ \t]*+(?P<fence>`{3,}+|~{3,}+))",
    re.MULTILINE,
)
_BLANK_LINE: Final = re.compile(r"[^\S\n]*+(?:\n|\Z)")
_SENTENCE_END: Final = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+\s|[。！？｡؟।॥።]++[\"'”’」』）】》]*+",
)
# A heading starts a new chunk only if the chunk before it has at least one eighth of the target.
_LEAST_BEFORE_HEADING: Final = 8
_FINGERPRINT_CHARS: Final = 64

# In addition to combining marks: joiners, conjoining jamo, skin tones, tags of flags, second halves of surrogate pairs.
_CONTINUES: Final = re.compile("[\u200c\u200d\u1160-\u11ff\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\udc00-\udfff]")
_REGIONAL: Final = re.compile("[\U0001f1e6-\U0001f1ff]")
_LONGEST_CLUSTER: Final = 64


def chunks(text: str, policy: ChunkPolicy = DEFAULT_CHUNKS) -> list[str]:
    """Cut the text into parts, in order: one part up to `target_chars`, no parts for an empty text.

    No part is empty or longer than `max_chars`. A part longer than the target has no good cut before it. Parts well
    before an edit stay the same.
    """
    if len(text) <= policy.target_chars:
        return [text] if text else []
    borders = _Borders(text)
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = _end(text, start, borders, policy)
        parts.append(text[start:end])
        start = end
    return parts


class _Borders:
    """The offsets at which a text may be cut, ascending.

    `headings` has a list per level, and `others` a list per kind. Each list in `others` ends with the text's length.
    """

    def __init__(self, text: str) -> None:
        # Eight bytes a border: a hostile document of 10 MB has millions.
        self.headings = [array("q") for _ in range(_LEVELS)]
        self.others = [array("q") for _ in (_BLOCK, _PART, _CODE)]
        self._read(text)
        self._add(len(text), _BLOCK)

    def _read(self, text: str) -> None:
        fence = ""
        # No border at this offset: the start of the text, or the line after a heading and its blank lines.
        glued = 0
        for match in _STRUCTURE.finditer(text):
            start, mark = match.start(), match.group(match.lastgroup or 0)
            if match.lastgroup == "blank":
                if start == glued:
                    glued = match.end()
                elif match.end() < len(text):
                    self._add(match.end(), _CODE if fence else _BLOCK)
            elif fence:
                if mark.startswith(fence) and _BLANK_LINE.match(text, match.end()):
                    fence = ""
                    following = _next_line(text, start)
                    if not _BLANK_LINE.match(text, following):
                        self._add(following, _PART)
            elif match.lastgroup == "heading":
                if start != glued:
                    self.headings[len(mark) - 1].append(start)
                    self._add(start, _BLOCK)
                glued = _next_line(text, start)
            elif match.lastgroup == "item" or _opens_code(text, match.end(), mark):
                fence = mark if match.lastgroup == "fence" else ""
                if start != glued:
                    self._add(start, _PART)

    def _add(self, offset: int, kind: int) -> None:
        for borders in self.others[kind:]:
            if not borders or borders[-1] != offset:
                borders.append(offset)


def _next_line(text: str, offset: int) -> int:
    return text.find("\n", offset) + 1 or len(text)


def _opens_code(text: str, offset: int, mark: str) -> bool:
    """Whether this mark opens a code block. Backticks followed by more on the same line are inline code."""
    return mark[0] == "~" or "`" not in text[offset : _next_line(text, offset)]


def _end(text: str, start: int, borders: _Borders, policy: ChunkPolicy) -> int:
    """The end of the chunk that begins at `start`."""
    target = start + policy.target_chars
    if target >= len(text):
        return len(text)
    for level in borders.headings:
        if found := _within(level, start + policy.target_chars // _LEAST_BEFORE_HEADING, target):
            return _kept_by_edits(text, found)
    half = start + policy.target_chars // 2
    for kind in borders.others:
        if found := _within(kind, half, target):
            return _kept_by_edits(text, found)
        # The end of the text is a border after the target, so there is always a next one.
        place = bisect_right(kind, target)
        following = kind[place]
        if following <= start + policy.max_chars:
            return following
        # A block too long for this chunk starts the next one if it fits there.
        if place and kind[place - 1] > start and following - kind[place - 1] <= policy.max_chars:
            return kind[place - 1]
    return _end_inside(text, start, half, target)


# Quoted: before Python 3.12 an array cannot be subscripted at run time.
def _within(borders: "array[int]", after: int, until: int) -> "array[int]":
    return borders[bisect_right(borders, after) : bisect_right(borders, until)]


def _kept_by_edits(text: str, borders: "array[int]") -> int:
    """The border whose following text has the largest checksum; the last of equal ones."""
    if len(borders) == 1:
        return borders[0]
    return max(borders, key=lambda offset: (_fingerprint(text, offset), offset))


def _fingerprint(text: str, offset: int) -> int:
    return zlib.crc32(text[offset : offset + _FINGERPRINT_CHARS].encode("utf-8", "surrogatepass"))


def _end_inside(text: str, start: int, half: int, target: int) -> int:
    """The end of the last line, sentence or word in the second half; else the last whole character."""
    end = text.rfind("\n", half, target) + 1
    if end:
        return end
    for match in _SENTENCE_END.finditer(text, half, target):
        end = match.end()
    if not end:
        end = next((place for place in range(target, half, -1) if text[place - 1].isspace()), target)
    for place in range(end, max(start, end - _LONGEST_CLUSTER), -1):
        if not _is_inside_character(text, start, place):
            return place
    return end


def _is_inside_character(text: str, start: int, offset: int) -> bool:
    """Whether a cut at `offset` would split one visible character, or a carriage return from its line feed. The chunk
    begins at `start`."""
    before, after = text[offset - 1], text[offset]
    if after.isascii():
        return before == "\r" and after == "\n"
    if before == "\u200d" or _CONTINUES.match(after) or unicodedata.category(after).startswith("M"):
        return True
    if not _REGIONAL.match(after):
        return False
    # A flag is a pair: after an odd number of halves, the next one is the second of its pair.
    first = offset
    while first > start and _REGIONAL.match(text[first - 1]):
        first -= 1
    return (offset - first) % 2 == 1
