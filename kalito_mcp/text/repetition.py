"""Keys that recognise forgotten text when it comes back: one for the whole text, one for each sentence. Pure.

A key ignores case, spaces, punctuation, separators, invisible characters and look-alike letters. Other words for the
same have another key. Short texts, and sentences that name nothing, have no key: everybody says them.
"""

from collections.abc import Iterator
from typing import Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.text.analysis import words
from kalito_mcp.text.identifiers import identifier_key, identifier_keys
from kalito_mcp.text.languages import language_of
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.look_alikes import compact
from kalito_mcp.text.sentences import split_sentences, without_opener, without_request

_MAX_READ: Final = 20_000
"""Characters of a text that are split into sentences."""

_MIN_CHARS: Final = 5
_MIN_WORDS: Final = 3
_MIN_SENTENCE_WORDS: Final = 4
_RUN: Final = 3
_CAPITALISES_NOUNS: Final = "de"
_NOTHING: Final = frozenset(("",))
_IDENTIFIER: Final = "id:"
# A person who asks for this does not want its words to come back. Linear: no part of it repeats.
_ASKS_TO_FORGET: Final = lazy(
    r"(?:^|[,;:–—]\s|\b(?:please|pls|just|you|you to|bitte|por favor|per favore)\s)"
    r"(?:forget|delete|erase|remove|purge|unlearn|vergiss|vergessen|lösche|löschen|oublie|oubliez|supprime|supprimez|"
    r"olvida|olvide|borra|borre|dimentica|cancella|esquece|esqueça|apaga|apague|vergeet|verwijder)\b"
)
_QUESTION_END: Final = lazy(r"[?？؟][^\w?？؟]*\Z")
_END_CHARS: Final = 8


def keys_to_forget(text: str, record_type: RecordType) -> frozenset[str]:
    """The keys by which repetitions of a forgotten record are recognised: of the whole, and of its sentences that name
    somebody or something. Empty for a text that only asks or says too little; a pin never does."""
    whole = compact(text)
    if record_type is RecordType.PIN:
        return frozenset((whole,)) - _NOTHING
    stated = [one for one in split_sentences(text[:_MAX_READ]) if not _is_question(one)]
    says_much = len(words(text)) >= _MIN_WORDS or any(map(str.isdigit, whole))
    if not stated or not says_much or len(whole) < _MIN_CHARS:
        return frozenset()
    telling = (form for sentence in stated for form in _forms(sentence) if _is_telling(form))
    return frozenset((whole, *map(compact, telling))) - _NOTHING


def key_of_identifier(identifier: str) -> str:
    """The key of a forgotten identifier."""
    return _IDENTIFIER + identifier_key(identifier)


def keys_of(text: str) -> frozenset[str]:
    """Every key that a text may repeat: of its whole, its sentences and its identifiers."""
    return frozenset({compact(text), *_keys_within(text)}) - _NOTHING


def keys_stated(text: str) -> frozenset[str]:
    """The keys of `keys_of` that the text states. What it asks, or asks to forget, is not stated."""
    sentences = split_sentences(text[:_MAX_READ])
    stated = [one for one in sentences if not _is_question(one) and not _ASKS_TO_FORGET().search(one.lower())]
    return keys_of(text) if stated == sentences else frozenset[str]().union(*map(keys_of, stated))


def repeats(text: str, other: str) -> bool:
    """Whether the other text has most of this one's words, in their order: half of its runs of three words. A text of
    fewer than four words says too little."""
    said = [one for one in map(compact, words(text[:_MAX_READ])) if one]
    if len(said) < _MIN_SENTENCE_WORDS:
        return False
    within = compact(other)
    runs = ["".join(said[place : place + _RUN]) for place in range(len(said) - _RUN + 1)]
    return 2 * sum(run in within for run in runs) >= len(runs)


def _is_question(sentence: str) -> bool:
    return _QUESTION_END().search(sentence[-_END_CHARS:]) is not None


def _keys_within(text: str) -> Iterator[str]:
    for sentence in split_sentences(text[:_MAX_READ]):
        yield from map(compact, _forms(sentence))
    yield from (_IDENTIFIER + key for key in identifier_keys(text))


def _forms(sentence: str) -> tuple[str, str]:
    """The sentence, and the statement that a pin would be made of."""
    return sentence, without_request(without_opener(sentence))


def _is_telling(sentence: str) -> bool:
    said = words(sentence)
    if len(said) < _MIN_SENTENCE_WORDS:
        return False
    if any(map(str.isdigit, sentence)) or sentence.lower() == sentence.upper():
        return True
    has_name = any(
        word[0].isupper() and word[1:] and not word.startswith(("I'", "I’")) for word in sentence.split()[1:]
    )
    return has_name and language_of(said) != _CAPITALISES_NOUNS
