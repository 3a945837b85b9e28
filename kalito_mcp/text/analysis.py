"""How a text becomes the terms of the text index. Pure.

Records and queries are analysed by the same function on every backend, so a rebuilt index equals the old one. Terms
are lower case, without diacritics, lightly stemmed (plural, -ing, -ed, -ly, final e). Scripts without spaces become
character bigrams, and every Han character is a term as well. So are the words of fetchUserProfile (`compounds`), and
emoji. Nothing is dropped at index time. `query_terms` drops function words, unless the query has nothing else.

Source: dropping function words from the query is worth +6 R@10 on LoCoMo, light stemming +2 (own measurements).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from kalito_mcp.text.compounds import compounds
from kalito_mcp.text.irregular_forms import base_form, irregular_heads
from kalito_mcp.text.pieces import PIECE_CHARS, pieces_of_words

SEVERAL: Final = 2
MANY: Final = 4
"""For a term that a text repeats, the index only keeps whether it occurs at least this many times."""

FIRST_PERSON: Final = frozenset("i i'm i've i'd i'll my me myself we we're our".split())
"""Words by which a speaker talks about themselves. English."""

_MAX_TERM_LENGTH: Final = 48
# A short ending stays with its word (don't, we'll); a longer one is a word of its own (O'Brien, all'aperto).
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+(?:'[a-z]{1,2}(?![a-z0-9]))?")
# `re` does not count vowel signs as letters: without these ranges, Indic words would be split into consonants.
_WORD: Final = re.compile(
    r"[\w\u0900-\u0963\u0971-\u0df3\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84"
    r"\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u109a-\u109d"
    r"\u17b4-\u17d3]+(?:['’][^\W\d_]{1,2}(?!\w))?"
)
# Latin, Greek and Cyrillic accents; Hebrew and Arabic vowel points, which are rarely written; the tatweel; the dot
# below letters of India. What cannot be seen within a word: places where a line may be broken, or must not be.
_DIACRITICS: Final = re.compile(
    "[\u00ad\u200b\u2060\ufeff\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u093c\u09bc\u0a3c\u0abc\u0b3c\u0cbc]"
)
# Letters with a mark that Unicode does not take apart, as people type them without it; and letters that are written
# alike or change with the form of the word: the feminine ending of Arabic before a pronoun, the nasal signs of India.
_PLAIN_LETTERS: Final = str.maketrans(
    {
        **dict(zip("ıłđøðħŧƶɨʉɓɗ", "ildodhtziubd", strict=True)),
        **{"æ": "ae", "œ": "oe", "þ": "th", "ĳ": "ij"},
        **dict(zip("ةىیکہۀ", "تييكهه", strict=True)),
        **dict(zip("ँঁઁ", "ंংં", strict=True)),
    }
)
# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana, Han, and Hangul for its particles.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)

# A word of at most this many letters keeps its final e.
_KEEPS_E: Final = 5
# Short roots that had a final e before -ing or -ed. Without the e, the consonant would be doubled (hop, hopping).
_LOST_E: Final = re.compile(r"[vcu]$|[^s]s$|[dr]g$|^[^aeiou]*[aeiouy][^aeiouwxy]$")
# Turns all except letters and digits into spaces: splitting takes half the time of matching.
_ASCII_SPACED: Final = {code: " " for code in range(128) if not chr(code).isalnum()}

_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# A flag is two letters. Skin tones are left out.
_EMOJI: Final = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|[\u231a\u231b\u23e9-\u23f3\u2600-\u27bf\u2b50\u2b55\U0001f300-\U0001f3fa"
    "\U0001f400-\U0001faff]"
)

_FEW_PAIRS: Final = 3
_WORDS_AT_ONCE: Final = 16_384
"""Other threads wait for a millisecond while this many are counted."""

STOP_WORDS: Final = frozenset(
    """a about above after again against ago all also am an and any anyone are as at be because been before being below
    between both but by can could did do does doing don done down during each ever few for from further get had
    happen happened happening happens has have having he her here hers herself him himself his how i if in into is
    it its itself just know like ll many me might more most much must my myself no nor not now of off on once only
    or other our ours ourselves out over own please re s same say said shall she should so some such t tell than
    that the their theirs them themselves then there these they this those through to too under until up us ve
    very was we were what when where which while who whom whose why will with would you your yours yourself
    yourselves""".split()
)


def words(text: str) -> list[str]:
    """The words of the text, in order, folded but not stemmed; bigrams in scripts without spaces."""
    if text.isascii():
        return _ascii_words(text.lower())
    found: list[str] = []
    for word in _WORD.findall(plainly_spelled(text).replace("_", " ")):
        if word.isascii():
            found.append(word)
        else:
            found.extend(_bigrams(word.replace("’", "'")))
    return found


def fold(text: str) -> str:
    """The text in lower case, without diacritics, in compatibility characters. Keys of forgotten words are made of it,
    so it never changes."""
    if text.isascii():
        return text.lower()
    bare = _DIACRITICS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", bare)


def plainly_spelled(text: str) -> str:
    """The folded text in the letters of the index: without marks that are part of a letter (ı, ł, đ)."""
    return fold(text).translate(_PLAIN_LETTERS)


def _ascii_words(lowered: str) -> list[str]:
    if "'" in lowered:
        return _ASCII_WORD.findall(lowered)
    spaced = lowered.translate(_ASCII_SPACED)
    if len(spaced) <= PIECE_CHARS:
        return spaced.split()
    found: list[str] = []
    for piece in pieces_of_words(spaced):
        found += piece.split()
    return found


def terms(text: str) -> list[str]:
    """The index terms of the text, with repeats."""
    return list(filter(None, map(stem, indexed_words(text))))


class IndexedText(NamedTuple):
    """A record's terms in the text index: its distinct terms, those that it contains at least `SEVERAL` and `MANY`
    times, how many words it has, and whether the speaker talks about themselves."""

    terms: tuple[str, ...]
    several: tuple[str, ...]
    many: tuple[str, ...]
    word_count: int
    is_first_person: bool


def index_text(text: str, name: str | None = None) -> IndexedText:
    """The terms by which a record is found, from its text and its speaker's name."""
    said = words(text) + _han(text)
    if name:
        said += words(name) + _han(name)
    found = said + _divided(said, text) + _emoji(text)
    # An ending that is left of a word in a script without spaces ('s) has no stem.
    counts: Counter[str] = Counter()
    for start in range(0, len(found), _WORDS_AT_ONCE):
        counts.update(filter(None, map(stem, found[start : start + _WORDS_AT_ONCE])))
    repeated = [(term, count) for term, count in counts.items() if count >= SEVERAL]
    return IndexedText(
        tuple(counts),
        tuple(term for term, _ in repeated),
        tuple(term for term, count in repeated if count >= MANY),
        len(said),
        not FIRST_PERSON.isdisjoint(said),
    )


