import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.summaries.validation import ValidationPolicy, find_flaw
from tests.campaign import first_of

LOCAL = ValidationPolicy()
CLOUD = ValidationPolicy(max_characters=1_800)
MEDICATION = [
    "How do I keep up with medication management for my elderly parent? She takes seven pills a day.",
    "Start by creating a schedule: write down each pill, its dose and the hour. Weekly pill organizers help a lot, "
    "because you see at a glance what was taken and what was not.",
    "And how would I notice side effects?",
    "Keep a notebook for tracking side effects: the date, what was noticed, and which dose came before it. Show it "
    "to the doctor at each visit, and ask before stopping anything.",
]


def test_the_specifications_valid_summary_is_valid() -> None:
    """memory-manager-reference, Validation Examples, valid summary."""
    summary = (
        "User asked about medication management for elderly parent. Discussed creating a schedule, tracking side "
        "effects, and using pill organizers."
    )

    assert find_flaw(summary, MEDICATION, LOCAL) is None


def test_the_specifications_poem_is_invalid() -> None:
    """memory-manager-reference, Validation Examples, invalid summary (generated poem)."""
    poem = (
        "Title: A Spring Day\n\nIn fields where flowers gently sway,\nThe sun shines bright on this spring day.\n"
        "With colors vibrant, nature's art,\nBrings warmth and joy to every heart."
    )

    assert find_flaw(poem, MEDICATION * 2, LOCAL) == "begins with a title"


@pytest.mark.parametrize(("length", "is_valid"), [(400, False), (150, True), (300, True), (301, False)])
def test_a_summary_of_1000_characters_may_have_300(length: int, is_valid: bool) -> None:
    """memory-manager-reference, Check 2: Compression Ratio, example (400 of 1000 and 150 of 1000)."""
    source = ["talk " * 100, "talk " * 100]

    flaw = find_flaw(("talk " * 100)[:length].ljust(length, "."), source, CLOUD)

    assert flaw == (None if is_valid else f"is {length} characters long, more than 30% of its source's 1000")


@pytest.mark.parametrize(
    ("summary", "is_valid"),
    [
        ("User discussed medication schedule for grandmother's blood pressure pills", True),
        ("In fields of green where flowers bloom, nature's beauty fills the room", False),
    ],
)
def test_a_summary_uses_the_words_of_its_source(summary: str, is_valid: bool) -> None:
    """memory-manager-reference, Check 4: Word Overlap Analysis, good and bad summary."""
    source = ["What is the medication schedule for my grandmother? " * 5, "The blood pressure pills come at 8am. " * 5]

    flaw = find_flaw(summary, source, LOCAL)

    assert flaw == (None if is_valid else "shares less than 10% of its words with its source")


def test_one_word_in_ten_is_enough_and_one_in_eleven_is_not() -> None:
    source = ["schedule " * 100]

    assert find_flaw("schedule" + " nope" * 9, source, LOCAL) is None
    assert find_flaw("schedule" + " nope" * 10, source, LOCAL) is not None
    assert find_flaw("the cat sat", ["the cat sat " * 20], LOCAL) is not None  # words of three letters tell nothing


def test_a_local_summary_has_at_most_300_characters() -> None:
    """memory-manager-reference, Check 1: Length Validation."""
    source = ["medication " * 1_000]

    assert find_flaw(("medication " * 28)[:300], source, LOCAL) is None
    assert find_flaw(("medication " * 28)[:301], source, LOCAL) == "is 301 characters long, more than 300"


def test_a_cloud_summary_may_have_the_200_words_it_was_asked_for() -> None:
    assert find_flaw(" ".join(["schedule"] * 200), ["schedule " * 2_000], CLOUD) is None


