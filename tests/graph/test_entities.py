"""The entities of a text: as they are written, no ordinary words, and only from texts of limited length."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.graph.entities import entities
from tests.campaign import first_of
from tests.graph.labelled_entities import HELD_OUT, TUNED, Labelled

HOSTILE_LENGTH: Final = 256 * 1024
HOSTILE: Final = [
    "A", "Aa ", "a.", "/a", "`", "`a", "```a` ", "\n", "**a\n", "# A\n", "a@", "a@b. ", "https://", ")", "Aa of the ",
    "_", "a'", "A'", "A-a", "A. ", "AA ", "#a", "--a-", "a-.", "a.b_c/", "a.com", "~/", "C:\\", "(((", "Д:", "月",
    "\ud800",
]  # fmt: skip
SENTENCES: Final = st.lists(
    st.sampled_from(
        ["Anna", "Keller", "the", "of", "Oslo", "getName", "a_b", "x.py", "`x y`", "May", "3", "#tag", "@joe", "API",
         "https://a.io/b", "a@b.org", ".", "!", "\n", "Great", ":", "**", "- ", "(", ")", "IT'S", "NOT"]
    ),
    max_size=60,
).map(" ".join)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Anna Keller in Oslo", ["Anna Keller", "Oslo"]),
        ("from Peter McDonald, Sean O'Brien and Jean-Luc", ["Peter McDonald", "Sean O'Brien", "Jean-Luc"]),
        ("with Willem van der Berg at the Bank of Norway", ["Willem van der Berg", "Bank of Norway"]),
        ("with Åsa, Émile and Łukasz", ["Åsa", "Émile", "Łukasz"]),
        ("we use Visual Studio Code and PostgreSQL", ["Visual Studio Code", "PostgreSQL"]),
        ("the SQL of those two APIs, ok? I am OK", ["SQL", "API"]),
        ("with Anna's dog and James’s cat", ["Anna", "James"]),
        ("by Dr. Weber and J. R. Tolkien", ["Weber", "J. R. Tolkien"]),
        ("Hey Anna! Yesterday James left. Visiting New York", ["Anna", "James", "New York"]),
        ("Кто видел Ивана?", ["Ивана"]),
        ("私はGitHubを使う", ["GitHub"]),
    ],
)
def test_a_run_of_capitalised_words_is_one_name(text: str, expected: list[str]) -> None:
    assert list(entities(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Lovely weather. Book a table! Running late: see you on Monday, in May or on Tuesdays",
        "- Milk\n- Eggs\n* Coffee\n1. Bread",
        "Tests are failing. Gorgeous! “Nothing new,” she said. I don't know.",
        "PLEASE CALL ME BACK. This is NOT ok, LOL",
        "## Next Steps\n**Key Points**: none\n1. **Clear Goals:** none",
        "",
        " \n\t",
        "!?… 👍 \x00 \ud800",
    ],
)
def test_a_capital_that_its_place_demands_names_nothing(text: str) -> None:
    assert entities(text) == ()


def test_a_word_that_opens_a_sentence_is_a_name_where_mid_sentence_has_it_too() -> None:
    assert entities("Lisbon is sunny.") == ()
    assert entities("Lisbon is sunny. I love Lisbon.") == ("Lisbon",)
    assert entities("GitHub is down.") == ("GitHub",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in src/app/main.py, ./run.sh and ../x", "src/app/main.py|./run.sh|../x"),
        ("see C:\\x\\y.txt or ~/.ssh/config.", "C:\\x\\y.txt|~/.ssh/config"),
        ("report.pdf, .env and /etc/hosts", "report.pdf|.env|/etc/hosts"),
        ("call get_name, getName and MemoryManager.flush()", "get_name|getName|MemoryManager.flush"),
        ("a MAX_SIZE KeyError --no-cache in C#", "MAX_SIZE|KeyError|--no-cache|C#"),
        ("run `npm test & x` or foo() or `x y`", "npm test & x|foo|x y"),
        ("(https://a.org/wiki/Oslo_(city)), www.x.org!", "https://a.org/wiki/Oslo_(city)|www.x.org"),
        ("docs.python.org/3 and ftp://h/f; `https://a.b/c`", "docs.python.org/3|ftp://h/f|https://a.b/c"),
        ("mail jan.novak+x@example.co.uk.", "jan.novak+x@example.co.uk"),
        ("#running with @joe_k, (#über-uns)", "#running|@joe_k|#über-uns"),
    ],
)
def test_a_file_an_address_a_tag_or_code_is_kept_as_written(text: str, expected: str) -> None:
    assert "|".join(entities(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "version 3.5 or v1.2.3, e.g. and i.e. at 7:30 a.m., 24/7 and/or km/h, on 13/05/2026 or 2026-05-03",
        "issue #1, colours #fff and #ff8800, &#x27; a#b",
        "_really_ **bold** great.thanks text(s) well--known -v //x",
        "wait... what?! http:// www. @ # ` ``",
    ],
)
def test_text_that_only_looks_like_a_file_a_tag_or_code_is_no_entity(text: str) -> None:
    assert entities(text) == ()


def test_fenced_code_is_not_read() -> None:
    assert entities("we asked Anna:\n```python\nimport Foo\nuse_it(open('a.txt'))\n```\nand Bob") == ("Anna", "Bob")
    assert entities("we asked Anna:\n```\nuse_it()") == ("Anna",)


def test_each_thing_comes_once_in_order_of_first_appearance() -> None:
    assert entities("I like Oslo and #oslo, and x.py of OSLO, so Oslo and Bergen") == (
        "Oslo",
        "#oslo",
        "x.py",
        "Bergen",
    )


def test_what_is_longer_than_a_name_can_be_is_left_out() -> None:
    assert entities(f"see https://a.io/{'x' * 200} `{'y' * 200}` {'a_b' * 60} x_y") == ("x_y",)
    assert entities("so " + "Aa " * 7) == ()


@pytest.mark.parametrize("unit", first_of(HOSTILE))
def test_a_hostile_text_of_256_kb_is_read_to_its_limit(unit: str) -> None:
    text = (unit * HOSTILE_LENGTH)[:HOSTILE_LENGTH]
    for one in (text, f"({text}"):
        assert entities(one) == entities(one[:20_000])


@given(st.text(max_size=200) | SENTENCES)
def test_any_text_has_distinct_things_that_stand_in_it(text: str) -> None:
    found = entities(text)
    assert len({one.casefold() for one in found}) == len(found)
    assert all(1 < len(one) <= 120 and one in text and one == one.strip() for one in found)


@given(st.text("abcdefghijklmnopqrstuvwxyzäéß ,!?\n", max_size=200))
def test_lower_case_prose_names_nothing(text: str) -> None:
    assert entities(text) == ()


@given(SENTENCES, st.sampled_from(["Quito", "Marta Gómez", "GitLab"]))
def test_a_name_in_mid_sentence_is_found_whatever_stands_before(text: str, name: str) -> None:
    assert name in entities(f"{text}\nwe saw {name} there")


@pytest.mark.parametrize("messages", [TUNED, HELD_OUT], ids=["tuned", "held out"])
def test_precision_and_recall_on_labelled_messages(messages: Sequence[Labelled]) -> None:
    found = [set(entities(text)) for text, *_ in messages]
    marked = [set(labels) for _, *labels in messages]
    right = sum(len(one & other) for one, other in zip(found, marked, strict=True))
    assert right >= 0.9 * sum(map(len, found))
    assert right >= 0.8 * sum(map(len, marked))
    assert all(label in text for text, *labels in messages for label in labels)
