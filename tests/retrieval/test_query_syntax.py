"""The operators of a query: what a text must contain and must not contain."""

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.retrieval.query_syntax import Query, parse_query
from kalito_mcp.text.analysis import words

PARTS = st.lists(
    st.sampled_from(["ferry", "-moss", '"', "-", '"night train"', '-"first class"', "“", "”", "\n", "5", "猫", "…"]),
    max_size=10,
)


def admits(text: str, query: Query) -> bool:
    return query.has_phrases(text) and not query.is_excluded(text)


def test_a_phrase_stands_between_double_quotes() -> None:
    for query, phrases in (
        ('the "Night Train" to Moss', ("night train",)),
        ("der „Nachtzug“ nach Moss", ("nachtzug",)),
        ('("night train")', ("night train",)),
        ('"one" and "two"', ("one", "two")),
        ('"one" or "ONE"', ("one",)),
        ('"Ann\'s café, -really"', ("ann's cafe really",)),
        ('"東京に"', ("東京 京に",)),
        ('an unbalanced "quote', ()),
        ('"Eternal Sunshine of the Spotless Mind', ()),
        ('a 12" pipe and a 14" one', ()),
        ('"over\ntwo lines"', ()),
        ('"…" and ""', ()),
        ("it's Ann's 'single' quote", ()),
    ):
        assert parse_query(query).phrases == phrases


def test_a_minus_leaves_out_where_it_begins_a_word() -> None:
    for query, excluded, excluded_phrases in (
        ("ferry -moss", ("moss",), ()),
        ("-Ferries to moss", ("ferry",), ()),
        ('ferry -"night train"', (), ("night train",)),
        ("ferry -e-mail", (), ()),
        ("ferry -night-train", (), ("night train",)),
        ("ferry -been -been", ("been",), ()),
        ("well-known ferry", (), ()),
        ("below -5 degrees", (), ()),
        ("moss - horten", (), ()),
        ("curl -v moss", (), ()),
        ("- milk\n- eggs", (), ()),
        ("-milk\n  -eggs", (), ()),
        ("buy\n-milk -eggs", ("egg",), ()),
        ("(-moss) ferry", (), ()),
        ("ferry −moss", (), ()),
    ):
        found = parse_query(query)
        assert (found.excluded, found.excluded_phrases) == (excluded, excluded_phrases)


def test_what_is_left_to_look_for_has_the_words_of_phrases_and_not_what_is_left_out() -> None:
    assert (
        words(parse_query('the "night train" -moss to -"first class" Horten').words)
        == "the night train to horten".split()
    )


def test_a_query_of_exclusions_only_is_read_as_plain_words() -> None:
    for query in ("-ferry", '-"night train" -moss', "-ferry …", "", " ", "-"):
        assert parse_query(query) == Query(words=query)


def test_a_text_is_admitted_with_every_phrase_and_nothing_that_is_left_out() -> None:
    for query, text, is_admitted in (
        ("ferry", "anything", True),
        ('"night train"', "The NIGHT-TRAIN leaves", True),
        ('"night train"', "night trains leave", False),
        ('"night train"', "a fortnight trainer", False),
        ('"night train" "moss"', "the night train", False),
        ('"cafe"', "the Café.", True),
        ('"京に"', "東京に行く", True),
        ('"я"', "моя", False),
        ("ferry -moss", "the ferry to Moss", False),
        ("ferry -moss", "a mossy ferry", True),
        ("ferry -train", "ferries and trains", False),
        ('ferry -"train"', "ferries and trains", True),
        ('ferry -"night train"', "the ferry, no night-train", False),
        ('ferry -"night train"', "the ferry at night", True),
    ):
        assert admits(text, parse_query(query)) is is_admitted


@given(PARTS)
def test_every_query_is_parsed_and_keeps_something_to_look_for(parts: list[str]) -> None:
    query = " ".join(parts)
    found = parse_query(query)
    assert bool(words(found.words)) == bool(words(query))
    assert set(words(found.words)) <= set(words(query))
    for phrase in found.phrases:
        assert phrase in " ".join(words(found.words))


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_may_be_asked_for_and_admitted(query: str, text: str) -> None:
    admits(text, parse_query(query))


def test_a_pasted_text_has_no_syntax() -> None:
    text = 'run it with "leaves at seven" and -moss, ' + "then say what happened, " * 25
    assert parse_query(text) == Query(words=text)
    assert parse_query(text[:300]).phrases == ("leaves at seven",)
