"""What goes into a context of a given number of tokens."""

from dataclasses import replace

import pytest

from kalito_mcp.contexts.packer import Packer
from kalito_mcp.contexts.parts import ContextParts, ContextPolicy
from kalito_mcp.domain.context import MemoryContext
from kalito_mcp.domain.given import PartName, Why, left_out
from kalito_mcp.domain.records import (
    RecordType,
    Role,
)
from kalito_mcp.domain.search import Hit
from kalito_mcp.errors import BudgetTooSmall
from kalito_mcp.inference.tokens import token_counter
from kalito_mcp.safety.escaping import json_text
from tests.contexts.test_packer import FENCE, fact, message, pin, summary

COUNTER = token_counter("calibrated")
UNTRUSTED = left_out(PartName.FOUND, Why.READS_LIKE_AN_INSTRUCTION, (), count=12)


def hit(number: int, text: str) -> Hit:
    return Hit(f"msg_{number}", RecordType.MESSAGE, "s", Role.USER, None, text, 0, 0.5, None)


def packed(parts: ContextParts, budget: int, policy: ContextPolicy | None = None) -> MemoryContext:
    return Packer(COUNTER, policy or ContextPolicy()).pack(parts, max_tokens=budget, fence=FENCE)


def test_three_long_messages_do_not_push_out_an_allergy() -> None:
    long = "All about the garden and what grows where. " * 200
    recent = [message(i, long, COUNTER.count(long)) for i in (1, 2, 3)]
    allergy = "Nana is allergic to sulfa drugs."
    context = packed(ContextParts("s", recent, [pin(1, allergy, COUNTER.count(allergy))]), 600)
    assert allergy in context.text
    assert len(context.recent_messages) == 3
    assert "characters left out" in context.text


def test_the_newest_three_always_stay_and_short_ones_stay_whole() -> None:
    long = "x" * 20_000
    texts = ["yes, at ten", long, "and bring the keys"]
    recent = [message(i + 1, text, COUNTER.count(text)) for i, text in enumerate(texts)]
    context = packed(ContextParts("s", recent), 400)
    assert "yes, at ten" in context.text
    assert "and bring the keys" in context.text
    assert len(context.recent_messages) == 3


def _sizes(parts: ContextParts) -> list[tuple[int, int, int, int]]:
    """How much of each part is in contexts of growing budgets: pins, summaries, newest messages, hits."""
    contexts = [packed(parts, budget) for budget in range(480, 1800, 60)]
    return [
        (len(one.semantic_pins), len(one.summaries), len(one.recent_messages), len(one.relevant_messages))
        for one in contexts
    ]


def _parts(*, hits: int) -> ContextParts:
    text = "word " * 60
    tokens = COUNTER.count(text)
    return ContextParts(
        "s",
        [message(i, text, tokens) for i in range(1, 9)],
        [pin(i, text, tokens) for i in range(2)],
        [summary(i, text, tokens) for i in range(2)],
        [hit(900 + i, text) for i in range(hits)],
    )


def test_without_a_match_pins_come_before_summaries_and_those_before_further_messages() -> None:
    sizes = _sizes(_parts(hits=0))
    assert sizes == sorted(sizes), "a larger budget never holds less of what comes first"
    assert (2, 1, 3, 0) in sizes
    assert sizes[-1] == (2, 2, 8, 0)


def test_what_matches_the_query_is_in_the_smallest_context_and_the_rest_follows() -> None:
    sizes = _sizes(_parts(hits=3))
    assert all(recent for _, _, recent, _ in sizes)
    hits = [found for _, _, _, found in sizes]
    assert hits == sorted(hits)
    assert hits[0] >= 1
    assert sizes[-1] == (2, 2, 8, 3)


def test_a_context_ends_with_what_it_has_no_room_for() -> None:
    parts = _parts(hits=30)
    context = packed(parts, 600)
    left_out = context.left_out["relevant_messages"]
    assert context.text.splitlines()[-1].startswith(f"No room for: {left_out} matching messages")
    assert "No room" not in packed(parts, 9_000).text
    assert "No room" not in packed(parts, 250).text  # every token counts


def test_a_short_match_keeps_its_lines_and_a_long_one_is_its_excerpt() -> None:
    code = "def fly():\n    return 'Oslo'"
    context = packed(ContextParts("s", [], [], [], [hit(900, code), hit(901, "word " * 400)]), 400)
    assert [one.text == code for one in context.relevant_messages] == [True, False]
    assert context.relevant_messages[1].text in context.text


