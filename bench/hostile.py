"""Queries that are meant to be costly: long, short, common, empty, and in scripts that the memory does not contain.

Pure.
"""

from collections import Counter
from typing import Final

from bench.corpus import Corpus
from kalito_mcp.text.analysis import STOP_WORDS, words

_WORDS: Final = 10_000
_COMMON: Final = 300
_LONG_WORD: Final = 4_000
_KINDS: Final = ("rare", "middling", "middling", "common", "common")
_COUNTED: Final = 5_000
_MESSAGE: Final = "We fly to Oslo on the third of May and stay with Ann. "


def hostile_queries(most_chars: int) -> dict[str, str]:
    """The queries by name, the same in every run. `most_chars` is the limit of a search; some are longer."""
    corpus = Corpus(seed=4)
    many = " ".join(corpus.query(_KINDS) for _ in range(_WORDS // len(_KINDS)))
    common = commonest(_COMMON)
    return {
        "ten_thousand_words": many,
        "as_many_words_as_are_taken": many[:most_chars].rpartition(" ")[0],
        "three_hundred_common_words": " ".join(common),
        "one_word_of_four_thousand_letters": "ab" * (_LONG_WORD // 2),
        "one_letter": "a",
        "one_letter_of_no_word": "x",
        "function_words": "what is it that you do with all of this and that",
        "one_function_word_again_and_again": "the " * (most_chars // 4),
        "one_common_word_again_and_again": f"{common[0]} " * 500,
        "no_word": "?! ... -- (;)",
        "emoji": "🎉🔥🚀 👩\u200d👩\u200d👧",
        "cjk": "我们什么时候去东京旅行" * 40,
        "a_whole_message": (_MESSAGE * 80)[:most_chars],
    }


def commonest(count: int) -> list[str]:
    """The commonest words of the memory's texts, by the number of texts. Without function words."""
    counted = Counter(word for text in Corpus().texts(_COUNTED) for word in words(text) if word not in STOP_WORDS)
    return [word for word, _ in counted.most_common(count)]
