"""What is pinned automatically, and what must not be: the rules around what a sentence is."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.kinds import PASSING, Kind
from kalito_mcp.domain.records import PIN_IMPORTANCE, MessageWithImportance, Origin, PinType, Reach, Role
from kalito_mcp.inference.meaning import MeaningEmbedder
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.judged import CHANGED_FROM, PINNED_FROM, Judged, Sentence
from kalito_mcp.kinds.own import Own, Spoken
from kalito_mcp.pins.automatic import AutoPinPolicy, found_pins, pinnable, quotable
from kalito_mcp.pins.found import FoundPin, pin_key
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.text.own_words import passages

WORTH_IT = Judged(Kind.FACT, 0.9, 0.1)
NEVER = Judged(Kind.FACT, 0.0, 0.1)
PORT = "Our API runs on port 8080."


def message(
    text: str, role: Role = Role.USER, name: str | None = None, origin: Origin = Origin.USER
) -> MessageWithImportance:
    return MessageWithImportance(1, "s", role, text, None, None, 0, 0.5, 1, 0, name, origin=origin)


def sentences_of(said: MessageWithImportance) -> list[Sentence]:
    """The sentences of a message of which pins are made; of a person's, none asks to keep anything."""
    if said.role is Role.ASSISTANT:
        return quotable(said)
    found, is_all = passages(said.text[:20_000])
    return pinnable(said, Own([Spoken(one, NEVER) for one in found], is_all))


def whole(text: str, role: Role = Role.USER, name: str | None = None) -> list[str]:
    """The sentences of a message that may be pinned."""
    return [one.text for one in sentences_of(message(text, role, name))]


def pins(
    said: MessageWithImportance | str,
    *judged: Judged,
    policy: AutoPinPolicy | None = None,
    proposal: str | None = None,
    has_project: bool = False,
) -> list[FoundPin]:
    """What is pinned of a message whose sentences are these; of less, all are like the last."""
    said = message(said) if isinstance(said, str) else said
    sentences = sentences_of(said)
    each = [*judged, *[(judged or (WORTH_IT,))[-1]] * len(sentences)][: len(sentences)]
    proposed = {} if proposal is None else {0: proposal}
    return found_pins(said, sentences, each, policy or AutoPinPolicy(), proposed=proposed.get, has_project=has_project)


def contents(said: MessageWithImportance | str, *judged: Judged, **given: str) -> list[str]:
    return [pin.content for pin in pins(said, *judged, **given)]  # type: ignore[arg-type]


@pytest.fixture
async def model(meaning_installed: None) -> AsyncIterator[SentenceJudge]:
    embedder = MeaningEmbedder(VectorPolicy())
    yield SentenceJudge(embedder)
    await embedder.aclose()


async def judged_pins(model: SentenceJudge, text: str) -> list[FoundPin]:
    said = message(text)
    sentences = sentences_of(said)
    return found_pins(said, sentences, await model.judge(sentences))


@pytest.mark.anyio
async def test_the_model_finds_key_facts_dates_and_decisions(model: SentenceJudge) -> None:
    """memory-manager-reference, Future Enhancements 1: key facts, dates, decisions."""
    for text, kind in (
        (PORT, Kind.FACT),
        ("We use Postgres 16 for billing.", Kind.FACT),
        ("My mother was diagnosed with asthma in 2019.", Kind.FACT),
        ("Appointment Nov 5 at 10am", Kind.PLAN),
        ("My flight leaves on 12 June at 6:45.", Kind.PLAN),
        ("We decided to go with fromisoformat.", Kind.DECISION),
        ("Never log customer emails.", Kind.RULE),
        ("We switched from MySQL to PostgreSQL.", Kind.DECISION),
        ("Die Produktionsdatenbank läuft auf Port 5433.", Kind.FACT),
    ):
        [pin] = await judged_pins(model, text)
        assert (pin.content, pin.pin_type, pin.kind) == (text, PinType.AUTO, kind)


