"""A query that names a kind finds texts about its instances. The list of kinds is consistent."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp import retrieval
from kalito_mcp.retrieval.hyponyms import hyponyms, said_for, told_for
from kalito_mcp.text.analysis import query_terms, stem, terms
from kalito_mcp.text.irregular_forms import base_form


def _lines(name: str) -> list[str]:
    text = Path(retrieval.__file__).with_name(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


LINES = _lines("hyponyms.txt")
EVERYDAY = _lines("everyday.txt")


def _words(line: str) -> tuple[list[str], list[str]]:
    heads, members = line.split(" : ")
    return heads.split(" "), members.split(" ")


def test_a_line_has_kinds_and_their_words_each_once() -> None:
    for line in EVERYDAY:
        for side in _words(line):
            assert len(set(map(stem, side))) == len(side), line
    for line in LINES:
        heads, members = _words(line)
        stems = [stem(word) for word in heads + members]
        assert [one for one in stems if stems.count(one) > 1] == [], line
        assert 1 <= len(heads) <= 8, line
        assert 8 <= len(members) <= 45, line


def test_the_words_of_the_list_are_written_as_a_text_is_analysed() -> None:
    for word in (word for line in LINES + EVERYDAY for words in _words(line) for word in words):
        assert word.isascii(), word
        assert word.isalnum(), word
        assert word.islower(), word
        assert base_form(word) == word


def test_there_are_kinds_for_everyday_life_and_for_work() -> None:
    assert 250 <= len(LINES) <= 350


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("What pets does she have?", "this is my new puppy"),
        ("Which instruments do I play?", "I practised the clarinet"),
        ("What are his hobbies?", "she went to a pottery course"),
        ("Where did they travel?", "our flights are booked"),
        ("What illnesses did he have?", "it was only the flu"),
        ("Which countries did they see?", "the trains in Japan"),
        ("Who is in the family?", "my nephews came over"),
        ("Which databases do we use?", "moved it to Postgres"),
        ("What problems were there?", "the job crashed with a timeout"),
        ("How is it deployed?", "a Kubernetes cluster"),
    ],
)
def test_a_kind_in_a_query_reaches_what_was_said(query: str, said: str) -> None:
    asked = set(query_terms(query))
    assert not asked & set(terms(said))
    assert {word for term in asked for word in hyponyms(term)} & set(terms(said))


def test_the_other_names_of_a_kind_are_among_its_words_and_its_own_is_not() -> None:
    assert stem("automobile") not in hyponyms("car")
    assert "coworker" in hyponyms(stem("colleague"))
    assert stem("colleague") in hyponyms("coworker")
    assert stem("colleague") not in hyponyms(stem("colleague"))


def test_a_kind_of_several_lines_has_the_words_of_all() -> None:
    for kind in ("book", "game", "career"):
        of_lines = [
            {stem(word) for words in _words(line) for word in words}
            for line in LINES
            if kind in map(stem, _words(line)[0])
        ]
        assert len(of_lines) > 1
        assert hyponyms(kind) == set.union(*of_lines) - {kind}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What do I pay for the flat?", "the rent went up to 1,250"),
        ("What can't I eat?", "the test came back: coeliac"),
        ("Suggest something for dinner", "I'm allergic to prawns"),
        ("Which pill do I take?", "she put me on losartan, 50 mg"),
        ("Who do I report to?", "my new manager is Noor"),
        ("When was he born?", "he turns nine on the 24th"),
    ],
)
def test_a_question_about_life_reaches_what_was_said_in_other_words(question: str, said: str) -> None:
    asked = set(query_terms(question))
    assert not asked & set(terms(said))
    assert {word for term in asked for word in said_for(term)} & set(terms(said))


def test_another_way_of_asking_does_not_tell_what_is_asked() -> None:
    assert {"passport", "consulat"} <= said_for("visa")
    assert "consulat" in told_for("visa")
    assert "passport" not in told_for("visa")


@pytest.mark.parametrize("term", ["", "#", ":", "xyzzy", "puppy dog", "puppie", "Pet", "東京", "the"])
def test_what_is_no_kind_has_no_instances(term: str) -> None:
    assert hyponyms(term) == said_for(term) == frozenset()


@given(st.text(max_size=20) | st.sampled_from(sorted({stem(head) for line in LINES for head in _words(line)[0]})))
def test_instances_are_terms_of_the_index_and_never_the_term_itself(term: str) -> None:
    found = hyponyms(term)
    assert term not in found
    assert all(terms(word) and word.isascii() for word in found)
