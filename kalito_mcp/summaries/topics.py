"""Names the topics of a conversation, at most three of ten. Pure.

Keywords are substrings of the lower-cased user messages, so `stable` counts as database. Topics only head a summary
and decide nothing. Source: `extractTopics` of the memory manager's reference.
"""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.records import MessageWithImportance, Role

MAX_TOPICS: Final = 3

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
        lowered = message.text.lower()
        for topic, keywords in _KEYWORDS:
            if topic not in found and any(keyword in lowered for keyword in keywords):
                found.append(topic)
        if len(found) >= MAX_TOPICS:
            break
    return found[:MAX_TOPICS]