@pytest.mark.anyio
async def test_the_model_finds_nothing_in_small_talk(model: SentenceJudge) -> None:
    for text in (
        "Wow, that's great! I'm so happy for you and your family, you deserve it.",
        "Thanks, Caroline! It was wonderful to see how the audience reacted, I will always remember it.",
        "Never give up!",
        "Is it a problem that this is a bit late? No worries at all.",
        "That's why I love sailing!",
        "Danke, das sieht gut aus.",
    ):
        assert await judged_pins(model, text) == [], text


def test_what_is_worth_it_is_pinned_with_its_kind() -> None:
    for kind in [kind for kind in Kind if kind not in PASSING]:
        least = CHANGED_FROM if kind is Kind.CHANGE else PINNED_FROM
        [pin] = pins(PORT, Judged(kind, least, 0.1))
        assert (pin.content, pin.pin_type, pin.kind, pin.client_key) == (PORT, PinType.AUTO, kind, pin_key(PORT))
        assert pins(PORT, Judged(kind, least - 0.01, 0.1)) == []
        assert contents(f"{PORT} our API runs on port 8080!") == [PORT], "said twice, pinned once"
        assert pins(PORT, policy=AutoPinPolicy(enabled=False)) == []


def test_the_most_worth_two_of_a_message_stay_in_their_order() -> None:
    text = "I live in Oslo. We decided to move in May. I prefer trains. I'm allergic to nuts."
    judged = [Judged(Kind.FACT, worth, 0.5) for worth in (0.7, 0.8, 0.75, 0.95)]
    assert contents(text, *judged) == ["We decided to move in May.", "I'm allergic to nuts."]
    assert contents(text) == ["I live in Oslo.", "We decided to move in May."]  # ties
    four = pins(text, *judged, policy=AutoPinPolicy(max_per_message=4))
    assert [pin.content for pin in four] == text.replace(". ", ".\n").split("\n")


def test_the_surest_is_less_important_than_a_pin_that_somebody_asked_for() -> None:
    """memory-manager-reference, SemanticPin: manual pins have 0.8."""
    for kind in set(Kind) - PASSING:
        [least], [most] = pins(PORT, Judged(kind, PINNED_FROM, 0)), pins(PORT, Judged(kind, 1.0, 0))
        assert 0.6 <= least.importance < most.importance < PIN_IMPORTANCE


@pytest.mark.parametrize(
    "text",
    [
        "My name is ann and my password is hunter2.",
        "Our API runs on port 8080 with the token abc123def.",
        "This works:\n```python\ndef connect():\n    api_key = 'sk-123456789012'\n```",
    ],
)
def test_what_may_carry_a_secret_is_not_pinned(text: str) -> None:
    assert pins(text) == []


def test_what_asks_announces_or_is_too_short_is_never_pinned() -> None:
    for text in (
        "Is my sister Ann living in Oslo?",
        "Should we always go with Postgres?",
        "我们应该用这个数据库吗？",
        "هل نستخدم قاعدة البيانات هذه؟",
        "Our final version, with all of its options:",
        "ok, yes",
        "",
    ):
        assert whole(text) == []


def test_quotations_are_not_pinned() -> None:
    for text in (
        "> I'm allergic to penicillin.",
        "“My name is Ann” was the title of the play.",
        "She said: “Never push to main.",
        "„Ab jetzt nur noch Deutsch.“",
        "「今後は日本語で答えて」",
    ):
        assert whole(text) == []


def test_what_a_request_states_first_is_pinned_without_the_request() -> None:
    assert whole("I'm allergic to peanuts, can you suggest a dessert?") == ["I'm allergic to peanuts…"]


def test_only_prose_is_read_for_sentences() -> None:
    assert whole("It runs:\n```sh\n# we decided to use make\nmake all of it\n```\nWe deploy on Tuesdays.") == [
        "We deploy on Tuesdays."
    ]


