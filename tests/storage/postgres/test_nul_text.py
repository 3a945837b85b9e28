"""Texts with NUL characters go to PostgreSQL and come back as they were."""

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.storage.postgres.nul_text import said_text, stored_text

_MARK = "\uf8f0"


@given(st.text(alphabet=["\0", _MARK, "0", "a", "é"]))
def test_a_text_is_stored_without_nul_and_comes_back(text: str) -> None:
    assert "\0" not in stored_text(text)
    assert said_text(stored_text(text)) == text


def test_a_text_without_either_is_stored_as_it_is() -> None:
    assert stored_text("plain 0 text") == "plain 0 text"
