"""The tables of languages, and which language a query is in, as far as its function words say. Reads small files, once.

`language_tables` has one file a language, named by its ISO 639-1 code; a new file is a new language. A line in brackets
begins a section. `function words` are question words, articles, pronouns, prepositions, conjunctions and auxiliary
verbs. `talk` are the words that ask for whatever was said or done. The other sections name times
(`text.times.other_languages`). English has its words in Python, because records and tests of the English rules need
them too.
"""

import re
from collections.abc import Mapping, Sequence
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

_FOLDER: Final = Path(__file__).with_name("language_tables")
_FUNCTION_WORDS: Final = "function words"
_TALK: Final = "talk"
_ENGLISH_TALK: Final = frozenset(
    """anything chat chatted come comes conversation conversations cover covered came discuss discussed discussing
    discussion everything give go going gone got list mention mentioned mentioning note noted overview raise raised
    recap remind review said show something speak speaking spoke spoken subject subjects summaries summarise
    summarised summarize summarized summary sum talk talked talking thing things told topic topics went write wrote
    written""".split()
)
_LATIN_ENDS: Final = "\u0250"


def language_of(query_words: Sequence[str]) -> str:
    """The code of the language whose function words are most among these words of `analysis.words`.

    The first word counts twice: a question mostly begins with its question word. English if it has as many as any
    other, and for words in Latin letters of which no table has one.
    """
    likely = likely_languages(query_words)
    if ENGLISH not in likely:
        return likely[-1]
    is_known = any(word.partition("'")[0] in STOP_WORDS for word in query_words)
    return ENGLISH if is_known or all(letter < _LATIN_ENDS for word in query_words for letter in word) else UNKNOWN


def is_clearly_english(query_words: Sequence[str]) -> bool:
    """Whether English function words are two of these words, or a third of them.

    One alone may be a word of a language without a table: Finnish `on` is `is`.
    """
    found = STOP_WORDS.intersection(word.partition("'")[0] for word in query_words)
    return len(found) > 1 or 3 * len(found) >= max(1, len(query_words))


def likely_languages(query_words: Sequence[str]) -> list[str]:
    """The codes of the languages that have most of these words as function or talk words; all if none has one."""
    foreign = [word for word in query_words if not word.isascii()]
    for code, script in _SCRIPTS.items():
        if any(map(script.search, foreign)):
            # A few Japanese words have Chinese characters only.
            is_unsure = code == "zh" and not any(map(_telling_words(code).issuperset, query_words))
            return ["ja", code] if is_unsure else [code]
    bare = [word.partition("'")[0] for word in query_words]
    distinct, first = frozenset(bare), frozenset(bare[:1])
    counts = {
        code: len(distinct & telling) + len(first & telling)
        for code, telling in ((code, _telling_words(code)) for code in (ENGLISH, *tables()))
    }
    most = max(counts.values())
    return [code for code, count in counts.items() if count == most]


@cache
def function_words(language: str) -> frozenset[str]:
    """The function words of a language, folded as `analysis.words` folds; none of an unknown one."""
    if language == ENGLISH:
        return STOP_WORDS
    return frozenset(words(tables().get(language, {}).get(_FUNCTION_WORDS, "")))


@cache
def every_function_word() -> frozenset[str]:
    """The function words of all languages."""
    return STOP_WORDS.union(*map(function_words, tables()))


@cache
def _telling_words(language: str) -> frozenset[str]:
    """The words that tell a language. English talk words are nouns and verbs elsewhere."""
    return STOP_WORDS if language == ENGLISH else function_words(language) | talk_words(language)


@cache
def talk_words(language: str) -> frozenset[str]:
    """The words of a language that ask for whatever was said or done, folded; none of an unknown one."""
    if language == ENGLISH:
        return _ENGLISH_TALK
    return frozenset(words(tables().get(language, {}).get(_TALK, "")))


@cache
def tables() -> Mapping[str, Mapping[str, str]]:
    """For each language with a file, its sections."""
    return {path.stem: _sections(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.txt"))}


def _sections(text: str) -> dict[str, str]:
    parts = [part.partition("]\n") for part in text.split("\n[")[1:]]
    return {name: listed for name, _, listed in parts}