def test_who_may_say_what_is_pinned() -> None:
    assert [one.is_assistant for one in quotable(message(PORT, Role.ASSISTANT))] == [True]
    assert [one.is_assistant for one in quotable(message(PORT, Role.ASSISTANT, "Ben"))] == [False]
    assert whole(PORT, Role.SYSTEM) == []
    for origin in (Origin.TOOL, Origin.DOCUMENT, Origin.IMPORT):
        assert (
            sentences_of(message(PORT, origin=origin)) == quotable(message(PORT, Role.ASSISTANT, origin=origin)) == []
        )


def test_the_name_of_the_speaker_is_part_of_the_pin() -> None:
    [ann] = pins(message("I live in Oslo.", name="Ann"))
    [ben] = pins(message("I live in Oslo.", name="Ben \n B."))
    assert (ann.content, ben.content) == ("Ann: I live in Oslo.", "Ben B.: I live in Oslo.")
    assert ann.client_key != ben.client_key


def test_a_day_that_is_named_by_another_has_its_date_behind_it() -> None:
    said = MessageWithImportance(1, "s", Role.USER, "The report is due tomorrow.", None, None, 86_400_000, 0.5, 1, 0)
    assert contents(said) == ["The report is due tomorrow (1970-01-03)."]


DECISION = Judged(Kind.DECISION, 0.9, 0.1)


def test_a_short_decision_of_the_person_comes_with_what_was_proposed() -> None:
    agreed, proposal = "Agreed, but 4 attempts.", "Retry three times, then give up."
    assert contents(agreed, DECISION, proposal=proposal) == [f"{agreed} (to: {proposal})"]
    assert contents(agreed, WORTH_IT, proposal=proposal) == [agreed]
    assert contents(message(agreed, Role.ASSISTANT), DECISION, proposal=proposal) == [agreed]
    long = f"We decided to retry four times, because the third was too early in {'very ' * 9}many cases."
    assert contents(long, DECISION, proposal=proposal) == [long]


def test_what_may_contain_a_secret_is_not_quoted_beside_a_decision() -> None:
    assert contents("Agreed, go with that", DECISION, proposal="The password otter9 is for the deploys.") == [
        "Agreed, go with that"
    ]


def test_a_question_may_be_quoted_and_is_never_pinned() -> None:
    asked = message("Good. Which port shall the staging database have?", Role.ASSISTANT)
    assert [one.text for one in quotable(asked)] == ["Which port shall the staging database have?"]
    assert found_pins(asked, quotable(asked), [WORTH_IT]) == []


def test_what_says_nothing_or_announces_something_is_not_quoted() -> None:
    for text, quoted in (
        ("Done.", []),
        ("Ok?", []),
        ("Here is the whole plan:\n```py\nx = 1\n```", []),
        ("以下是计划：", []),
        ("用哪个数据库？", ["用哪个数据库？"]),
    ):
        assert [one.text for one in quotable(message(text, Role.ASSISTANT))] == quoted


def test_a_pin_reaches_as_far_as_its_sentence() -> None:
    [mine] = pins(PORT, Judged(Kind.FACT, 0.9, 0.9), has_project=True)
    [ours] = pins(PORT, has_project=True)
    [outcome] = pins(PORT, Judged(Kind.OUTCOME, 0.9, 0.9), has_project=True)
    assert (mine.reach, ours.reach, outcome.reach) == (Reach.PERSON, Reach.PROJECT, Reach.SESSION)


CODE = "```python\nimport re\n\ndef parse_date(text):\n    return text.strip()\n```"


def test_code_that_works_or_is_final_is_pinned_by_its_first_lines() -> None:
    for prose in ("This works: ", "Our final version: ", "Keep this one. ", "It finally works now! "):
        [pin] = pins(f"{prose}\n{CODE}\nDone.", NEVER)
        assert pin.content == "python: def parse_date(text):\n    return text.strip()"
        assert (pin.pin_type, pin.reach, pin.kind) == (PinType.CODE, Reach.SESSION, None)
        assert contents(f"{prose}\n```sh\nmake migrate ENV=staging\n```", NEVER) == ["sh: make migrate ENV=staging"]


