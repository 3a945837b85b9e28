"""What a conversation is about, in at most three of ten fixed words. Pure.

Keywords are substrings of the lower-cased user messages, so `stable` counts as database: this heads a summary and
decides nothing. Source: `extractTopics` of the memory manager's reference.
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
    """The first three topics that user messages touch, in the order in which they come up.

    Topics that one message touches come in the order of the specification's table. No keyword: empty.
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
