"""Which sentences about somebody's life are pinned, in seven languages, and which are not."""

import pytest

from kalito_mcp.domain.records import MessageWithImportance, Origin, PinType, Role
from kalito_mcp.domain.time import from_iso
from kalito_mcp.pins.automatic import find_pins, subject_of

SAID = from_iso("2026-03-04T10:00:00")


def _contents(text: str, role: Role = Role.USER, name: str | None = None) -> list[str]:
    origin = Origin.ASSISTANT if role is Role.ASSISTANT else Origin.USER
    message = MessageWithImportance(1, "s", role, text, None, None, SAID, 0.5, 1, 0, name, None, origin)
    return [pin.content for pin in find_pins(message)]


@pytest.mark.parametrize(
    "text",
    [
        "Lena is allergic to peanuts and carries an EpiPen.",
        "My son can't eat gluten.",
        "I broke my wrist.",
        "I have arthritis in both hands.",
        "I'm vegetarian.",
        "My new address is 12 Elm Street, Leeds.",
        "We moved to Kirkegata 7 in Trondheim.",
        "Our landlord Mr. Haugen has the number 555-0188.",
        "My boss is Ingrid Solberg.",
        "I work at Nordkraft as a grid engineer.",
        "I started a new job at Nordkraft.",
        "My wife Ann is a nurse.",
        "We have a golden retriever.",
        "Our cat is called Miso.",
        "Lena's birthday is on May 3.",
        "I was born in March 1984.",
        "My husband works at the university.",
        "I'm a single mother.",
        "I play the cello every Sunday.",
        "I volunteer at the animal shelter.",
        "I'm studying marine biology.",
        "I'm restoring an old sailing boat.",
        "I want to become a counselor.",
        "I'm learning German.",
        "I won a photography award.",
        "I hate cilantro.",
        "Please keep your answers short.",
        "The deadline for the grant is April 15.",
    ],
)
def test_a_lasting_fact_is_pinned(text: str) -> None:
    assert _contents(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Please don't mix them up again.",
        "Let's pick a date.",
        "I've been playing for about four months now.",
        "I've been working on it for two years now.",
        "Her name is Shadow!",
        "I love that!",
        "I love how you did it.",
        "I love your work.",
        "I'm kinda worried about the May 25 deadline.",
        "I'm in awe of your courage as a trans person.",
        "I studied hard.",
        "We had a great time.",
    ],
)
def test_a_fragment_or_a_feeling_of_the_moment_is_not(text: str) -> None:
    assert _contents(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Helmet is a middleware for Express that helps you secure your app.",
        "The Triangle Sum Theorem is a fundamental principle that holds for all triangles.",
        "Decision: Decide to keep one calendar.",
        "I live in Oslo.",
    ],
)
def test_an_assistant_teaches_and_drafts_without_pins(text: str) -> None:
    draft = "Dear all, " + "we look forward to it very much. " * 20 + "We agreed to reschedule the reunion to May 3."
    assert _contents(draft, Role.ASSISTANT) == []
    assert _contents(text, Role.ASSISTANT) == []


def test_who_her_is_stands_in_the_sentence_before() -> None:
    assert _contents("We adopted a puppy from the shelter. Her name is Shadow!")[-1] == (
        "We adopted a puppy from the shelter. Her name is Shadow!"
    )


def test_a_person_with_a_name_is_believed_and_an_assistant_with_one_is_not() -> None:
    assert _contents("I live in Oslo.", Role.ASSISTANT, "Melanie") == ["Melanie: I live in Oslo."]
    assert _contents("I live in Oslo.", Role.ASSISTANT, "Claude") == []


def test_a_pin_has_the_date_behind_yesterday() -> None:
    assert _contents("I just signed up for a pottery class yesterday.") == [
        "I just signed up for a pottery class yesterday (2026-03-03)."
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Ich bin allergisch gegen Nüsse.",
        "Mein Sohn Jannis verträgt keine Laktose.",
        "Meine neue Adresse ist Lindenweg 4 in Göttingen.",
        "Ich wohne in Göttingen.",
        "Meine Chefin heißt Frau Brinkmann.",
        "Ich arbeite als Landschaftsplanerin.",
        "Wir haben uns für Postgres entschieden.",
        "Bitte antworte immer auf Deutsch.",
        "Je suis allergique aux arachides.",
        "J'habite à Nantes.",
        "Ma sœur s'appelle Élise.",
        "Je travaille à la médiathèque.",
        "Je suis végétarienne.",
        "Soy alérgica a los cacahuetes.",
        "Vivo en Sevilla.",
        "Mi hermana se llama Lucía.",
        "Mi cumpleaños es el 3 de mayo.",
        "No como carne.",
        "У меня аллергия на орехи.",
        "Я живу в Казани.",
        "Мою сестру зовут Анна.",
        "Я не ем мясо.",
        "我对花生过敏。",
        "我住在杭州。",
        "我家的猫叫芝麻。",
        "丈夫生日是三月十九号。",
        "我们决定用Postgres。",
        "私はそばアレルギーです。",
        "仙台に住んでいます。",
        "妻の誕生日は5月3日です。",
        "肉は食べません。",
    ],
)
def test_other_languages_are_read_too(text: str) -> None:
    assert _contents(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Bist du allergisch gegen Nüsse?",
        "Wenn ich in Oslo wohne, fahre ich Rad.",
        "Vielleicht bin ich allergisch gegen Nüsse.",
        "Es-tu allergique aux noix ?",
        "¿Eres alérgica a las nueces?",
        "Если я живу в Казани, то да.",
        "你对花生过敏吗？",
        "如果我对花生过敏怎么办。",
        "そばアレルギーですか？",
        "Heute war ein schöner Tag.",
    ],
)
def test_questions_and_doubts_in_other_languages_are_not(text: str) -> None:
    assert _contents(text) == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My address is 3 Oak Road.", "My new address is 12 Elm Street."),
        ("I live in Oslo.", "I now live in Bergen."),
        ("I'm using Bootstrap 5.2.0.", "I'm using Bootstrap v5.3.0 now."),
        ("Ann: I live in Oslo.", "Ann: I live in Bergen."),
        ("Ich wohne in Kassel.", "Ich wohne in Göttingen."),
        ("我住在杭州。", "我住在北京。"),
    ],
)
def test_what_there_is_one_of_has_one_subject(older: str, newer: str) -> None:
    assert subject_of(older, PinType.AUTO) == subject_of(newer, PinType.AUTO) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann: I live in Oslo.", "Ben: I live in Oslo."),
        ("I'm using Bootstrap 5.2.0.", "I'm using Django 5.2.0."),
        ("I live in Oslo.", "I'm using Django 5.2.0."),
    ],
)
def test_another_person_or_thing_is_another_subject(one: str, other: str) -> None:
    assert subject_of(one, PinType.AUTO) != subject_of(other, PinType.AUTO)


def test_a_function_is_the_subject_of_code() -> None:
    first, second = "python: def parse(text):\n    return 1", "python: def parse(text):\n    return 2"
    assert subject_of(first, PinType.CODE) == subject_of(second, PinType.CODE) != ""
    assert subject_of("My sister Ann is a nurse.", PinType.AUTO) == ""
