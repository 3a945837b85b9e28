"""Two texts are the same exactly if their folded tokens are equal."""

import random
import re
import string
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.graph.canonical import canonical_key, canonical_meta, folded_tokens, normalize
from tests.campaign import first_of

SAME = {
    "case": [
        ("What is the weather in Oslo?", "what is the WEATHER in oslo?"),
        ("ÅRSTA ligger i Stockholm", "årsta ligger i stockholm"),
        ("STRASSE", "straße"),
        ("ΟΔΟΣ", "οδος"),
        ("İstanbul", "i̇stanbul"),
    ],
    "final punctuation": [
        ("When does the ferry leave?", "When does the ferry leave"),
        ("Remind me tomorrow.", "Remind me tomorrow!"),
        ("Really?!", "really"),
        ("Wait…", "wait..."),
        ("It costs 25.", "it costs 25"),
        ("Ça va ?", "ça va?"),
        ("东京在哪里？", "东京在哪里"),
        ("今日は暑い。", "今日は暑い"),
        ("متى يصل القطار؟", "متى يصل القطار"),
        ("¿Dónde está?", "dónde está"),
    ],
    "inner punctuation": [
        ("Hello, world", "hello world"),
        ("First: milk; then bread", "first milk then bread"),
        ('She said "yes" to it', "she said yes to it"),
        ("She said “yes” to it", "she said 'yes' to it"),
        ("„Ja“, sagte sie", "»Ja« sagte sie"),
        ("Is this (really) true?", "is this really true"),
        ("the train — the late one — left", "the train, the late one, left"),
        ("the train—the late one—left", "the train, the late one, left"),
        ("「東京」", "東京"),
        ("...and then?", "and then"),
        ("don’t go", "don't go"),
        ("a 5–10 km run", "a 5-10 km run"),
    ],
    "white space": [
        ("  two\twords \n", "two words"),
        ("two\u00a0words", "two words"),
        ("two\u3000words", "two words"),
        ("Bonjour ! ", "bonjour!"),
        ("ze\u200bro\ufeff", "zero"),
        ("co\u00adoperate", "cooperate"),
    ],
    "compatibility forms": [
        ("ｆｕｌｌ　ｗｉｄｔｈ　４２", "full width 42"),
        ("ﬁnal oﬃce", "final office"),
        ("Café", "Cafe\u0301"),
        ("5 ㎏", "5 kg"),
        ("①", "1"),
        ("Ⅳ", "iv"),
        ("I ❤️ it", "I ❤ it"),
        ("H₂O", "H2O"),
        ("−5 degrees", "-5 degrees"),
    ],
}

DIFFERENT = {
    "number": [
        ("Wake me at 7", "Wake me at 8"),
        ("3.5 hours", "35 hours"),
        ("3,5 hours", "35 hours"),
        ("it is -5 outside", "it is 5 outside"),
        (".5 mg", "5 mg"),
        ("1,000 rows", "1 000 rows"),
        ("10-12", "10 12"),
        ("10 – 12", "10 12"),
        ("2³ tiles", "23 tiles"),
        ("10₂", "102"),
        ("1½ cups", "11⁄2 cups"),
        ("version 1.10", "version 1.1"),
        ("(5)", "5"),
    ],
    "date": [
        ("meet on 2026-05-03", "meet on 2026-05-04"),
        ("meet on May 3", "meet on May 4"),
        ("meet on Monday", "meet on Tuesday"),
        ("at 9:30", "at 930"),
        ("12/05/2026", "12.05.2026"),
    ],
    "negation": [
        ("I eat meat", "I do not eat meat"),
        ("it can be done", "it can't be done"),
        ("never call me", "call me"),
        ("if ! grep foo", "if grep foo"),
        ("!ready", "ready"),
        ("with sugar", "without sugar"),
    ],
    "antonym": [
        ("turn the light on", "turn the light off"),
        ("I love it", "I hate it"),
        ("before lunch", "after lunch"),
    ],
    "name": [
        ("call Anna", "call Anne"),
        ("a flight to Paris", "a flight to Parma"),
        ("José is here", "Jose is here"),
        ("@anna", "anna"),
        ("#5", "5"),
    ],
    "code": [
        ("write it in C++", "write it in C"),
        ("write it in C#", "write it in C"),
        ("a == b", "a != b"),
        ("a==b", "a!=b"),
        ("x < y", "x > y"),
        ("a + b", "a - b"),
        ("foo()", "foo"),
        ("foo()", "foo(1)"),
        ("f(a, b) c", "f(a, b c)"),
        ("(a + b) * c", "a + (b * c)"),
        ("x[0]", "x[1]"),
        ("[x]", "x"),
        (".env", "env"),
        ("git add .", "git add"),
        ("cd ..", "cd ."),
        ("-v", "v"),
        ("--no-cache", "no-cache"),
        ("i++", "i--"),
        ("snake_case", "snakecase"),
        ("a/b", "a b"),
        ("main.py", "mainpy"),
        ('x = "5"', "x = 5"),
        ('x = "none"', "x = none"),
        (":wq", ":wq!"),
        ("$HOME", "HOME"),
        ("*.py", ".py"),
        ("f(...rest)", "f(rest)"),
    ],
    "unit and currency": [
        ("5%", "5"),
        ("$5", "€5"),
        ("5 km", "5 cm"),
        ("5°", "5"),
        ('5" screen', "5 screen"),
        ("5 kg", "5 g"),
    ],
    "emoji": [
        ("nice 👍", "nice 👎"),
        ("nice 👍", "nice"),
        (":)", ":("),
        ("great :)", "great"),
        ("👩‍💻", "👩💻"),
    ],
    "words": [
        ("well-known", "well known"),
        ("the dog bit the man", "the man bit the dog"),
        ("very very good", "very good"),
    ],
}


