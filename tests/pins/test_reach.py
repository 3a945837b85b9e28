"""Where a pin is known if nobody says so."""

import pytest

from kalito_mcp.domain.records import Origin, PinType, Reach
from kalito_mcp.pins.reach import reach_of, reach_of_note

SESSION, PROJECT, PERSON = Reach.SESSION, Reach.PROJECT, Reach.PERSON


@pytest.mark.parametrize(
    ("text", "outside", "inside"),
    [
        ("The user is a vegetarian and allergic to seafood.", PERSON, PERSON),
        ("The user wants short answers, in English, without bullet points.", PERSON, PERSON),
        ("I am allergic to penicillin today and always.", PERSON, PERSON),
        ("Ines is allergic to nuts.", PERSON, PROJECT),
        ("Allergic to penicillin", PERSON, PERSON),
        ("Prefers short answers.", PERSON, PERSON),
        ("User prefers dark mode.", PERSON, PROJECT),
        ("The user lives in Bergen.", PERSON, PERSON),
        ("My sister Ana is a nurse.", PERSON, PERSON),
        ("Lena's birthday is June 4.", PERSON, PROJECT),
        ("My birthday is June 4.", PERSON, PERSON),
        ("remember that we deploy on Tuesdays", PERSON, PROJECT),
        ("Remember: client Hartmann pays 1.2M and must not be named anywhere else", PERSON, PROJECT),
        ("remember that the prod admin of this customer is Rute Alves, rute@translada.example", PERSON, PROJECT),
        ("i'm vegetarian and have 6 people on saturday, one of them can't have gluten.", SESSION, SESSION),
        ("Always answer in English.", PERSON, PERSON),
        ("The user decided to use PostgreSQL.", SESSION, PROJECT),
        ("We decided to use PostgreSQL for the backend.", SESSION, PROJECT),
        ("The staging database listens on port 5433.", SESSION, PROJECT),
        ("Always run the tests before you commit.", SESSION, PROJECT),
        ("Functions are named with verbs.", SESSION, PROJECT),
        ("The user wants the login page in blue.", PERSON, PROJECT),
        ("The user is flying to Oslo tomorrow.", SESSION, SESSION),
        ("The meeting is at 3 pm on Friday.", SESSION, SESSION),
    ],
)
def test_a_pin_is_known_where_its_words_belong(text: str, outside: Reach, inside: Reach) -> None:
    assert (reach_of(text, has_project=False), reach_of(text, has_project=True)) == (outside, inside)


def test_code_and_words_of_tools_stay_in_their_session() -> None:
    assert reach_of("I am allergic to nuts.", has_project=True, pin_type=PinType.CODE) is SESSION
    for origin in (Origin.TOOL, Origin.DOCUMENT, Origin.IMPORT):
        assert reach_of("I am allergic to nuts.", has_project=True, origin=origin) is SESSION


def test_only_a_short_note_about_the_person_is_known_everywhere() -> None:
    assert reach_of_note("I am allergic to nuts.", has_project=True) is PERSON
    assert reach_of_note("The shed code is 4711.", has_project=False) is None
    assert reach_of_note("We decided to use PostgreSQL.", has_project=True) is None
    assert reach_of_note("I am allergic to nuts. " * 20, has_project=False) is None
