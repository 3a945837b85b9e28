"""Digests with the model of every installation."""

from collections.abc import Sequence

import pytest

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Role, SummaryMethod
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.summaries.digester import Digester
from tests.summaries.by_words import BY_WORDS
from tests.summaries.counting_embedder import CountingEmbedder

pytestmark = pytest.mark.anyio

RETRIES = (
    "we need a retry policy for the carrier webhooks, they time out after 10 s",
    "I would use exponential backoff with at most 5 attempts, and never longer than 8 s in total.",
    "agreed, but make it 4 attempts and cap it at 6 seconds",
    "Done: RetryPolicy(attempts=4, cap_total=6.0) is used by the DHL client, and all 18 tests pass.",
    "thanks, looks good",
    "You're welcome!",
    "from now on commit messages are in English, please",
    "Noted. What is still open: nobody has told the GLS team about the new limits.",
)


def messages(texts: Sequence[str]) -> list[MessageWithImportance]:
    roles = (Role.ASSISTANT, Role.USER)
    return [
        MessageWithImportance(n, "s", roles[n % 2], text, None, None, 0, 0.5, n, 0) for n, text in enumerate(texts, 1)
    ]


def part(number: int, text: str) -> ConversationSummary:
    ends = number * 8 - 7, number * 8
    ids = f"msg_{ends[0]}", f"msg_{ends[1]}"
    return ConversationSummary(
        f"summary_{number}", "s", text, 8, *ids, 0.7, 0, 0, 0, *ends, 0, 0, SummaryMethod.EXTRACTIVE
    )


async def test_a_digest_says_what_was_decided_done_and_left_open(model: CountingEmbedder) -> None:
    summary = await Digester(SentenceJudge(model)).summarize(messages(RETRIES), max_chars=600)
    head, *body = summary.split("\n")
    assert head.startswith("Conversation with 8 messages (4 user, 4 assistant)")
    assert [line for line in body if line.endswith(":")] == ["Decided:", "Done:", "Open:"]
    assert "at most 5 attempts, and never longer than 8 s in total. → user: agreed, but make it 4 attempts" in summary
    assert "commit messages are in English" in summary
    assert "nobody has told the GLS team" in summary
    assert "thanks" not in summary
    assert "welcome" not in summary


async def test_the_same_messages_give_the_same_text_whatever_was_judged_before(model: CountingEmbedder) -> None:
    once = await Digester(SentenceJudge(model)).summarize(messages(RETRIES), max_chars=400)
    digester = Digester(SentenceJudge(model))
    for text in RETRIES:
        await digester.prepare(messages([text]))
    before = model.embedded
    assert await digester.summarize(messages(RETRIES), max_chars=400) == once
    assert model.embedded == before


async def test_in_a_fold_a_later_part_has_the_last_word(model: CountingEmbedder) -> None:
    parts = [
        part(1, "8 messages.\nLearned:\nuser: The staging database listens on port 5432. Ines is allergic to nuts."),
        part(2, "8 messages.\nLearned:\nuser: The staging database listens on port 5433."),
    ]
    fold = await Digester(SentenceJudge(model)).fold(parts, max_chars=500)
    assert "port 5433" in fold
    assert "port 5432" not in fold
    assert "allergic to nuts" in fold


async def test_without_a_model_explicit_words_and_what_was_asked_and_answered_are_kept() -> None:
    said = (
        "Hello! I moved to Bergen. It rains.",
        "Nice.",
        "We decided to stay.",
        "Good.",
        "Where is it?",
        "Hm. North.",
    )
    assert (await BY_WORDS.summarize(messages(said), max_chars=300)).split("\n") == [
        "Conversation with 6 messages (3 user, 3 assistant).",
        "user: Where is it? → assistant: North.",
        "Decided:",
        "user: We decided to stay.",
    ]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (("Where is the kite?", "In the attic."), "user: Where is the kite? → assistant: In the attic."),
        (("鍵はどこですか？", "引き出しの中です。"), "user: 鍵はどこですか？ → assistant: 引き出しの中です。"),
        (("Hi! Ten past.", "Hello! At seven. Or so."), "user: Ten past. → assistant: At seven."),
        (
            ("Is it on?", "Yes.", "Is it new?", "Yes."),
            "user: Is it on? → assistant: Yes.\nuser: Is it new? → assistant: Yes.",
        ),
        (("Thanks!", "You're welcome."), "user: Thanks! → assistant: You're welcome."),
        (("It rains.",), "user: It rains."),
    ],
)
async def test_where_nothing_is_worth_keeping_questions_stay_with_their_answers(
    said: Sequence[str], kept: str, model: CountingEmbedder
) -> None:
    digester = Digester(SentenceJudge(model))
    head, _, body = (await digester.summarize(messages(said), max_chars=300)).partition("\n")
    assert body == kept
    whole = await digester.fold([part(1, f"{head}\n{body}"), part(2, f"{head}\n{body}")], max_chars=500)
    assert kept.split("\n", maxsplit=1)[0] in whole
