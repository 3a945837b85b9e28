"""Which language a query is in, as far as its function words say, and which words those are. Reads small files, once.

`function_words` has one file a language, named by its ISO 639-1 code: question words, articles, pronouns, prepositions,
conjunctions, auxiliary verbs. A new file is a new language. English has its list in `analysis`, because records and
tests of the English rules need it too.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from kalito_mcp.text.analysis import STOP_WORDS, words

ENGLISH: Final = "en"
UNKNOWN: Final = ""
"""No table has one of the words, and they are not in Latin letters, as English would be."""

_SCRIPTS: Final = {
    "ko": re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]"),
    "ja": re.compile("[\u3040-\u30ff]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
}
"""The scripts that tell a language, in this order: Japanese has Han characters too."""

_FOLDER: Final = Path(__file__).with_name("function_words")
_LATIN_ENDS: Final = "\u0250"


def language_of(asked: Sequence[str]) -> str:
    """The code of the language whose function words are most among these words of `analysis.words`.

    The first word counts twice: a question mostly begins with its question word. English if it has as many as any
    other, and for words in Latin letters of which no table has one.
    """
    for code, script in _SCRIPTS.items():
        if any(map(script.search, asked)):
            return code
    bare = [word.partition("'")[0] for word in asked]
    counted = list(dict.fromkeys(bare)) + bare[:1]
    most, best = max((sum(word in table for word in counted), code) for code, table in _tables().items())
    in_english = sum(word in STOP_WORDS for word in counted)
    if most > in_english:
        return best
    return ENGLISH if in_english or all(letter < _LATIN_ENDS for word in bare for letter in word) else UNKNOWN


def function_words(language: str) -> frozenset[str]:
    """The function words of a language, folded as `analysis.words` folds; none of an unknown one."""
    return STOP_WORDS if language == ENGLISH else _tables().get(language, frozenset())


@cache
def _tables() -> dict[str, frozenset[str]]:
    return {path.stem: frozenset(words(_without_title(path))) for path in sorted(_FOLDER.glob("*.txt"))}


def _without_title(path: Path) -> str:
    _, _, listed = path.read_text(encoding="utf-8").partition("\n")
    return listed
