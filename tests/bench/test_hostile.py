"""Each hostile query is what its name says."""

from bench.hostile import hostile_queries
from kalito_mcp.text.analysis import STOP_WORDS, query_terms, words


def test_hostile_queries_are_as_long_and_as_empty_as_they_say() -> None:
    asked = hostile_queries(4_000)
    assert len(asked["ten_thousand_words"].split()) == 10_000
    assert len(asked["as_many_words_as_are_taken"]) <= 4_000
    assert len(query_terms(asked["three_hundred_common_words"])) == 300
    assert len(asked["one_word_of_four_thousand_letters"]) == 4_000
    assert set(words(asked["function_words"])) <= STOP_WORDS
    assert query_terms(asked["no_word"]) == []
    assert all(query.strip() for query in asked.values())
