"""A document becomes chunks: nothing is lost, structure comes before size, and an edit moves few cuts."""

import difflib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.errors import InvalidInput
from kalito_mcp.records.chunking import ChunkPolicy, chunks

SMALL = ChunkPolicy(target_chars=40, max_chars=80)
LETTERS = ["e\u0301", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "\ud83d\ude00", "\u1100\u1161\u11a8", "नि", "❤\ufe0f"]
MARKS = ["# ", "## ", "#", "```", "````", "~~~", "```py", "- ", "1. ", "\n", "\n\n", "\r\n", "\r", " ", "\t", "    "]
WORDS = ["word", "a sentence.", "Really?! ", "文。", "\ud800", "\u2028", "x" * 30]
PIECES = st.sampled_from([*MARKS, *WORDS, *LETTERS])
MARKDOWN = st.lists(PIECES, max_size=120).map("".join)
POLICIES = st.tuples(st.integers(1, 60), st.integers(0, 60)).map(lambda both: ChunkPolicy(both[0], sum(both)))


def prose(seed: int, words: int) -> str:
    chooser = random.Random(seed)
    return " ".join("".join(chooser.choices("abcdefghij", k=chooser.randint(2, 9))) for _ in range(words))


def sections(count: int, paragraphs: int) -> list[str]:
    return [
        f"## Section {number}\n\n" + "".join(f"{prose(100 * number + part, 60)}\n\n" for part in range(paragraphs))
        for number in range(count)
    ]


def moved(before: str, after: str) -> int:
    """How many chunks of `after` are not chunks of `before`, in order."""
    matcher = difflib.SequenceMatcher(None, chunks(before), chunks(after), autojunk=False)
    return len(chunks(after)) - sum(block.size for block in matcher.get_matching_blocks())


@given(MARKDOWN | st.text(max_size=300), POLICIES)
def test_the_chunks_joined_are_the_text_and_none_is_empty_or_too_long(text: str, policy: ChunkPolicy) -> None:
    parts = chunks(text, policy)
    assert "".join(parts) == text
    assert all(0 < len(part) <= policy.max_chars for part in parts)
    assert parts == chunks(text, policy)


@given(st.text(max_size=40))
def test_a_small_text_is_one_chunk_and_an_empty_one_none(text: str) -> None:
    assert chunks(text, SMALL) == ([text] if text else [])


@given(MARKDOWN, MARKDOWN, MARKDOWN)
def test_text_far_enough_before_an_edit_keeps_its_chunks(prefix: str, one: str, other: str) -> None:
    safe = len(prefix) - 2 * SMALL.max_chars
    first, second = chunks(prefix + one, SMALL), chunks(prefix + other, SMALL)
    start = 0
    for mine, theirs in zip(first, second, strict=False):
        if start >= safe:
            break
        assert mine == theirs
        start += len(mine)


def test_an_edit_in_the_middle_moves_few_chunks() -> None:
    parts = sections(60, 4)
    before = "".join(parts)
    for place in range(5, 60, 6):
        edited = parts[place].replace("\n\n", "\n\nA sentence that is new. ", 2)
        assert moved(before, "".join([*parts[:place], edited, *parts[place + 1 :]])) <= 4


def test_paragraphs_without_headings_fall_back_into_step_after_an_edit() -> None:
    parts = [f"{prose(number, 50)}\n\n" for number in range(300)]
    before = "".join(parts)
    for place in range(0, 300, 30):
        assert moved(before, "".join([*parts[:place], "New here.\n\n", *parts[place:]])) <= 8


def test_sections_that_fill_a_chunk_are_chunks_of_their_own() -> None:
    parts = [f"## {number}\n\n{prose(number, 300)[:1_500]}\n\n" for number in range(20)]
    assert chunks("".join(parts)) == parts


def test_the_higher_heading_wins_over_the_lower_one() -> None:
    text = f"# One\n\n{prose(1, 60)}\n\n# Two\n\n{prose(2, 60)}\n\n### Detail\n\n{prose(3, 300)}"
    assert [part.splitlines()[0] for part in chunks(text)[:2]] == ["# One", "# Two"]


