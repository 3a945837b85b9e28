"""The syntax of a query: words, "exact phrases", and -excluded words. Pure.

    ferry "leaves at seven" -moss -"night train"

- Quotes are straight or curly double quotes at the start and end of a phrase, so `a 12" pipe` has none.
- A minus excludes only if it follows a space or starts the query, and starts a word of two letters or more:
  `well-known`, `-5 degrees`, `--force`, `-v` and a list with dashes exclude nothing.
- A query of over 500 characters is a pasted text: its quotes and dashes mean nothing.
- Anything else is a word. A query that would leave nothing to look for is taken as words: no query is a syntax error.

A phrase is compared word by word, folded (`analysis.words`) but not stemmed. An excluded word is compared as a term, so
`-ferry` excludes ferries too, and `-"ferry"` does not.
"""

import re
from dataclasses import dataclass
from typing import Final

from kalito_mcp.text.analysis import stem, words

_QUOTES: Final = '"\u201c\u201d\u201e\u201f'
_CURLY: Final = "[\u201c\u201e\u201f](?P<curly>[^\u201c\u201d\u201e\u201f\n]+)[\u201c\u201d\u201f]"
# A straight quote after a letter or digit means inches, seconds or the end of a phrase; curly quotes are unambiguous.
_STRAIGHT: Final = r'(?<![\w"])"(?P<straight>[^"\n]+)"(?!\w)'
_SYNTAX: Final = re.compile(
    rf"(?P<minus>(?<!\S)-)?(?:{_STRAIGHT}|{_CURLY})|(?<!\S)-(?P<word>[^\W\d_]\w[^\s{_QUOTES}]*)"
)
_LONGEST_WITH_SYNTAX: Final = 500


@dataclass(frozen=True, slots=True)
class Query:
    """A query in its parts.

    `words` is the text to look for: phrases without their quotes, without excluded parts. `phrases` and
    `excluded_phrases` are folded words joined by a space; `excluded` are terms.
    """

    words: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    excluded_phrases: tuple[str, ...] = ()

    def has_phrases(self, text: str) -> bool:
        """Whether the text contains every phrase. No phrases: True."""
        if not self.phrases:
            return True
        folded = _joined(words(text))
        return all(_contains(folded, phrase) for phrase in self.phrases)

    def is_excluded(self, text: str) -> bool:
        """Whether the text contains anything that the query excludes."""
        if not self.excluded and not self.excluded_phrases:
            return False
        found = words(text)
        if self.excluded and not {stem(word) for word in found}.isdisjoint(self.excluded):
            return True
        folded = _joined(found)
        return any(_contains(folded, phrase) for phrase in self.excluded_phrases)


def parse_query(query: str) -> Query:
    """The query in its parts. Without any syntax, or with nothing else to look for, it is words only."""
    if len(query) > _LONGEST_WITH_SYNTAX:
        return Query(words=query)
    phrases: list[str] = []
    excluded: list[str] = []
    excluded_phrases: list[str] = []

    def strip_syntax(found: re.Match[str]) -> str:
        text = found["word"] or found["straight"] or found["curly"]
        folded = words(text)
        if not folded or (found[0][0] == "-" and _is_list_dash(query, found.start())):
            return found[0]
        if found["word"] and len(folded) == 1:
            excluded.append(stem(folded[0]))
        elif found["word"] or found["minus"]:
            excluded_phrases.append(" ".join(folded))
        else:
            phrases.append(" ".join(folded))
            return f" {text} "
        return " "

    left = _SYNTAX.sub(strip_syntax, query)
    if not words(left):
        return Query(words=query)
    return Query(left, *(tuple(dict.fromkeys(kind)) for kind in (phrases, excluded, excluded_phrases)))


def _is_list_dash(query: str, minus: int) -> bool:
    """Whether the minus is the dash of a list: at the start of a line, in a query of several lines."""
    return "\n" in query.strip() and not query[query.rfind("\n", 0, minus) + 1 : minus].strip()


def _joined(folded: list[str]) -> str:
    return f" {' '.join(folded)} "


def _contains(folded: str, phrase: str) -> bool:
    """Whether the words, joined by `_joined`, contain the phrase."""
    if len(phrase) == 1 and len(words(phrase * 3)) > 1:
        # A single character of a script without spaces is contained in bigrams.
        return phrase in folded
    return f" {phrase} " in folded