def test_code_in_the_making_is_not_pinned() -> None:
    for prose, role in (
        ("Here it is:", Role.USER),
        ("This works, but it fails for May.", Role.USER),
        ("Is this the final version?", Role.USER),
        ("This works, can you help me with the tests?", Role.USER),
        ("Here is the final version:", Role.ASSISTANT),
    ):
        assert pins(message(f"{CODE}\n{prose}", role), NEVER) == []


def test_a_sentence_that_only_says_which_code_is_not_pinned_next_to_it() -> None:
    said = f"Keep this one for all releases.\n{CODE}\nWe release on Tuesdays."
    assert contents(said) == ["We release on Tuesdays.", "python: def parse_date(text):\n    return text.strip()"]


def test_a_code_block_without_a_definition_is_not_pinned() -> None:
    for code in ("x = 1\nprint(x)", "pip install kalito", "", "# Class of 2020"):
        assert contents(f"```sh\n{code}\n```") == []


def test_code_that_differs_in_one_sign_has_another_key() -> None:
    keys = {
        pins(f"This works:\n```python\ndef same(a, b):{space}return a {sign} b\n```", NEVER)[0].client_key
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


def test_another_number_negation_or_name_has_another_key() -> None:
    for one, other in (
        ("Our API runs on port 8080.", "Our API runs on port 8081."),
        ("I eat pork.", "I don't eat pork."),
        ("It is 5 degrees.", "It is -5 degrees."),
        ("It costs 10.5.", "It costs 105."),
        ("We use C++.", "We use C#."),
        ("My sister Ann lives in Oslo.", "My sister Anna lives in Oslo."),
        ("The deadline is 2026-03-01.", "The deadline is 2026-01-03."),
    ):
        assert pin_key(one) != pin_key(other)


_WORDS = (
    "I my sister Ann lives in Oslo we decided to use port 8080 . , ? allergic from now on May 3 10am ``` def f(x): \n"
).split(" ")
_JUDGED = st.builds(Judged, st.sampled_from([kind for kind in Kind if kind not in PASSING]), *[st.floats(0, 1)] * 2)


@given(
    text=st.one_of(st.text(max_size=300), st.lists(st.sampled_from(_WORDS), max_size=60).map(" ".join)),
    role=st.sampled_from(Role),
    judged=st.lists(_JUDGED, max_size=20),
    proposal=st.none() | st.text(max_size=140),
    max_chars=st.integers(1, 240),
)
def test_a_pin_keeps_to_its_length_its_number_and_its_importance(
    text: str, role: Role, judged: list[Judged], proposal: str | None, max_chars: int
) -> None:
    policy = AutoPinPolicy(max_chars=max_chars)
    found = pins(message(text, role), *judged, policy=policy, proposal=proposal)
    assert len(found) <= policy.max_per_message
    assert len({pin.client_key for pin in found}) == len(found)
    for pin in found:
        assert 0 < len(pin.content) <= (policy.max_code_chars if pin.pin_type is PinType.CODE else max_chars)
        assert 0.55 <= pin.importance < PIN_IMPORTANCE
    assert found == pins(message(text, role), *judged, policy=policy, proposal=proposal)


def test_of_a_quarter_of_a_megabyte_a_bounded_piece_is_judged() -> None:
    """A text of this length that was read more often than once would take minutes."""
    for unit in ("my best sister ", "I decided to use X1. ", "We have all ", "I'm A", "By a ", "Always a", "```", '"'):
        text = unit * (262_144 // len(unit))
        assert len(sentences_of(message(text))) <= 80
        assert len(pins(text)) <= 2
    assert whole(f"{'x' * 20_000}. {PORT}") == whole("x" * 20_000)
