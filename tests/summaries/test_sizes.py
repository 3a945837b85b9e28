"""The sizes of summaries without a model."""

import pytest

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Role, SummaryMethod
from kalito_mcp.summaries.summarizer import length_of_fold, length_of_summary


def _message(text: str) -> MessageWithImportance:
    return MessageWithImportance(1, "s", Role.USER, text, None, None, 0, 0.5, 1, 0)


def _summary(level: int) -> ConversationSummary:
    ids = "msg_1", "msg_5"
    return ConversationSummary("summary_1", "s", "x", 5, *ids, 0.7, 0, 0, level, 1, 5, 0, 0, SummaryMethod.EXTRACTIVE)


@pytest.mark.parametrize(("length", "most"), [(100, 240), (2_000, 410), (20_000, 800)])
def test_a_summary_of_messages_is_a_share_of_their_length(length: int, most: int) -> None:
    assert length_of_summary([_message("x" * length)]) == most


@pytest.mark.parametrize(("level", "most"), [(0, 900), (1, 2_000), (2, 3_100)])
def test_a_summary_of_summaries_has_more_room_the_higher_its_level(level: int, most: int) -> None:
    assert length_of_fold([_summary(level)]) == most
