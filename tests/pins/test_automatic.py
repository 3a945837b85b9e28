"""What is pinned automatically, and what must not be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import PIN_IMPORTANCE, MessageWithImportance, PinType, Role
from kalito_mcp.pins.automatic import AutoPinPolicy, find_pins
from kalito_mcp.pins.found import pin_key
from kalito_mcp.pins.rules import IMPORTANCE, PinKind


def _message(text: str, role: Role = Role.USER, name: str | None = None) -> MessageWithImportance:
    return MessageWithImportance(1, "s", role, text, None, None, 0, 0.5, 1, 0, name)


def _contents(text: str, role: Role = Role.USER, name: str | None = None) -> list[str]:
    return [pin.content for pin in find_pins(_message(text, role, name))]


@pytest.mark.parametrize(
    "text",
    [
        "My sister Ann lives in Oslo.",
        "I'm allergic to penicillin.",
        "Patient allergic to penicillin",
        "My mother was diagnosed with asthma in 2019.",
        "She takes Lisinopril 10mg every morning.",
        "My name is Priya Natarajan.",
        "I'm Christina, a colour technologist.",
        "I live in Bergen with my husband.",
        "I'm originally from Sweden.",
        "I work as a nurse in the city hospital.",
        "I have two kids and a dog.",
        "I lost my job as a banker in March.",
        "My dog is called Rex.",
        "Our API runs on port 8080.",
        "The production database is hosted on Hetzner.",
        "We use Postgres 16 for billing.",
        "My email is ann@example.org",
    ],
)
def test_facts_about_the_user_and_theirs_are_pinned(text: str) -> None:
    """memory-manager-reference, Future Enhancements 1: key facts."""
    (pin,) = find_pins(_message(text))
    assert (pin.content, pin.pin_type) == (text, PinType.AUTO)


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Chen on November 5 at 10am",
        "Appointment Nov 5 at 10am",
        "The deadline is 2026-03-01.",
        "My flight leaves on 12 June at 6:45.",
        "The report is due by Friday at 17:00.",
    ],
)
def test_dates_and_appointments_are_pinned(text: str) -> None:
    """memory-manager-reference, Future Enhancements 1: dates; Hybrid Memory System, pins of the drawing."""
    assert _contents(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "We decided to go with fromisoformat.",
        "We've finally agreed on monthly calls.",
        "Let's go with the blue design.",
        "We'll stick with Python 3.11 for now.",
        "I've decided not to renew the lease.",
        "The final decision is to ship on Monday.",
        "We switched from MySQL to PostgreSQL.",
    ],
)
def test_decisions_are_pinned(text: str) -> None:
    """memory-manager-reference, Future Enhancements 1: decisions."""
    assert _contents(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "I prefer tea to coffee.",
        "Please always answer in French.",
        "Always use metric units.",
        "Don't use semicolons in the examples.",
        "Never log customer emails.",
        "From now on, call me Sam.",
        "I don't eat pork.",
        "I no longer want bullet points.",
        "My favourite composer is Sibelius.",
    ],
)
def test_preferences_are_pinned(text: str) -> None:
    assert _contents(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "By a window we mean fifteen messages.",
        "A webhook is a callback that the server makes over HTTP.",
        "Idempotency Key is a header that makes a retry harmless.",
        "WAL stands for write-ahead log.",
    ],
)
def test_a_user_s_definitions_are_pinned_as_concepts_and_an_assistant_s_lessons_are_not(text: str) -> None:
    (pin,) = find_pins(_message(text))
    assert (pin.content, pin.pin_type) == (text, PinType.CONCEPT)
    assert find_pins(_message(text, Role.ASSISTANT)) == []


CODE = "```python\nimport re\n\ndef parse_date(text):\n    return text.strip()\n```"


@pytest.mark.parametrize(
    "prose",
    ["This works: ", "Our final version: ", "Keep this one. ", "It finally works now! "],
)
def test_code_that_works_or_is_final_is_pinned_by_its_first_lines(prose: str) -> None:
    (pin,) = find_pins(_message(f"{prose}\n{CODE}\nDone."))
    assert pin.content == "python: def parse_date(text):\n    return text.strip()"
    assert pin.pin_type is PinType.CODE


@pytest.mark.parametrize(
    ("prose", "role"),
    [
        ("Here it is:", Role.USER),
        ("This works, but it fails for May.", Role.USER),
        ("Is this the final version?", Role.USER),
        ("This works, can you help me with the tests?", Role.USER),
        ("Here is the final version:", Role.ASSISTANT),
    ],
)
def test_code_in_the_making_is_not_pinned(prose: str, role: Role) -> None:
    assert find_pins(_message(f"{CODE}\n{prose}", role)) == []


def test_a_command_that_worked_is_pinned() -> None:
    assert _contents("This works:\n```sh\nmake migrate ENV=staging\n```") == ["sh: make migrate ENV=staging"]
    assert _contents("`npm ci --force` fixed it.") == ["`npm ci --force` fixed it."]


@pytest.mark.parametrize("code", ["x = 1\nprint(x)", "pip install kalito", "", "# Class of 2020"])
def test_a_code_block_without_a_definition_is_not_pinned(code: str) -> None:
    assert _contents(f"```sh\n{code}\n```") == []


@pytest.mark.parametrize(
    "text",
    [
        "Is my sister Ann living in Oslo?",
        "Am I allergic to penicillin?",
        "Should we go with Postgres?",
        "What is the deadline, 2026-03-01?",
    ],
)
def test_questions_are_not_pinned(text: str) -> None:
    assert _contents(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "If I lived in Oslo, my sister Ann lives in Bergen then.",
        "Maybe we'll switch to Postgres.",
        "I'm not sure, but I think we agreed on Monday.",
        "Suppose our API runs on port 8080.",
        "I wish my name was Ann, but my name is Bob.",
        "We could say we decided to ship.",
    ],
)
def test_hypotheticals_and_doubts_are_not_pinned(text: str) -> None:
    assert _contents(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "> I'm allergic to penicillin.",
        'The form reads "I am allergic to penicillin" at the top.',
        "She said that I'm allergic to penicillin.",
        "“My name is Ann” was the title of the play.",
    ],
)
def test_quoted_and_reported_speech_is_not_pinned(text: str) -> None:
    assert _contents(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "We haven't decided on a database.",
        "We never agreed to that price.",
        "I'm not allergic to penicillin.",
        "We won't go with the blue design.",
        "I did not decide to leave.",
    ],
)
def test_negated_commitments_are_not_pinned(text: str) -> None:
    assert _contents(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Wow, that's great! I'm so happy for you and your family, you deserve it.",
        "Thanks, Caroline! It was wonderful to see how the audience reacted, I will always remember it.",
        "Never give up!",
        "My mom is a great support for me.",
        "Let's go with the flow.",
        "Is it a problem that this is a bit late? No worries at all.",
        "Remember that time when we missed the train?",
        "I love helping the neighbours and making the street a better place.",
        "That's why I love sailing!",
        "My goal is to get conversations going.",
        "I just participated in a parade for veterans and it was awesome.",
        "I had to reschedule my writing session from April 6 to April 8.",
        "I'm trying to balance my time between interviews and a workshop on May 3.",
        "I'm using Bootstrap for the styling, and I've added a class to the inputs.",
        "I no longer want to go there.",
        "I no longer like it.",
        "We switched from one bus to another.",
    ],
)
def test_small_talk_is_not_pinned(text: str) -> None:
    assert _contents(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "My name is ann and my password is hunter2.",
        "Our API runs on port 8080 with the token abc123def.",
        "```python\ndef connect():\n    api_key = 'sk-123456789012'\n```",
    ],
)
def test_what_may_carry_a_secret_is_not_pinned(text: str) -> None:
    assert _contents(text) == []


def test_an_assistant_is_not_believed_about_the_user() -> None:
    assert _contents("I live in Oslo. My sister Ann lives in Bergen. I prefer tea.", Role.ASSISTANT) == []
    assert _contents("We decided to use Postgres.", Role.ASSISTANT) == ["We decided to use Postgres."]
    assert _contents("We decided to use Postgres.", Role.SYSTEM) == []


def test_the_name_of_the_speaker_is_part_of_the_pin() -> None:
    assert _contents("I live in Oslo.", name="Ann") == ["Ann: I live in Oslo."]
    (ann,) = find_pins(_message("I live in Oslo.", name="Ann"))
    (ben,) = find_pins(_message("I live in Oslo.", name="Ben"))
    assert ann.client_key != ben.client_key


def test_what_a_request_states_first_is_pinned_without_the_request() -> None:
    assert _contents("I'm allergic to peanuts, can you suggest a dessert?") == ["I'm allergic to peanuts…"]


def test_the_most_important_two_of_a_message_stay_in_their_order() -> None:
    text = "I live in Oslo. We decided to move in May. I prefer trains. I'm allergic to nuts."
    assert _contents(text) == ["We decided to move in May.", "I'm allergic to nuts."]
    pins = find_pins(_message(text), AutoPinPolicy(max_per_message=4))
    assert [pin.content for pin in pins] == text.replace(". ", ".\n").split("\n")


def test_switched_off_it_finds_nothing() -> None:
    assert find_pins(_message("I'm allergic to nuts."), AutoPinPolicy(enabled=False)) == []


def test_every_kind_is_less_important_than_a_pin_that_somebody_asked_for() -> None:
    """memory-manager-reference, SemanticPin: manual pins have 0.8."""
    assert set(IMPORTANCE) == set(PinKind)
    assert all(0.55 <= score <= 0.78 < PIN_IMPORTANCE for score in IMPORTANCE.values())


def test_code_that_differs_in_one_sign_has_another_key() -> None:
    keys = {
        find_pins(_message(f"This works:\n```python\ndef same(a, b):{space}return a {sign} b\n```"))[0].client_key
        for sign, space in (("==", "\n    "), ("!=", "\n    "), ("==", "\n\n\t"))
    }
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Oslo.", "i live in oslo"),
        ("I live in Oslo.", "I  live\nin Oslo!!"),
        ("I don't eat pork", "I don’t eat pork."),
    ],
)
def test_the_same_fact_said_twice_has_one_key(one: str, other: str) -> None:
    assert pin_key(one) == pin_key(other)
    assert pin_key(one).startswith("auto:")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Our API runs on port 8080.", "Our API runs on port 8081."),
        ("I eat pork.", "I don't eat pork."),
        ("It is 5 degrees.", "It is -5 degrees."),
        ("It costs 10.5.", "It costs 105."),
        ("We use C++.", "We use C#."),
        ("My sister Ann lives in Oslo.", "My sister Anna lives in Oslo."),
        ("The deadline is 2026-03-01.", "The deadline is 2026-01-03."),
    ],
)
def test_another_number_negation_or_name_has_another_key(one: str, other: str) -> None:
    assert pin_key(one) != pin_key(other)


def test_the_key_is_the_same_in_every_process() -> None:
    assert pin_key("I live in Oslo.") == "auto:01146b49a9d2a100d11c8f69a49c0d0c"


_WORDS = (
    "I my sister Ann lives in Oslo we decided to use port 8080 . , ? allergic from now on May 3 10am ``` def f(x): \n"
).split(" ")


@given(
    text=st.one_of(st.text(max_size=300), st.lists(st.sampled_from(_WORDS), max_size=60).map(" ".join)),
    role=st.sampled_from(Role),
    max_chars=st.integers(1, 240),
)
def test_a_pin_keeps_to_its_length_its_number_and_its_importance(text: str, role: Role, max_chars: int) -> None:
    policy = AutoPinPolicy(max_chars=max_chars)
    pins = find_pins(_message(text, role), policy)
    assert len(pins) <= policy.max_per_message
    assert len({pin.client_key for pin in pins}) == len(pins)
    for pin in pins:
        assert 0 < len(pin.content) <= max_chars
        assert 0.55 <= pin.importance < PIN_IMPORTANCE
    assert pins == find_pins(_message(text, role), policy)


def test_a_quarter_of_a_megabyte_is_read_in_linear_time() -> None:
    for unit in ("my best sister ", "I decided to use X1. ", "We have all ", "I'm A", "By a ", "Always a", "```", '"'):
        text = unit * (262_144 // len(unit))
        assert len(find_pins(_message(text))) <= 2
