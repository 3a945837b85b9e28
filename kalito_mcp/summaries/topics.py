"""Names the topics of a conversation, at most three of ten. Pure.

Keywords are whole words of the user's messages, in any form: `tables` counts as database, `tablet` does not. Topics
only head a summary and decide nothing. Source: `extractTopics` of the memory manager's reference, which looks for
substrings.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

from kalito_mcp.domain.records import MessageWithImportance, Role
from kalito_mcp.text.analysis import stem, words

MAX_TOPICS: Final = 3
_MAX_READ: Final = 20_000
"""Characters of a message in which keywords are looked for."""

_KEYWORDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("programming", ("code", "programming", "function")),
    ("database", ("database", "sql", "table")),
    ("API", ("api", "endpoint", "request")),
    ("troubleshooting", ("bug", "error", "fix")),
    ("poetry", ("poetry", "poem", "verse")),
    ("creative writing", ("story", "narrative", "character")),
    ("music", ("song", "lyrics", "music")),
    ("help/explanation", ("help", "how to", "explain")),
    ("project work", ("project", "build", "create")),
    ("Q&A", ("question", "what is", "why")),
)


def extract_topics(messages: Sequence[MessageWithImportance]) -> list[str]:
    """Return the first three topics of the user's messages, in the order of their first mention.

    The topics of one message are in the order of the specification's table. No keyword: empty.
    """
    found: list[str] = []
    for message in messages:
        if message.role != Role.USER:
            continue
        said = f" {' '.join(map(stem, words(message.text[:_MAX_READ])))} "
        found += [
            topic for topic, keywords in _stemmed() if topic not in found and any(map(said.__contains__, keywords))
        ]
        if len(found) >= MAX_TOPICS:
            break
    return found[:MAX_TOPICS]


@cache
def _stemmed() -> Sequence[tuple[str, Sequence[str]]]:
    """The keywords as stems between spaces, by topic."""
    return [
        (topic, [f" {' '.join(map(stem, words(keyword)))} " for keyword in keywords]) for topic, keywords in _KEYWORDS
    ]
