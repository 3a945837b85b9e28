"""Whether a text speaks of a subject: all its words, by the analysis of the text index. Pure.

A word that is written as a name (Mia) is found as a name: not in Miami, not as another form of a word, and in lower
case only in texts without capitals.
"""

from dataclasses import dataclass
from typing import Final

from kalito_mcp.text.analysis import STOP_WORDS, is_spelled_with_spaces, plainly_spelled, query_terms, terms, words
from kalito_mcp.text.languages import ENGLISH, function_words, language_of, talk_words
from kalito_mcp.text.lazy_pattern import lazy

_WORD: Final = lazy(r"[^\W_]+")
_GENERAL: Final = frozenset(
    "data detail details fact facts info information memories memory people person persons profile someone somebody "
    "stuff user".split()
)
"""Words that ask for anything at all, besides `talk_words`."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Names, folded, and terms that a text has to contain."""

    names: frozenset[str]
    terms: frozenset[str]

    @property
    def is_empty(self) -> bool:
        """Whether no word of it names anything."""
        return not self.names and not self.terms

    def is_in(self, text: str) -> bool:
        """Whether the text speaks of the subject."""
        if self.names:
            folded = plainly_spelled(text)
            if not all(name in folded for name in self.names):
                return False  # which is soon seen of most texts
            has_capitals = any(letter.isupper() for letter in text if letter != "I")
            found = {plainly_spelled(word) for word in _WORD().findall(text) if not has_capitals or word[0].isupper()}
            if not self.names <= found:
                return False
        return not self.terms or self.terms.issubset(terms(text))


def parse_subject(text: str) -> Subject:
    """The subject that these words name. Empty if they name none, as `tell me about people`."""
    unasked = STOP_WORDS | talk_words(ENGLISH) | _GENERAL
    language = language_of(words(text))
    of_language = function_words(language) | talk_words(language)
    typed = _WORD().findall(text)
    if sum(plainly_spelled(word) in of_language for word in typed) > 1:
        unasked |= of_language  # one alone may be a name: Mia is an Italian word, too
    names = {plainly_spelled(word) for place, word in enumerate(typed) if _is_name(word, place, unasked)}
    rest = " ".join(word for word in typed if plainly_spelled(word) not in names)
    return Subject(frozenset(names), frozenset(query_terms(rest, unasked, may_be_empty=True)))


def _is_name(word: str, place: int, unasked: frozenset[str]) -> bool:
    """Whether the word is written as a name. A first word may have its capital for that reason."""
    is_capitalised = word[0].isupper() and len(word) > 1 and is_spelled_with_spaces(word)
    return is_capitalised and plainly_spelled(word) not in (unasked if place == 0 else _GENERAL)