def test_a_heading_stays_with_what_it_announces() -> None:
    for part in chunks("".join(sections(40, 3))):
        assert not part.rstrip().splitlines()[-1].startswith("#")
    long = f"# Title\n## Sub\n\n\n{prose(1, 2_000)}"
    assert len(chunks(long)[0]) > 1_000


def test_a_paragraph_or_a_code_block_that_fits_is_whole() -> None:
    code = "```python\n" + "# no heading\n\n- no item\n\nx = 1\n" * 100 + "```\n"
    assert 2_000 < len(code) <= 4_000
    before, after = f"{prose(1, 100)}\n\n", f"\n{prose(2, 300)}\n\n"
    assert any(code in part for part in chunks(before + code + after + prose(3, 400)))
    paragraph = prose(4, 450) + "\n\n"
    assert 2_000 < len(paragraph) <= 4_000
    assert any(paragraph in part for part in chunks(before + paragraph + after * 3))


@pytest.mark.parametrize("fence", ["````", "~~~", "   ```"])
def test_a_fence_is_closed_only_by_its_like(fence: str) -> None:
    closing = fence.strip()
    inside = "```js\n# no heading\n" if fence != "   ```" else "~~~\n# no heading\n```js\n"
    inside += "code line\n" * 250
    text = f"{fence}\n{inside}{closing}\n\n# Heading\n\n{prose(1, 400)}"
    first = chunks(text)[0]
    assert first.endswith(f"{closing}\n\n")


def test_code_that_is_too_long_is_cut_at_its_blank_lines() -> None:
    body = "".join(f"def f{number}():\n    return {prose(number, 20)!r}\n\n" for number in range(60))
    for ending in ("```\n", ""):
        parts = chunks(f"```python\n{body}{ending}")
        assert len(parts) > 3
        assert all(part.startswith("def ") for part in parts[1:])


def test_three_backticks_with_more_behind_them_open_no_code() -> None:
    text = f"```inline``` words\n\n# Heading\n\n{prose(1, 150)}\n\n"
    assert any(part.startswith("# Heading") for part in chunks(prose(2, 100) + "\n\n" + text + prose(3, 300)))


def test_a_long_list_is_cut_between_items() -> None:
    items = "".join(f"- {prose(number, 12)}\n  and {prose(number, 3)}\n" for number in range(100))
    assert all(part.startswith("- ") for part in chunks(items))


def test_without_paragraphs_it_is_cut_at_lines_then_sentences_then_words() -> None:
    lines = "".join(f"{prose(number, 10)}\r\n" for number in range(300))
    assert all(part.endswith("\r\n") for part in chunks(lines))
    sentences = " ".join(f"{prose(number, 10).capitalize()}." for number in range(300))
    assert all(part.endswith(". ") for part in chunks(sentences)[:-1])
    assert all(part.endswith("。") for part in chunks("昨日は京都に行きました。" * 500))
    words = prose(1, 2_000)
    assert all(part.endswith(" ") for part in chunks(words)[:-1])
    assert [len(part) for part in chunks("x" * 7_000)] == [2_000, 2_000, 3_000]


def test_no_character_is_cut_in_two() -> None:
    for letter in LETTERS:
        for length in range(5, 30):
            policy = ChunkPolicy(target_chars=length, max_chars=length)
            assert all(len(part) % len(letter) == 0 for part in chunks(letter * 40, policy))
        assert [len(part) for part in chunks("e" + "\u0301" * 7_000)] == [2_000, 2_000, 3_001], "no real character"


def test_a_hostile_document_is_cut_into_chunks_of_full_size() -> None:
    for unit in ("\n", "- \n", "# \n", "```a\n\n", "~~~\n", ".", ".)", "ab\n\n", "\u0301", "\r\n", "\n \n"):
        text = unit * (200_000 // len(unit))
        parts = chunks(text)
        assert "".join(parts) == text
        assert len(parts) <= len(text) // 1_000 + 1


def test_a_policy_by_which_no_chunk_could_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="target_chars=11 is above max_chars=10; lower"):
        ChunkPolicy(target_chars=11, max_chars=10)
