"""Texts with NUL characters go to PostgreSQL and come back as they were."""

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.storage.postgres.nul_text import said_text, storable, stored_text

_MARK = "\uf8f0"


@given(st.text(alphabet=["\0", _MARK, "0", "a", "é"]))
def test_a_text_is_stored_without_nul_and_comes_back(text: str) -> None:
    assert "\0" not in stored_text(text)
    assert said_text(stored_text(text)) == text


def test_a_text_without_either_is_stored_as_it_is() -> None:
    assert stored_text("plain 0 text") == "plain 0 text"


def test_the_texts_of_a_list_are_stored_in_the_same_way_whatever_is_before_them() -> None:
    assert storable([None, "a\0b", "c"]) == [None, f"a{_MARK}0b", "c"]
    assert storable([None, 1]) == [None, 1]
    assert storable([]) == []
