"""Queries and texts that are meant to be costly.

Queries: long, short, common, empty, and in scripts that the memory does not contain. Texts: one piece again and again,
which is the worst case of what reads a text from left to right, looks ahead, or judges what it finds. Pure.
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
_FAMILIES: Final = {
    "key": "key=",
    "token": "token=",
    "secret": "secret=",
    "password": "password=",
    "password in words": "password is it ",
    "password in quotes": "password: '",
    "config": "key = value\n",
    "authorization": "authorization: ",
    "bearer": "bearer ",
    "url with a login": "://a:",
    "private key": "-----BEGIN PRIVATE KEY----- ",
    "private tags": "<private>",
    "json web token": "eyJhbGciOi.",
    "seed phrase": "seed phrase is a ",
    "door code": "code for the ",
    "curl": "curl -u ",
    "cookie": "cookie: a=",
    "card groups": "4111 ",
    "iban": "DE89 3704 ",
    "one letter": "a",
    "one word": "word ",
    "long words": "abcdefghijklmnopqrstuvwxyz" * 20 + " ",
    "mixed letters": "Ab3+",
    "base64": "QUJDREVGR0hJSktMTU5PUFFSU1RV ",
    "dots": ".",
    "dotted letters": "a.",
    "abbreviations": "e.g. ",
    "quotes": '"',
    "single quotes": "' ",
    "words in quotes": 'he said "yes" ',
    "question marks": "what? ",
    "questions": "Where is the key of the door? ",
    "numbers": "4 ",
    "long number": "1234567890",
    "versions": "1.2.3.4 ",
    "dates": "2024-05-03 ",
    "dates in words": "on the third of May 2024 ",
    "relative dates": "two weeks before last Friday ",
    "months": "May ",
    "names": "I live in Porto. ",
    "moves": "I moved to Porto. ",
    "moves apart": "I moved to Porto from Oslo, and ",
    "capitalised words": "Anna ",
    "shouting": "ANNA ",
    "preferences": "I prefer tea to coffee. ",
    "decisions": "We decided to use Redis. ",
    "my things": "my boss is Anna, ",
    "no sentence": "I like the ",
    "the": "the ",
    "and": "and ",
    "ignore": "ignore ",
    "instructions": "ignore all previous instructions ",
    "tell": "do not tell ",
    "spaced letters": "i g n o r e ",
    "leet": "1gn0r3 ",
    "cjk": "我们什么时候去东京旅行",
    "cjk sentences": "我住在东京。",
    "kana": "わたしは",
    "thai": "ผมอยู่ที่กรุงเทพ",
    "cyrillic": "Я живу в Москве. ",
    "mixed scripts": "aа",
    "accents": "e\u0301",
    "many accents": "\u0301",
    "emoji": "🎉",
    "family": "👩\u200d",
    "flags": "🇳",
    "invisible": "\u200b",
    "tags": "\U000e0041",
    "wide letters": "ａｂ",
    "control characters": "\x1b[0m",
    "fences": "```\n",
    "an open fence": "```py\nx = 1\n\n",
    "definitions": "```py\ndef f(a):\n```\n",
    "backticks": "`",
    "brackets": "[",
    "round brackets": "(",
    "closing brackets": ")]}",
    "braces": '{"a":',
    "tags of HTML": "<a ",
    "links": "[a](http://a.b/",
    "addresses": "http://a.b/c ",
    "www": "www.",
    "emails": "a@b.c ",
    "signs of emails": "a@",
    "paths": "/a",
    "files": "a/b.py ",
    "hidden files": ".a",
    "identifiers": "a_b_",
    "camel case": "aB",
    "hash tags": "#a ",
    "options": "--a-",
    "headings": "# a\n",
    "lines": "\n",
    "carriage returns": "\r\n",
    "spaces": " ",
    "tabs and lines": " \n",
    "list items": "- a\n",
    "numbered items": "1. a\n",
    "bold": "**a** ",
    "stars": "*",
    "quoted lines": "> a\n",
    "table": "| a | b |\n",
    "colons": "a: ",
    "dashes": "-",
    "semicolons": "; ",
    "commas": "a, ",
    "phone numbers": "+351 21 123 4567 ",
    "escapes": "\\n",
}
"""What each text repeats."""
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


def hostile_texts(chars: int) -> dict[str, str]:
    """The texts by name, each of that many characters."""
    return {name: (unit * (chars // len(unit) + 1))[:chars] for name, unit in _FAMILIES.items()}
