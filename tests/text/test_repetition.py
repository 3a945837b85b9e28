"""A repetition is recognised by its words; short, asking and other sentences are not."""

import time

import pytest

from kalito_mcp.domain.records import RecordType
from kalito_mcp.text.look_alikes import compact
from kalito_mcp.text.repetition import key_of_identifier, keys_of, keys_stated, keys_to_forget, repeats
from kalito_mcp.text.subject import parse_subject
from tests.campaign import first_of

MESSAGE = RecordType.MESSAGE


def test_compact_keeps_letters_marks_and_digits_as_they_look() -> None:
    for text, key in (
        ("Straße 5", "strasse5"),
        ("ＡＢＣ-①", "abc1"),
        ("Ольга", "oльгa"),
        ("Café", "cafe"),
        ("na\u00efve\u200d", "naive"),
        ("वह 5", "वह5"),
        ("…!?", ""),
    ):
        assert compact(text) == key


def test_what_says_little_or_asks_is_not_kept_note_of() -> None:
    for text in ("Ok.", "Thanks!", "Where did we put the red boat in May?", "Is Anna Berg here now? Where?"):
        assert keys_to_forget(text, MESSAGE) == frozenset()


def test_sentences_are_kept_note_of_if_they_name_something() -> None:
    keys = keys_to_forget("Hi there! My sister lives in Bodø. I hope that this helps you a lot.", MESSAGE)
    assert keys == {
        compact("Hi there! My sister lives in Bodø. I hope that this helps you a lot."),
        "mysisterlivesinbodø",
    }
    assert keys.isdisjoint(keys_of("I hope that this helps you a lot."))
    assert not keys.isdisjoint(keys_of("Well, well. MY SISTER LIVES IN BODØ!"))
    assert keys_to_forget("Boat: Nina", RecordType.PIN) == {"boatnina"}, "a pin is a fact, however short"
    german = "Gut. Sag mir einfach, wenn du noch eine Frage hast. Bis bald."
    assert keys_to_forget(german, MESSAGE) == {compact(german)}, "its nouns are no names"


def test_what_is_asked_or_to_be_forgotten_is_not_stated() -> None:
    key = key_of_identifier("471-22-9036")
    assert key in keys_stated("My badge is 471229036.")
    assert key in keys_stated("My badge is 471229036. Is that fine?")
    assert key in keys_stated("We delete 471-22-9036 on Mondays.")
    for text in (
        "Could you erase 471229036",
        "Well, forget 471229036!",
        "Is it 471229036?",
        "Please forget 471-22-9036.",
        "Hi. Delete my badge 471 22 9036. Thanks.",
    ):
        assert key in keys_of(text)
        assert key not in keys_stated(text)


@pytest.mark.parametrize(
    "part", first_of(["? ", "?", "1 ", "1-", "a@", "(1)", "please ", "Oslo. ", "\u0430", "\u200b", "\n", "I' "])
)
def test_long_texts_take_linear_time(part: str) -> None:
    def seconds(length: int) -> float:
        text = (part * length)[:length] + "x"
        started = time.process_time()
        keys_of(text), keys_stated(text), keys_to_forget(text, MESSAGE), parse_subject("Mia oboe").is_in(text)
        return time.process_time() - started

    seconds(1_000)
    assert seconds(100_000) < max(20 * seconds(20_000), 1.0)


def test_most_words_in_their_order_are_a_repetition() -> None:
    for text, other, is_repeated in (
        ("We deploy on Tuesdays.", "Log: WE  DEPLOY on Tuesdays, at nine", True),
        ("The user said: we deploy on Tuesdays at nine", "We deploy on Tuesdays at nine.", True),
        ("We ship the blue box on Tuesdays at nine.", "We ship the red box on Tuesdays at nine.", True),
        ("We never ship on Mondays, only on Tuesdays.", "We ship the red box on Tuesdays at nine.", False),
        ("On Tuesdays.", "We deploy on Tuesdays.", False),
        ("", "We deploy on Tuesdays.", False),
    ):
        assert repeats(text, other) is is_repeated