@pytest.mark.parametrize(
    ("summary", "flaw"),
    [
        ("Here's the schedule", "begins like a chat reply"),
        ("Here’s the schedule", "begins like a chat reply"),
        ("certainly! the schedule", "begins like a chat reply"),
        ("Let me tell of the schedule", "begins like a chat reply"),
        ("I'll create a schedule", "begins like a chat reply"),
        ("I can make a schedule", "begins like a chat reply"),
        ("The schedule:\n```\nx\n```", "contains a code block"),
        ("TITLE: the schedule", "begins with a title"),
        ("In fields where schedule", "begins like a story or a poem"),
        ("once upon a schedule", "begins like a story or a poem"),
        ("There was a schedule", "begins like a story or a poem"),
        ("The **The Meadow** schedule", "contains a bold heading"),
        ("Chapter 1 of the schedule", "begins like a chapter or a scene"),
        ("Scene: a schedule", "begins like a chapter or a scene"),
        ("Act IV, a schedule", "begins like a chapter or a scene"),
        ("1. the schedule", "begins with a numbered list"),
        ("The schedule\nJohn Smith:\nhello", "contains a character's cue, as in a play"),
    ],
)
def test_each_telltale_pattern_is_found(summary: str, flaw: str) -> None:
    """memory-manager-reference, Check 3: Pattern Detection."""
    assert find_flaw(summary, ["schedule " * 100], LOCAL) == flaw


@pytest.mark.parametrize(
    "summary",
    [
        "User wondered whether I can keep the schedule",
        "The schedule was **set**",
        "Discussed 3. edition of the schedule",
        "Asked John Smith: is the schedule kept?",
        "Active schedule was set",
        "The schedule has no title: yet",
    ],
)
def test_what_only_resembles_a_telltale_is_not_one(summary: str) -> None:
    assert find_flaw(summary, ["schedule " * 100], LOCAL) is None


@pytest.mark.parametrize("summary", ["", " ", "\n\t\r\n", "\u3000"])
def test_a_blank_summary_is_flawed(summary: str) -> None:
    assert find_flaw(summary, MEDICATION, LOCAL) == "is empty"


@pytest.mark.parametrize("bad", ["\x00", "\x1b[31m", "\x08", "\x7f", "\x9b", "\ud800", "\udfff"])
def test_control_characters_and_lone_surrogates_are_flawed(bad: str) -> None:
    assert find_flaw(f"the schedule{bad}", ["schedule " * 100], LOCAL) == (
        "contains control characters or lone surrogates"
    )


def test_line_breaks_tabs_and_emoji_are_not() -> None:
    assert find_flaw("the schedule\r\n\tis kept 👨‍👩‍👧", ["schedule " * 100], LOCAL) is None


@pytest.mark.parametrize(
    ("summary", "source", "other"),
    [
        (
            "讨论了药物管理和每日时间表。",
            "我们需要为母亲制定药物管理计划，并安排每日时间表。",
            "今天天气很好，去公园散步吧。",
        ),
        (
            "약물 관리와 복용 시간표를 논의함",
            "어머니의 약물 관리와 복용 시간표를 정하고 싶어요",
            "오늘 날씨가 좋아서 공원에 갔다",
        ),
        ("ผู้ใช้ถามเรื่องตารางยา", "ช่วยทำตารางยาให้แม่หน่อย ตารางยาต้องมีเวลา", "วันนี้ฝนตกหนักมาก"),
    ],
)
def test_scripts_without_spaces_are_compared_by_pairs_of_characters(summary: str, source: str, other: str) -> None:
    assert find_flaw(summary, [source] * 6, LOCAL) is None
    assert find_flaw(summary, [other] * 8, LOCAL) == "shares less than 10% of its words with its source"


@pytest.mark.parametrize("sources", [[], [""], ["", ""]])
def test_nothing_can_be_the_summary_of_nothing(sources: list[str]) -> None:
    assert find_flaw("the schedule", sources, LOCAL) is not None


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_answer_is_judged_and_a_flaw_never_quotes_it(summary: str, sources: list[str]) -> None:
    marked = f"Zanzibar {summary}"

    flaw = find_flaw(marked, sources, LOCAL)

    assert flaw is None or "Zanzibar" not in flaw


@pytest.mark.parametrize("piece", first_of(["**A", "**Ab", "A", "Aa ", "Aa Bb", "1", "*", "**A ", "Aa Bb:\n ", "`"]))
@pytest.mark.timeout(5)
def test_a_hostile_answer_of_a_megabyte_is_judged_in_linear_time(piece: str) -> None:
    endless = ValidationPolicy(max_characters=1 << 21, max_ratio=1.0)
    answer = piece * ((1 << 20) // len(piece))

    find_flaw(answer, [answer + "xxxxx"], endless)
