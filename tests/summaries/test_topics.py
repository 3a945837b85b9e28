"""The ten topics, row by row of the specification."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import MessageWithImportance, Role
from kalito_mcp.summaries.topics import extract_topics


def _message(text: str, role: Role = Role.USER) -> MessageWithImportance:
    return MessageWithImportance(1, "s", role, text, None, None, 0, 0.5, 1, 0)


_ROWS = (
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


@pytest.mark.parametrize(("topic", "keyword"), [(topic, word) for topic, words in _ROWS for word in words])
def test_each_keyword_of_a_row_gives_its_topic(topic: str, keyword: str) -> None:
    """memory-manager-reference, Topic Categories, rows 1-10, every keyword."""
    assert extract_topics([_message(f"it was {keyword.upper()} 7")]) == [topic]


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("half a tablet of mirtazapine", []),
        ("a stable in rapid decline, the whyte house and a prefix", []),
        ("two tables, and I fixed three bugs", ["database", "troubleshooting"]),
        ("How to do it? What's new, what is it?", ["help/explanation", "Q&A"]),
    ],
)
def test_a_keyword_is_a_word_in_any_form_and_no_part_of_one(text: str, topics: list[str]) -> None:
    assert extract_topics([_message(text)]) == topics


def test_no_keyword_gives_no_topic() -> None:
    assert extract_topics([_message("Nice weather today."), _message("")]) == []


def test_three_topics_are_the_limit() -> None:
    """memory-manager-reference, Topic Categories, Limit: maximum 3 topics."""
    assert extract_topics([_message("a poem, a story, a song, a project, a bug")]) == [
        "troubleshooting",
        "poetry",
        "creative writing",
    ]


def test_topics_come_in_the_order_in_which_messages_touch_them() -> None:
    messages = [_message("write a song"), _message("more songs and a poem"), _message("fix it"), _message("some code")]
    assert extract_topics(messages) == ["music", "poetry", "troubleshooting"]


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM])
def test_only_user_messages_count(role: Role) -> None:
    """memory-manager-reference, extractTopics: `messages.filter(m => m.role === 'user')`."""
    assert extract_topics([_message("database code", role)]) == []


@given(texts=st.lists(st.text(max_size=60), max_size=6), topics=st.lists(st.sampled_from(_ROWS), max_size=6))
def test_topics_are_at_most_three_different_ones_of_the_ten(
    texts: list[str], topics: list[tuple[str, tuple[str, ...]]]
) -> None:
    found = extract_topics([_message(text) for text in (*texts, *(row[1][0] for row in topics))])
    assert len(found) == len(set(found)) <= 3
    assert set(found) <= {row[0] for row in _ROWS}
