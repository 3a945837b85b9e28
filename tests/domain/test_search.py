"""What a search is asked for."""

from kalito_mcp.domain.search import SearchRequest


def test_the_first_four_other_wordings_count_without_blank_ones_and_repetitions() -> None:
    asked = SearchRequest("where is the key?", also=("", " key ", "  ", "key", "where is the key?", "b", "c", "d", "e"))
    assert asked.other_wordings == ("key", "b", "c", "d")
    assert SearchRequest("where is the key?").other_wordings == ()
