"""What a query says beside its words: "exact phrases", and what to leave out. Pure.

    ferry "leaves at seven" -moss -"night train"

Quotes are straight or curly double ones, and stand where a phrase begins and ends: in `a 12" pipe` there is none. A
minus leaves out only where it begins a word of two letters or more and stands at the beginning or after a space, so
`well-known`, `-5 degrees`, `--force`, `-v` and a list with dashes leave out nothing. What only looks like a sign is a
word, and a query that would leave nothing to look for is words alone: nothing that a person writes is an error here.

A phrase is compared word by word, as `analysis.words` folds them, and not stemmed. A word that is left out is
compared as a term, so `-ferry` leaves out ferries too; `-"ferry"` does not.
"""

import re
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.analysis import stem, words

_QUOTES: Final = '"\u201c\u201d\u201e\u201f'
_CURLY: Final = "[\u201c\u201e\u201f](?P<curly>[^\u201c\u201d\u201e\u201f\n]+)[\u201c\u201d\u201f]"
# A straight quote after a letter or digit is an inch, a second, or the end of a phrase; a curly one says which it is.
_STRAIGHT: Final = r'(?<![\w"])"(?P<straight>[^"\n]+)"(?!\w)'
_SIGNS: Final = re.compile(rf"(?P<minus>(?<!\S)-)?(?:{_STRAIGHT}|{_CURLY})|(?<!\S)-(?P<word>[^\W\d_]\w[^\s{_QUOTES}]*)")


@dataclass(frozen=True, slots=True)
class Query:
    """A query in its parts.

    `words` is the text to look for, the phrases in it without their quotes, what is left out without a trace.
    `phrases` and `excluded_phrases` are folded words, joined by a space; `excluded` are terms.
    """

    words: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    excluded_phrases: tuple[str, ...] = ()

    def phrase_match(self, text: str) -> bool:
        """Whether the text has every phrase. True where there is none."""
        if not self.phrases:
            return True
        folded = _joined(words(text))
        return all(_has(folded, phrase) for phrase in self.phrases)

    def is_excluded(self, text: str) -> bool:
        """Whether the text has anything that the query leaves out."""
        if not self.excluded and not self.excluded_phrases:
            return False
        found = words(text)
        if self.excluded and not {stem(word) for word in found}.isdisjoint(self.excluded):
            return True
        folded = _joined(found)
        return any(_has(folded, phrase) for phrase in self.excluded_phrases)


def parsed(query: str) -> Query:
    """The query in its parts. One without signs, or with nothing to look for beside them, is words alone."""
    phrases: list[str] = []
    excluded: list[str] = []
    excluded_phrases: list[str] = []

    def without_sign(found: re.Match[str]) -> str:
        text = found["word"] or found["straight"] or found["curly"]
        folded = words(text)
        if not folded or (found[0][0] == "-" and _lists(query, found.start())):
            return found[0]
        if found["word"] and len(folded) == 1:
            excluded.append(stem(folded[0]))
        elif found["word"] or found["minus"]:
            excluded_phrases.append(" ".join(folded))
        else:
            phrases.append(" ".join(folded))
            return f" {text} "
        return " "

    left = _SIGNS.sub(without_sign, query)
    if not words(left):
        return Query(words=query)
    return Query(left, *(tuple(dict.fromkeys(kind)) for kind in (phrases, excluded, excluded_phrases)))


def _lists(query: str, minus: int) -> bool:
    """Whether the minus is the dash of a list: at the beginning of a line, where there are several."""
    return "\n" in query.strip() and not query[query.rfind("\n", 0, minus) + 1 : minus].strip()


def _joined(folded: list[str]) -> str:
    return f" {' '.join(folded)} "


def _has(folded: str, phrase: str) -> bool:
    """Whether the phrase stands in the words, which `_joined` has put between spaces."""
    if len(phrase) == 1 and len(words(phrase * 3)) > 1:
        # One character of a script without spaces: the text has it in its bigrams.
        return phrase in folded
    return f" {phrase} " in folded