def query_terms(text: str, function_words: frozenset[str] = STOP_WORDS, *, may_be_empty: bool = False) -> list[str]:
    """The distinct terms worth looking up: without function words, unless the query has nothing else and must not be
    empty.

    In scripts without spaces a pair of characters is left out if both are listed. Single Han characters come last, if
    the query has more than a word or two.
    """
    all_words = words(text)
    kept = [word for word in all_words if not _is_function_word(word.partition("'")[0], function_words)]
    if len(all_words) > _FEW_PAIRS:
        kept += [one for one in _han(text) if one not in function_words]
    kept = kept or _emoji(text)
    return list(dict.fromkeys(filter(None, map(stem, kept if kept or may_be_empty else all_words))))


def _is_function_word(word: str, function_words: frozenset[str]) -> bool:
    return word in function_words or (not is_spelled_with_spaces(word) and function_words.issuperset(word))


def is_spelled_with_spaces(word: str) -> bool:
    """Whether the script puts spaces between words. If not, the 'word' is only a piece of a longer run."""
    return _UNSPACED.search(word) is None


_INFLECTED: Final = frozenset("sdgye")
"""The last letters of which a rule takes something away."""


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The word without its inflection: one stem for `plan`, `plans`, `planned`, `planning`, and for `buy`, `bought`.

    Words of fewer than four letters and words with digits are returned unchanged, unless they are irregular forms.
    """
    word = base_form(word.partition("'")[0][:_MAX_TERM_LENGTH])
    if len(word) < 4 or not word.isalpha() or not word.isascii():  # noqa: PLR2004 - see the docstring
        return word
    return _without_final_e(_without_participle(_without_plural(word))) if word[-1] in _INFLECTED else word


def heads_of(stems: Iterable[str]) -> frozenset[str]:
    """The first two characters of every word with one of these stems, and of a few other words."""
    heads = {one[:2] for one in stems}
    heads.update(*map(irregular_heads, heads))
    # No other rule changes the start of a word; `i` is also the stem of `i'm`.
    return frozenset(heads | {f"{head}'" for head in heads if len(head) == 1})


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004 - `dies`, `lies` are not plurals of -y
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_participle(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:  # noqa: PLR2004 - `died`, `lied` do not come from -y
        return word[:-3] + "y"
    for suffix, shortest in (("ing", 3), ("ed", 3), ("ly", 4)):
        if not word.endswith(suffix):
            continue
        root = word[: -len(suffix)]
        # `red`, `king`, `fly`; `reply`, `apply`
        if len(root) < shortest or word.endswith("eed") or not any(vowel in root for vowel in "aeiouy"):
            return word
        if suffix == "ly":
            return root
        if root[-1] == root[-2] and root[-1] not in "aeflosz":
            return root[:-1]
        return root + "e" if len(root) < _KEEPS_E and _LOST_E.search(root) else root
    return word


def _without_final_e(word: str) -> str:
    # In shorter words the e makes a difference: `note` and `not`, `plane` and `plan`, `theme` and `them`.
    return word[:-1] if word.endswith("e") and len(word) > _KEEPS_E else word


def indexed_words(text: str) -> list[str]:
    """The words whose stems are the index terms: with every Han character, because a single one is often a word and
    may be the whole query, the emoji, and names of several words both as a whole and divided."""
    said = words(text) + _han(text)
    return said + _divided(said, text) + _emoji(text)


def _divided(said: list[str], text: str) -> list[str]:
    """Of names of several words, the words and the wholes that are not among the words said."""
    names = compounds(text)
    if not names:
        return []
    known = set(said)
    return [word for word in dict.fromkeys(chain(names, *names.values())) if word not in known]


def _han(text: str) -> list[str]:
    return [] if text.isascii() else _HAN.findall(unicodedata.normalize("NFKC", text))


def _emoji(text: str) -> list[str]:
    return [] if text.isascii() else _EMOJI.findall(text)


def _bigrams(word: str) -> list[str]:
    first = _UNSPACED.search(word)
    if first is None:
        return [word]
    if first.start() == 0 and first.end() == len(word):
        return [word[at : at + 2] for at in range(max(1, len(word) - 1))]
    parts: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            parts.append(word[end : run.start()])
        letters = run.group()
        parts.extend(letters[i : i + 2] for i in range(max(1, len(letters) - 1)))
        end = run.end()
    if end < len(word):
        parts.append(word[end:])
    return parts
