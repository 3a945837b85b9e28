"""Text becomes terms: the same for records and queries, in every script and normal form."""

import unicodedata
from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from kalito_mcp.text.analysis import MANY, SEVERAL, STOP_WORDS, index_text, query_terms, stem, terms, words

LETTERS = st.characters(categories=["Lu", "Ll", "Lo", "Lt", "Lm", "Nd", "Mn", "Mc", "Zs", "Po", "Pd"])
SCRIPTS = st.text(
    st.sampled_from(
        "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789 '’-_.,"
        "àâäçéèêëîïôöùûüÿœæøåßñčšžłőűİıΆάέήίόύώϊϋΰ"
        "абвгдеёжзийклмнїґ"
        "ابتثجحخدذرزسشصآأؤئكلمنهوىي"
        "אבגדהוזחטיכלמנסעפצקרשת"
        "कखगघचछजझटठडढतथदधनिीुूेैोौंँ्"
        "กขคงจชซดตถทนบปผพมยรลวสหอะาิีึืุู่้"
        "一二三東京北京日本語猫海が"
        "ぎぐげごぱぴガパ저는서울에한국어"
    ),
    max_size=60,
)


def test_a_text_has_these_words() -> None:
    for text, expected in (
        ("The planned trips", ["the", "planned", "trips"]),
        ("snake_case-and.dots/slashes", ["snake", "case", "and", "dots", "slashes"]),
        ("don't we'll Ann's", ["don't", "we'll", "ann's"]),
        ("O'Brien o'clock rock'n'roll", ["o", "brien", "o", "clock", "rock'n", "roll"]),
        ("l’été", ["l", "ete"]),
        ("x86_64 mp3 v3.51.2 5'10", ["x86", "64", "mp3", "v3", "51", "2", "5", "10"]),
        ("Café CAFE\u0301 naïve", ["cafe", "cafe", "naive"]),
        ("東京に行く", ["東京", "京に", "に行", "行く"]),
        ("mix中文and英文", ["mix", "中文", "and", "英文"]),
        ("in\u200bvisible hyp\u00adhen", ["invisible", "hyphen"]),
        ("كِتَابٌ", ["كتاب"]),
        ("", []),
        ("!?… 👍 \x00 \ud800", []),
    ):
        assert words(text) == expected


def test_the_inflections_of_a_word_are_one_term() -> None:
    for family in (
        "plan plans planned planning",
        "story stories",
        "box boxes boxed boxing",
        "need needs needed needing",
        "stop stops stopped stopping",
        "like likes liked liking",
        "close closes closed closing",
        "see seeing",
        "agree agrees agreeing",
    ):
        assert len({stem(word) for word in family.split()}) == 1


def test_a_short_word_or_one_with_digits_keeps_its_letters() -> None:
    for word in ("red", "king", "fly", "this", "bus", "gas", "is", "as", "3ds", "1990s", "sing", "bed"):
        assert stem(word)[:3] == word[:3]


def test_words_that_differ_stay_different() -> None:
    pairs = [("planet", "plan"), ("university", "universe"), ("17", "71"), ("don", "dons1")]
    pairs += [("note", "not"), ("plane", "plan"), ("theme", "them"), ("hoping", "hopping")]
    assert all(stem(one) != stem(other) for one, other in pairs)


def test_a_very_long_word_is_cut_and_still_found_by_itself() -> None:
    word = "x" * 10_000
    assert index_text(word).terms == tuple(query_terms(word))
    assert len(index_text(word).terms[0]) == 48


@given(SCRIPTS)
def test_every_normal_form_of_a_text_has_the_same_terms(text: str) -> None:
    expected = words(unicodedata.normalize("NFC", text))
    for form in ("NFD", "NFKC", "NFKD"):
        assert words(unicodedata.normalize(form, text)) == expected, form


@given(SCRIPTS)
def test_case_makes_no_difference_where_it_can_be_folded(text: str) -> None:
    assert words(text.casefold()) == words(text)


@given(st.text(LETTERS, max_size=60))
@example("㐀'A")
def test_every_term_that_is_asked_was_indexed(text: str) -> None:
    assert set(query_terms(text)) <= set(index_text(text).terms) == set(terms(text))


@given(st.text(max_size=80))
@example("㉮'A")
def test_any_text_has_clean_terms(text: str) -> None:
    for term in index_text(text).terms:
        assert 0 < len(term) <= 48
        assert not set(term) & set(" '\"’:*()-\x00\n_")
        assert term == term.casefold()
        term.encode()


@given(st.text(st.characters(max_codepoint=127), max_size=80))
def test_an_ascii_text_has_the_same_words_next_to_another_script(text: str) -> None:
    assert words(f"{text} Ω") == [*words(text), "ω"]


@given(st.lists(st.sampled_from(["ferry", "Moss", "東京", "été", "we'll", "O'Brien", "x86"]), max_size=12))
def test_words_are_those_of_the_parts_in_order(parts: list[str]) -> None:
    assert words(" ".join(parts)) == [word for part in parts for word in words(part)]


def test_terms_are_distinct_and_in_order_and_have_the_speakers_name() -> None:
    assert index_text("ferry to ferries", "Ann Lee").terms == ("ferry", "to", "ann", "lee")
    assert index_text("ferry", "").terms == index_text("ferry", None).terms == index_text("ferry").terms == ("ferry",)


def test_function_words_are_dropped_from_a_query_unless_nothing_else_is_left() -> None:
    assert query_terms("What is the name of the ferry?") == ["name", "ferry"]
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]
    assert query_terms("how many ferries are done") == ["ferry"]
    assert query_terms("I'm") == ["i"]
    assert query_terms("") == []


def test_stop_words_are_words_as_they_are_found_in_a_text() -> None:
    assert all(words(word) == [word] for word in STOP_WORDS)
    assert {"no", "not", "nor"} <= STOP_WORDS


@given(
    said=st.lists(st.sampled_from(["ferry", "Ferries", "moss", "I", "we're", "東京", "ann", "?"]), max_size=30),
    name=st.sampled_from([None, "Ann Lee"]),
)
def test_what_is_indexed_are_the_terms_with_what_is_repeated_several_and_many_times(
    said: list[str], name: str | None
) -> None:
    text = " ".join(said)
    found = index_text(text, name)
    counts = Counter(terms(text) + terms(name or ""))
    assert found.terms == tuple(counts)
    assert found.several == tuple(term for term, times in counts.items() if times >= SEVERAL)
    assert found.many == tuple(term for term, times in counts.items() if times >= MANY)
    assert found.word_count == counts.total()
    assert found.is_first_person == ("I" in said or "we're" in said)


def test_a_text_is_in_the_first_person_if_its_speaker_talks_about_themselves() -> None:
    for text, is_first_person in (
        ("I took the ferry.", True),
        ("we're late", True),
        ("the mine", False),
        ("iPhone, i.e. phone", True),
        ("", False),
    ):
        assert index_text(text).is_first_person is is_first_person
