"""Accepted texts, names and numbers. Every refusal names the field and says what to do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.validation import checked_name, checked_text, message_number
from kalito_mcp.errors import InvalidInput, TextTooLarge


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50))
def test_any_unicode_text_within_the_limit_comes_back_unchanged(text: str) -> None:
    assert checked_text(text, "text", max_bytes=200) == text


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50), st.integers(1, 200))
def test_the_limit_is_on_the_bytes_of_utf_8_and_is_itself_allowed(text: str, max_bytes: int) -> None:
    if len(text.encode()) <= max_bytes:
        assert checked_text(text, "text", max_bytes=max_bytes) == text
    else:
        with pytest.raises(TextTooLarge, match="send it in parts"):
            checked_text(text, "text", max_bytes=max_bytes)


def test_an_empty_text_and_a_lone_surrogate_are_refused() -> None:
    for text in ("\ud800", "a\udfffb", "é\ud83d", "\ude00", "x" * 100 + "\ud800"):
        place = next(place for place, letter in enumerate(text) if "\ud800" <= letter <= "\udfff")
        for max_bytes in (1_000, 50):
            with pytest.raises(InvalidInput, match=f"surrogate at character {place}"):
                checked_text(text, "text", max_bytes=max_bytes)
        with pytest.raises(InvalidInput, match="content is empty"):
            checked_text("", "content", max_bytes=10)


def test_a_text_need_not_have_a_letter() -> None:
    for text in (" ", "\n", "\x00", "\u200b", "\ufeff", "0"):
        assert checked_text(text, "text", max_bytes=10) == text


def test_a_name_may_be_anything_that_can_be_seen() -> None:
    for name in ("s", "session_123", "x" * 200, "a b", "..", "../etc/passwd", "a&b=c:d%e'f\"g", "имя", "👍", " x "):
        assert checked_name(name, "session_id") == name


def test_a_name_that_is_empty_long_or_has_control_characters_is_refused() -> None:
    for name in ("", " ", "\t", "\u3000", "x" * 201, "a\nb", "a\x00", "\x7f", "\ud800", "a\r"):
        with pytest.raises(InvalidInput, match=r"^session_id"):
            checked_name(name, "session_id")


def test_a_message_id_is_its_number_with_or_without_its_prefix() -> None:
    for number in (45, "45", "msg_45", " 45 ", "045", " msg_45\n"):
        assert message_number(number) == 45


def test_what_is_no_message_id_is_refused_by_its_field() -> None:
    for number in (
        "",
        "msg_",
        "msg_msg_4",
        "4.5",
        "-4",
        "+4",
        "1e3",
        "٤٥",
        "４５",
        "pin_45",
        "9" * 19,
        "msg_ 45",
        "0x1F",
        -1,
    ):
        with pytest.raises(InvalidInput, match=r"^end_message_id="):
            message_number(number, "end_message_id")


@given(st.integers(0, 10**18 - 1))
def test_every_number_of_eighteen_digits_fits_the_storage(number: int) -> None:
    assert message_number(f"msg_{number}") == number < 2**63
