"""WordPiece: maps a text to ids of a BERT vocabulary, uncased. Pure.

Case and accents are removed first. Words end at blanks, punctuation and ideographs. Each word is split from its left
into the longest pieces of the vocabulary. Source: Devlin et al., NAACL 2019, and the vocabulary's own rules.
"""

import unicodedata
from collections.abc import Mapping
from typing import Final

_LONGEST_WORD: Final = 100
"""Characters; a longer word is unknown."""
_IDEOGRAPHS: Final = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_ASCII_SIGNS: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_MOST_REMEMBERED: Final = 1 << 16


class _Folding(dict[int, str | None]):
    """Maps characters for `str.translate`; computed when first needed."""

    def __missing__(self, code: int) -> str | None:
        folded = _folded(chr(code))
        if len(self) < _MOST_REMEMBERED:
            self[code] = folded
        return folded


def _folded(character: str) -> str | None:
    """The character in lower case, between blanks if it is a word of its own; None if it is dropped."""
    category = unicodedata.category(character)
    if character in "\t\n\r" or category in {"Zs", "Zl", "Zp"}:
        return " "
    if category in {"Mn", "Cc", "Cf", "Co", "Cs"} or character == "\N{REPLACEMENT CHARACTER}":
        return None
    if category.startswith("P") or character in _ASCII_SIGNS or _is_ideograph(character):
        return f" {character} "
    return character.lower()


def _is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)


class WordPiece:
    """A vocabulary and its pieces. Safe to share between threads."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        """Raises KeyError if one of [CLS], [SEP], [UNK] is missing."""
        self._ids = vocabulary
        self._first, self._last, self._unknown = (vocabulary[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        self._longest = max(map(len, vocabulary))
        self._folding = _Folding()

    @classmethod
    def of(cls, vocabulary: str) -> "WordPiece":
        """From a `vocab.txt` with one piece a line; its id is the line number, from 0."""
        # Not splitlines: some pieces are line separators of other scripts.
        return cls({piece: number for number, piece in enumerate(vocabulary.rstrip("\n").split("\n"))})

    def ids(self, text: str, most: int) -> list[int]:
        """`[CLS]`, the pieces and `[SEP]`, at most `most` ids; the rest of the text is left out."""
        pieces: list[int] = []
        for word in unicodedata.normalize("NFD", text).translate(self._folding).split(" "):
            if word:
                pieces += self._pieces(word)
            if len(pieces) >= most - 2:
                break
        return [self._first, *pieces[: most - 2], self._last]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._unknown]
        pieces: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                piece = self._ids.get(mark + word[start:end])
                if piece is not None:
                    break
            else:
                return [self._unknown]
            pieces.append(piece)
            start = end
        return pieces
