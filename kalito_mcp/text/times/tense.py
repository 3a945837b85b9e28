"""Whether a text is in the past tense: then a bare weekday in it is over. Reads the tables of `text.languages`, once.

`[past]` of a table has four parts, separated by `|`: words that say so; words that say so with a participle, such as
German `haben`; participles; and words for the future, with which the tense is not clear. `*` stands for any letters,
`_` for a space. Scripts without spaces have only the first part, in letters.
"""

import re
from functools import cache
from typing import Final

from kalito_mcp.text.analysis import is_spelled_with_spaces, plainly_spelled, words
from kalito_mcp.text.languages import ENGLISH, tables

_SECTION: Final = "past"
_PARTS: Final = 4
_ENGLISH: Final = (
    "did didn't was wasn't were weren't had hadn't happened said told went met came saw made wrote spoke talked "
    "discussed decided agreed worked asked mentioned finished | i've we've have has | been done gone seen "
    "| will i'll we'll he'll she'll they'll going planned"
)


def is_past(text: str, language: str) -> bool:
    """Whether a word of the language says that the text speaks of what is over. False for an unknown language."""
    listed = _ENGLISH if language == ENGLISH else tables().get(language, {}).get(_SECTION, "")
    if not is_spelled_with_spaces(listed):
        return any(one in plainly_spelled(text) for one in listed.split())
    said = " ".join(words(text))
    alone, with_participle, participle, future = (one.search(said) is not None for one in _patterns(listed))
    return not future and (alone or (with_participle and participle))


@cache
def _patterns(listed: str) -> list[re.Pattern[str]]:
    found = []
    for part in f"{listed}{'|' * _PARTS}".split("|")[:_PARTS]:
        entries = plainly_spelled(part).replace("*", r"\S*").split()
        # A part without words matches nothing.
        found.append(re.compile(rf"(?<!\S)(?:{'|'.join(entries).replace('_', ' ')})(?!\S)" if entries else "(?!)"))
    return found
