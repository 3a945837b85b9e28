"""Canonical keys: two texts are the same if their folded tokens are equal. Pure.

Folding removes differences of case, white space, compatibility forms (NFKC: full-width letters, ligatures), typographic
quotes and dashes, invisible characters, and the punctuation of prose at the edges of a word. Everything else carries
meaning that a cosine does not see, and stays: digits, signs, operators, units, currencies, the brackets of code and of
groups, emoji, the dot of `.env`. A mark that may be prose or code stays too: if equal texts get two keys, they are
still linked and shown as one, but if different texts get one key, one of them is lost.

Measured on 29,000 sentences of real chats: none of 42,651 changes of meaning (another digit, a missing word, "not",
before / after) kept its key, and 99.7 % of 176,000 changes of case, space, quotes and final marks did.

Known limits: case is folded even if it has a meaning (mW, MW), and a final mark of code is removed (`save!`, `int?`).
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

NORM_VERSION: Final = 1
"""Stored with a graph; another version makes other keys and other vectors."""

HASH_ALGO: Final = "blake2b-128"
SEED: Final = 0

_SALT: Final = SEED.to_bytes(16, "little")

_DOUBLE_QUOTES: Final = "“”„‟«»"
_SINGLE_QUOTES: Final = "‘’‚‛ʼ‹›´′"
_HYPHENS: Final = "\u2010\u2011\u2212"
# Soft hyphen, zero-width space, marks of direction, word joiner, variation selectors of emoji, byte order mark. Not
# the zero-width joiners: they carry meaning in emoji and Indic scripts.
_INVISIBLE: Final = "\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufe0e\ufe0f\ufeff"
_TRANSLATED: Final = (
    dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"')
    | dict.fromkeys(map(ord, _SINGLE_QUOTES), "'")
    | dict.fromkeys(map(ord, _HYPHENS), "-")
)
_ERASED: Final = re.compile(f"[{_INVISIBLE}]")

# NFKC alone would turn 2³ into 23 and 10₂ into 102, and would join the digits of 1½.
_SUPERSCRIPT: Final = re.compile("(?=[⁰¹²³⁴-⁻ⁿ])(?<![⁰¹²³⁴-⁻ⁿ])")
_SUBSCRIPT: Final = re.compile("(?<=[0-9])(?=[₀-₋])")
_FRACTION: Final = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞↉])")

# A dash is prose unless it is between two numbers.
_LONE_EN_DASH: Final = re.compile(r"(?<!\S)–+(?!\S)")
_RANGE_DASH: Final = re.compile(r"(?<=\d)(\s*)—+(?=\s*\d)")

_CJK_MARKS: Final = "。、｡､「」『』【】《》〈〉〔〕〖〗"
_LEADING: Final = "\"',¡¿" + _CJK_MARKS
_TRAILING: Final = ".,;:!?\"'¡¿؟،؛।॥" + _CJK_MARKS
_MARKS: Final = ".,;:!?"
_SHORTEST_MARKED: Final = 2
# `:wq` and `:wq!` are two commands.
_TRAILING_COMMAND: Final = _TRAILING.replace("!", "")

# Punctuation that has a meaning as a word of its own: git add . | cd .. | x = "" | if ! grep
_MEANT_ALONE: Final = frozenset([".", "..", '""', "''", "!"])
_EMOTICON: Final = re.compile(r"[:;=]'?[-^]?[()\[\]{}|/\\*<>@$]+")
_COMMAND: Final = re.compile(r":[^\W\d_]")
_QUOTED_NUMBER: Final = re.compile(r"([\"'])[-+]?[0-9][0-9.,]*\1")
# A chunk with one of these depends on what stands around it.
_DEPENDS: Final = frozenset("\"'()")
_OPERATOR: Final = re.compile(r"[-+*/%=<>&|^~!:]*[+*/%=<>&|^~][-+*/%=<>&|^~!]*")


def canonical_meta() -> dict[str, Any]:
    """Everything that a canonical key depends on apart from its text, JSON-ready."""
    return {"norm_version": NORM_VERSION, "hash_algo": HASH_ALGO, "seed": SEED}


def canonical_key(text: str) -> str:
    """32 hex digits, equal for texts with equal folded tokens and for no others."""
    return blake2b(normalize(text).encode("utf-8", "surrogatepass"), digest_size=16, salt=_SALT).hexdigest()


@lru_cache(maxsize=1)
def normalize(text: str) -> str:
    """The folded tokens, joined by one space. Idempotent. A question is folded for its key, then for its vector."""
    return " ".join(folded_tokens(text))


def folded_tokens(text: str) -> list[str]:
    """The words of the text, folded and without the punctuation of prose, in order.

    A text of only punctuation is kept as its tokens; a text of only white space has none.
    """
    folded = _folded(text)
    prose = folded if folded.isascii() else _without_dashes(folded)
    return _Edges(prose).tokens(prose.split()) or folded.split()


def _folded(text: str) -> str:
    """Fold case, compatibility forms, quotes, hyphens and invisible characters."""
    if text.isascii():
        return text.lower()
    while True:
        # Once is not enough: folding case can undo the normal form, and the other way round.
        folded = _ERASED.sub("", text.translate(_TRANSLATED))
        folded = _FRACTION.sub(" ", _SUBSCRIPT.sub("_", _SUPERSCRIPT.sub("^", folded)))
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
        if folded == text:
            return folded
        text = folded


def _without_dashes(folded: str) -> str:
    """Replace dashes in prose by spaces, and dashes in ranges and numbers by hyphens."""
    if "–" not in folded and "—" not in folded:
        return folded
    folded = _LONE_EN_DASH.sub("—", folded)
    return _RANGE_DASH.sub(r"\1-", folded).replace("—", " ").replace("–", "-")


class _Edges:
    """Strips punctuation from the edges of chunks split at white space. It tracks open brackets and quotes."""

    def __init__(self, text: str) -> None:
        self._closers_ahead = text.count(")")
        self._depth = 0
        self._open_quotes: set[str] = set()
        self._known: dict[tuple[str, bool], str] = {}
        """The tokens of chunks that are the same wherever they stand, except before the first token."""

    def tokens(self, chunks: list[str]) -> list[str]:
        """The stripped chunks that are not empty."""
        found: list[str] = []
        for chunk in chunks:
            if chunk.isalnum():
                found.append(chunk)
                continue
            # Most other words of prose: letters and one mark. They open and close nothing.
            if chunk[-1] in _MARKS and len(chunk) > _SHORTEST_MARKED and not self._depth and chunk[:-1].isalpha():
                found.append(chunk[:-1])
                continue
            is_alike = not self._depth and _DEPENDS.isdisjoint(chunk)
            token = self._known.get((chunk, not found)) if is_alike else None
            if token is None:
                token = self._token(chunk, found[-1] if found else "")
                if is_alike:
                    self._known[chunk, not found] = token
            if token:
                found.append(token)
        while found and found[-1] == "!":
            found.pop()
        return found

    def _token(self, chunk: str, previous: str) -> str:
        openers, closers = chunk.count("("), chunk.count(")")
        self._closers_ahead -= closers
        if self._depth:
            return self._inside(chunk, openers - closers)
        if chunk in _MEANT_ALONE:
            return chunk
        if (emoticon := chunk.lstrip(_LEADING).rstrip(_TRAILING)) and _EMOTICON.fullmatch(emoticon):
            return emoticon
        if openers > closers and self._closers_ahead > 0:
            # Brackets group words, so they are kept: f(a, b) c is not f(a, b c).
            self._depth = openers - closers
            return chunk
        if chunk[0] in "\"'":
            quoted = chunk.rstrip(".,;:!?")
            # x = "none" is not x = none.
            if _QUOTED_NUMBER.fullmatch(quoted) or _OPERATOR.fullmatch(previous):
                return quoted
        return self._stripped(chunk, openers, closers, leads=not previous)

    def _inside(self, chunk: str, opened: int) -> str:
        self._depth = max(0, self._depth + opened)
        return chunk if self._depth else chunk.rstrip(_TRAILING)

    def _stripped(self, chunk: str, openers: int, closers: int, *, leads: bool) -> str:
        start = len(chunk) - len(chunk.lstrip(_LEADING))
        if leads and chunk.startswith("...", start):
            # Later in a text it may be the three dots of code: f(a, ...rest).
            start = len(chunk) - len(chunk.lstrip(_LEADING + "."))
        if start:
            self._open_quotes.update(quote for quote in "\"'" if quote in chunk[:start])
        word = chunk[start:].lstrip(_LEADING + "(").rstrip(_TRAILING + ")")
        if len(word) > 1 and _is_word(word):
            if self._open_quotes:
                self._open_quotes.difference_update(quote for quote in "\"'" if quote in chunk[start:])
            return word
        return self._stripped_code(chunk, start, openers, closers)

    def _stripped_code(self, chunk: str, start: int, openers: int, closers: int) -> str:
        trailing = _TRAILING_COMMAND if _COMMAND.match(chunk, start) else _TRAILING
        end = len(chunk)
        while end > start:
            mark = chunk[end - 1]
            if mark in "\"'":
                # 5" is a length and f' a derivative, unless a quotation ends there.
                if mark not in self._open_quotes and _may_carry_a_prime(chunk, start, end - 1):
                    break
                self._open_quotes.discard(mark)
            elif mark == ")":
                if closers <= openers:
                    break
                closers -= 1
            elif mark not in trailing:
                break
            end -= 1
        return chunk[start:end]


def _is_word(word: str) -> bool:
    """Whether it is letters only, apart from apostrophes and hyphens."""
    return word.replace("'", "").replace("-", "").isalpha()


def _may_carry_a_prime(chunk: str, start: int, end: int) -> bool:
    # Look back no further than a triple prime: otherwise a million quotes take a million squared steps.
    before = chunk[max(start, end - 3) : end].rstrip("'\"")
    return before[-1:].isdigit() or (start + len(before) == end and len(before) == 1 and before.isalpha())
