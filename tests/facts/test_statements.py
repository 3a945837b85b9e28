"""What texts state. The sentences are our own."""

import pytest

from kalito_mcp.domain.facts import Statement
from kalito_mcp.facts.statements import statements


def short(one: Statement) -> str:
    """A statement in one line: `@user home: rome`, `not` and `was` before, `!` after a change."""
    polarity = "" if one.polarity == "is" else f"{one.polarity} "
    return f"{polarity}{one.subject} {one.attribute}: {one.value}{'!' if one.is_change else ''}"


STATED = [
    ("I live in Porto.", "@user home: porto"),
    ("I've lived in Porto since 2019.", "@user home: porto"),
    ("I moved to Graz last spring.", "@user move: graz!"),
    ("Petra lives at 14 Mill Lane.", "petra address: 14 mill lane"),
    ("I used to live in Genoa.", "was @user home: genoa!"),
    ("I no longer live in Porto, I live in Graz.", "not @user home: porto! / @user home: graz!"),
    ("Petra doesn't work at Globex anymore.", "not petra employer: globex!"),
    ("I joined Globex in March.", "@user employer: globex!"),
    ("Petra works for a small bakery.", "petra employer: small bakery"),
    ("My boss is Hanna.", "@user boss: hanna"),
    ("Igor is my new boss.", "@user boss: igor!"),
    ("I report to Hanna now.", "@user boss: hanna!"),
    ("Petra and Igor work with me.", "petra colleague: yes / igor colleague: yes"),
    ("Igor left the team.", "not igor employer: *! / igor colleague: no!"),
    ("My favourite colour is ochre.", "@user favorite color: ochre"),
    ("Petra's favorite band is Portishead.", "petra favorite band: portishead"),
    ("I no longer drink tea.", "@user drink tea: no!"),
    ("I drink tea and juice every day.", "@user drink tea: yes / @user drink juice: yes"),
    ("I misspoke, I have no brother.", "@user have brother: no!"),
    ("I'm a vegan now.", "@user diet: vegan!"),
    ("Petra got divorced.", "petra marital: divorc!"),
    ("We upgraded Django to 5.1.", "django version: 5.1!"),
    ("The billing API version is 3.4.", "bill api version: 3.4"),
    ("Nora goes climbing on Mondays.", "nora day climb: monday"),
    ("The choir rehearsal moved to Friday.", "choir rehearsal day: friday!"),
    ("My wife moved to Rouen.", "@user wife move: rouen!"),
    ("My phone number is 555-0188.", "@user phone: 555-0188"),
    ("We decided to use Postgres for billing.", "@user choice bill: postgres!"),
    ("Ich wohne jetzt in Graz.", "@user home: graz!"),
    ("Ich arbeite nicht mehr bei Globex.", "not @user employer: globex!"),
    ("J'habite à Lyon.", "@user home: lyon"),
    ("Ahora trabajo en Globex.", "@user employer: globex!"),
    ("我现在住在成都。", "@user home: 成都!"),
]
SILENT = [
    "Do you live in Porto?",
    "If I lived in Porto I would swim daily.",
    "I might move to Graz.",
    "I want to move to Graz.",
    "Igor said he lives in Porto.",
    'The book begins with "I live in Porto."',
    "```\nI live in Porto\n```",
    "> I live in Porto",
    "She works at Globex.",
    "The train left.",
    "We talked about Porto.",
    "I wish I worked at Globex.",
    "Imagine I live in Porto.",
    "Losing my job was hard.",
    "My boss is nice.",
    "My car is broken.",
    "My phone is dead.",
    "My boss became a friend.",
    "I love having such a good time.",
    "",
    "???",
    "I",
]


@pytest.mark.parametrize(("text", "stated"), STATED)
def test_what_a_sentence_states(text: str, stated: str) -> None:
    assert " / ".join(map(short, statements(text))) == stated


@pytest.mark.parametrize("text", SILENT)
def test_what_is_not_stated_as_true_now_states_nothing(text: str) -> None:
    of_anybody = [one for one in statements(text) if one.subject != "train"]
    assert of_anybody == []


def test_first_person_means_the_named_speaker() -> None:
    assert [short(one) for one in statements("I live in Porto.", "Nora")] == ["nora home: porto"]


def test_a_statement_names_its_clause() -> None:
    text = "Well, I sing in a choir. I live in Porto and work at Globex."
    assert [text[one.start : one.end] for one in statements(text)] == [
        "I live in Porto",
        "work at Globex",
    ]