def pairs(table: dict[str, list[tuple[str, str]]]) -> list[object]:
    return [pytest.param(*pair, id=f"{kind}: {pair[0]}") for kind, found in table.items() for pair in found]


@pytest.mark.parametrize(("one", "other"), pairs(SAME))
def test_what_differs_only_in_how_it_is_written_is_the_same(one: str, other: str) -> None:
    assert folded_tokens(one) == folded_tokens(other)
    assert canonical_key(one) == canonical_key(other)


@pytest.mark.parametrize(("one", "other"), pairs(DIFFERENT))
def test_what_means_something_else_stays_apart(one: str, other: str) -> None:
    assert folded_tokens(one) != folded_tokens(other)
    assert canonical_key(one) != canonical_key(other)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("What's up, Doc? (Really.)", ["what's", "up", "doc", "really"]),
        ("foo(1, 2).", ["foo(1,", "2)"]),
        ("I said (to my sister), no.", ["i", "said", "(to", "my", "sister)", "no"]),
        ('a "chapter 5" b', ["a", "chapter", "5", "b"]),
        ("f' is 5' long", ["f'", "is", "5'", "long"]),
        ("2³ and 10¹²", ["2^3", "and", "10^12"]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_a_text_has_these_tokens(text: str, tokens: list[str]) -> None:
    assert folded_tokens(text) == tokens


@pytest.mark.parametrize("text", ["???", "!", "...", "—", "? !", "()", '"', "。", ".;"])
def test_a_text_of_nothing_but_punctuation_folds_to_itself(text: str) -> None:
    assert folded_tokens(text) == folded_tokens(f" {text} ") != []
    assert canonical_key(text) != canonical_key("")


MARKS = "aBz05 \t\n.,;:!?\"'()[]{}-–—=+*/<>|…“’«»¡¿。「」²½₂ßİ\u0301\u00a0\u200b😀xX#$%&@^~`_\\ς\ud800\x00"


@given(st.text(MARKS, max_size=16) | st.text(max_size=24))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)
    assert normalize(text).split() == folded_tokens(text)


def test_every_character_folds_to_what_stays() -> None:
    for code in (*range(0x20000), *range(0x2F800, 0x2FA20), *range(0xE0000, 0xE0200)):
        folded = normalize(f"5{chr(code)}a")
        assert normalize(folded) == folded, hex(code)


WORDS = st.lists(
    st.text(string.ascii_letters + "äøé", min_size=2, max_size=9) | st.from_regex(r"[0-9]{1,6}", fullmatch=True),
    min_size=1,
    max_size=12,
)


@given(WORDS, st.randoms(use_true_random=False))
def test_noise_in_case_space_and_punctuation_keeps_the_key(words: list[str], chance: random.Random) -> None:
    noisy = chance.choice(["", " ", "\n", "¿", "“"])
    for word in words:
        noisy += chance.choice([word, word.upper(), word.capitalize()])
        noisy += chance.choice(["", "", ",", ";", ":", "!", "?", "..."])
        # A dash after a number may be a range.
        noisy += chance.choice([" ", "  ", "\t", "\u00a0", " " if word.isdigit() else " — "])
    noisy = noisy.rstrip("\u00a0\t —") + chance.choice(["", ".", "?", "!", "?!", "…", " !", " ?"])
    assert canonical_key(noisy) == canonical_key(" ".join(words))


@given(st.text(MARKS + "1234567890", min_size=1, max_size=30), st.data())
def test_another_digit_is_another_key(text: str, data: st.DataObject) -> None:
    places = [match.start() for match in re.finditer("[0-9]", text)]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from([d for d in string.digits if d != text[place]]))
    assert canonical_key(text) != canonical_key(text[:place] + digit + text[place + 1 :])


def test_keys_and_their_meta_stay_what_they_are() -> None:
    assert canonical_meta() == {"norm_version": 1, "hash_algo": "blake2b-128", "seed": 0}
    assert canonical_key("What is the weather in Oslo?") == "7f5ee85bbe0ee4327c2d5f46191bc209"
    assert canonical_key("\ud800") != canonical_key("\udfff")


def test_the_key_is_the_same_in_another_process() -> None:
    program = "from kalito_mcp.graph.canonical import canonical_key; print(canonical_key('Wo ist die Straße?'))"
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == canonical_key("wo ist die strasse")


@pytest.mark.parametrize(
    "text",
    first_of(["word, (x) " * 100_000, "(" * 500_000 + ")" * 500_000, "'\"" * 500_000, "—5" * 400_000, ")'." * 300_000]),
)
def test_a_text_of_a_megabyte_folds(text: str) -> None:
    assert canonical_key(text) == canonical_key(f"{text} ")
