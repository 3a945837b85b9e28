"""`cut` ends at a space if there is one, and never inside a character as readers see it."""

from kalito_mcp.text.sentences import ELLIPSIS, cut


def test_a_text_is_cut_where_a_reader_would() -> None:
    for text, max_chars, shown in (
        ("one two", 7, "one two"),
        ("one two three", 8, f"one two{ELLIPSIS}"),
        ("one, two three", 6, f"one{ELLIPSIS}"),
        ("x" * 500, 11, "x" * 10 + ELLIPSIS),
        ("猫" * 500, 11, "猫" * 10 + ELLIPSIS),
        ("e" * 9 + "e\u0301" * 200, 11, "e" * 9 + ELLIPSIS),
        ("one two", 1, ELLIPSIS),
        ("one two", 0, ""),
    ):
        assert cut(text, max_chars) == shown