def test_more_of_each_match_is_shown_the_more_room_there_is() -> None:
    """Until all of it is shown."""
    parts = ContextParts("s", [], [], [], [hit(900, "ferry " * 400), hit(901, "ferry " * 400)], query="ferry")
    sizes = [sum(len(one.text) for one in packed(parts, budget).relevant_messages) for budget in (600, 1_000, 4_000)]
    assert sizes[0] < sizes[1] < sizes[2] == 2 * len("ferry " * 400)


def test_counted_as_json_the_parts_fit_the_budget_with_their_texts_shortened() -> None:
    text = "word " * 20_000
    tokens = COUNTER.count(text)
    parts = ContextParts(
        "s",
        [message(i, text, tokens) for i in range(1, 5)],
        [pin(1, "Nana is allergic to sulfa drugs.", 8)],
        [],
        [hit(900 + i, text) for i in range(10)],
    )
    packer = Packer(COUNTER, ContextPolicy())
    parts = replace(parts, missing=UNTRUSTED, note="searched by words only: the server is down. " * 5)
    for budget in (1_200, 3_000):
        context = packer.pack(parts, max_tokens=budget, fence=FENCE, as_json=True)
        assert COUNTER.count(json_text(context.to_dict())) <= budget
        assert budget * 0.7 < context.total_tokens <= budget
        assert (context.note, context.left_out["untrusted"]) == (parts.note, 12)
        assert context.recent_messages
        assert context.semantic_pins
        assert context.relevant_messages


def test_the_newest_summaries_are_kept_and_shown_in_order_of_time() -> None:
    text = "what was said " * 20
    made = [summary(i, f"{i} {text}", COUNTER.count(text)) for i in range(3)]
    context = packed(ContextParts("s", [message(50, "now", 1)], (), made), 340)
    assert [one.id for one in context.summaries] == ["summary_1", "summary_2"]
    assert context.text.index("messages 16-30") < context.text.index("messages 31-45")


def test_a_message_that_does_not_fit_ends_the_conversation_without_a_gap() -> None:
    huge = "y" * 30_000
    texts = ["one", "two", huge, "four", "five", "six"]
    recent = [message(i + 1, text, COUNTER.count(text)) for i, text in enumerate(texts)]
    context = packed(ContextParts("s", recent), 600)
    assert [one.seq for one in context.recent_messages] == [4, 5, 6]


def test_a_budget_below_the_frame_is_refused_with_the_minimum() -> None:
    with pytest.raises(BudgetTooSmall, match="ask for at least") as refused:
        packed(ContextParts("s", [message(1, "hello", 2)]), 40)
    assert packed(ContextParts("s", [message(1, "hello", 2)]), refused.value.minimum).recent_messages
    with pytest.raises(BudgetTooSmall):
        packed(ContextParts("s", [message(1, "hello", 2)]), refused.value.minimum - 1)


def test_counts_of_another_counter_are_corrected_by_what_was_over() -> None:
    texts = ["one two three four five six seven"] * 8
    recent = [replace(message(i + 1, text, 0), tokens=0) for i, text in enumerate(texts)]
    context = packed(ContextParts("s", recent), 200)
    assert context.total_tokens <= 200
    assert len(context.recent_messages) >= 3


def _beside_hits(score: float) -> ContextParts:
    """Two known facts, the end of a conversation, and more matches than fit."""
    text = "word " * 30
    tokens = COUNTER.count(text)
    hits = [replace(hit(900 + number, text), score=score / number) for number in range(1, 31)]
    end = [replace(hit(800, "We stopped at the barcode."), session_id="friday")]
    known = [fact(1, "The user is tall. " + text, tokens), fact(2, "The user is calm. " + text, tokens)]
    return ContextParts("s", [], hits=hits, known=known, sure_known=frozenset({"pin_k2"}), latest=[end])


def test_beside_matches_only_what_is_sure_of_a_place_is_known() -> None:
    context = packed(_beside_hits(0.9), 900)
    assert [one.record_id for one in context.known] == ["pin_k2"]
    assert context.left_out["known"] == 1


def test_how_conversations_ended_is_left_to_the_last_if_a_match_is_near() -> None:
    parts = _beside_hits(0.9)
    assert packed(parts, 900).latest_messages == ()
    assert len(packed(parts, 9_000).latest_messages) == 1
    assert len(packed(_beside_hits(0.2), 900).latest_messages) == 1
