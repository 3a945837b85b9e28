"""Names of several words written as one, and what only looks like one."""

from kalito_mcp.text.analysis import index_text, query_terms
from kalito_mcp.text.compounds import compounds


def test_a_name_has_these_words() -> None:
    for text, parts in (
        ("fetchUserProfile()", ["fetch", "user", "profile"]),
        ("the RetryPolicy", ["retry", "policy"]),
        ("parseHTTPHeader", ["parse", "http", "header"]),
        ("HTTPHeader-based", ["http", "header"]),
        ("MAX_RETRY_COUNT", ["max", "retry", "count"]),
        ("base64Encode", ["base64", "encode"]),
        ("getID", ["get", "id"]),
        ("ADR-0042", ["adr", "0042"]),
        ("ADR0042", ["adr", "0042"]),
        ("my iPhone", ["phone"]),
    ):
        assert list(compounds(text).values()) == [parts]


def test_other_words_are_no_such_names() -> None:
    for text in (
        "plain words",
        "well-known",
        "URLs and APIs",
        "eBay",
        "dQw4w9WgXcQ",
        "__init__",
        "2026-11-20",
        "v2 p95",
        "",
    ):
        assert compounds(text) == {}


def test_a_name_counts_as_one_word_and_makes_no_text_one_of_the_first_person() -> None:
    indexed = index_text("MyClass ignores fetchUserProfile")
    assert (indexed.word_count, indexed.is_first_person, indexed.several) == (3, False, ())
    assert {"fetchuserprofil", "fetch", "user", "profil"} <= set(indexed.terms)


def test_an_emoji_is_asked_for_if_nothing_else_is() -> None:
    assert query_terms("\U0001f994") == ["\U0001f994"]
    assert query_terms("the \U0001f994 mascot") == ["mascot"]
