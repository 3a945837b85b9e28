"""Irregular forms have the same term as the regular forms of their base."""

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.text import irregular_forms
from kalito_mcp.text.analysis import STOP_WORDS, stem, words
from kalito_mcp.text.irregular_forms import base_form

FORMS = irregular_forms._BASES
VERBS = sorted(
    entry.split()[0]
    for table in (irregular_forms._VERBS, irregular_forms._SHORT_OR_DOUBLED)
    for entry in table.split(";")
)
NOUNS = sorted(entry.split()[0] for entry in irregular_forms._NOUNS.split(";"))
# Verbs that double their last letter before -ing, as far as they are in the list.
DOUBLING = {"begin", "dig", "forbid", "forget", "get", "run", "sit", "spin", "spit", "swim", "win"}


def _s_form(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh", "go", "do")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"


def _ing_form(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb in DOUBLING:
        return verb + verb[-1] + "ing"
    return (verb[:-1] if verb.endswith("e") and not verb.endswith(("ee", "ye")) else verb) + "ing"


def test_the_forms_of_a_word_are_one_term() -> None:
    for family in (
        "go goes going went gone",
        "take takes taking took taken",
        "see sees seeing saw seen",
        "die dies died dying",
        "swim swims swimming swam swum",
        "child children",
        "wife wives",
        "analysis analyses",
        "travel travels traveled travelled travelling traveling",
    ):
        assert len({stem(base_form(word)) for word in family.split()}) == 1


def test_the_regular_forms_of_a_verb_are_the_term_of_its_base() -> None:
    for verb in VERBS:
        assert stem(base_form(_s_form(verb))) == stem(base_form(_ing_form(verb))) == stem(verb), verb


def test_a_regular_plural_is_the_term_of_its_noun() -> None:
    for noun in NOUNS:
        if not noun.endswith(("sis", "f", "fe", "man", "child")) and noun != "quiz":
            assert stem(base_form(_s_form(noun))) == stem(noun), noun


def test_a_base_is_never_a_form_and_no_form_has_two_bases() -> None:
    assert not set(FORMS) & set(FORMS.values())
    entries = [
        entry.split()[1:]
        for table in (irregular_forms._VERBS, irregular_forms._NOUNS, irregular_forms._SHORT_OR_DOUBLED)
        for entry in table.split(";")
    ]
    assert sum(map(len, entries)) == len(FORMS)


def test_forms_and_bases_are_words_as_they_are_found_in_a_text() -> None:
    assert all(words(word) == [word] for word in (*FORMS, *FORMS.values()))


def test_only_what_a_query_drops_anyway_leads_to_a_function_word() -> None:
    into = {form for form, base in FORMS.items() if base in STOP_WORDS}
    assert into == {"got", "gotten", "knew", "known", "said", "told"}


def test_a_form_that_is_as_often_another_word_stays_as_it_is() -> None:
    for (
        word
    ) in "rose wound bore lay bit bound ground stuck shot dove leaves lives bases data people better founded".split():
        assert base_form(word) == word


@given(st.sampled_from(sorted(FORMS)) | st.text(max_size=12))
def test_the_base_of_a_base_is_itself(word: str) -> None:
    assert base_form(base_form(word)) == base_form(word)
    assert word in FORMS or base_form(word) == word
