"""What a text is about: each kind as it is written, no ordinary words, and no text that is too much."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.graph.entities import MAX_ENTITIES, Entity, EntityKind, entities
from tests.graph.labelled_entities import HELD_OUT, TUNED, Labelled

HOSTILE_LENGTH: Final = 256 * 1024
HOSTILE: Final = [
    "A", "Aa ", "a.", "/a", "`", "`a", "```a` ", "\n", "    \n", "**", "**a\n", "# A\n", "Aa;\n", "a@", "a@b. ", "https://",
    ")", "1 ", "May 1 ", "Aa of the ", "_", "a'", "A-a", "A. ", "Aa\n", '"A ', "#a", "--a-", "a-.", "import ", "def a",
    "Good: ", " ", "月", "1月", "a.b_c/", "\\", "(((", "\ud800",
]  # fmt: skip
SENTENCES: Final = st.lists(
    st.sampled_from(
        ["Anna", "Keller", "the", "of", "Oslo", "getName", "a_b", "x.py", "`x y`", "May", "3", "2026", "#tag", "@joe",
         "API", "https://a.io/b", "a@b.org", ".", "!", "\n", "Great", ":", "**", "- ", "(", ")", "IT'S", "NOT",
         "2026-05-03"]
    ),
    max_size=60,
).map(" ".join)  # fmt: skip


def named(text: str) -> list[str]:
    return [f"{entity.kind}:{entity.text}" for entity in entities(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Anna Keller in Oslo", ["Anna Keller", "Oslo"]),
        ("from Peter McDonald, Sean O'Brien and Jean-Luc", ["Peter McDonald", "Sean O'Brien", "Jean-Luc"]),
        ("with Willem van der Berg at the Bank of Norway", ["Willem van der Berg", "Bank of Norway"]),
        ("Åsa, Émile and Łukasz", ["Åsa", "Émile", "Łukasz"]),
        ("we use Visual Studio Code and PostgreSQL", ["Visual Studio Code", "PostgreSQL"]),
        ("on my iPhone, from GitHub, with Node.js and C#", ["iPhone", "GitHub", "Node.js", "C#"]),
        ("the SQL of those two APIs, ok? I am OK", ["SQL", "API"]),
        ("Anna's dog, James’s cat, l'Europe", ["Anna", "James", "Europe"]),
        ("Dr. Weber and Mr Bean by J.R.R. Tolkien", ["Weber", "Bean", "J.R.R. Tolkien"]),
        ("Photos of Paris, New York is big", ["Paris", "New York"]),
        ("Пётр и Иван Грозный", ["Пётр", "Иван Грозный"]),
        ("GitHubを使う", ["GitHub"]),
        ("the R&D of Johnson & Johnson", ["R&D of Johnson & Johnson"]),
    ],
)
def test_a_run_of_capitalised_words_is_one_name(text: str, expected: list[str]) -> None:
    assert [entity.text for entity in entities(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "Lovely weather. Book a table! Running late: see you on Monday",
        "- Milk\n- Eggs\n* Coffee\n1) Bread",
        "Tests are failing. Gorgeous! “Nothing new,” she said. I don't know.",
        "PLEASE CALL ME BACK. This is NOT ok, LOL",
        "## Next Steps\n**Key Points**: none\n1. **Clear Goals:** none\n\nAdditional Tips\n",
        "Dear [Hiring Manager], see you in May",
        "the T-shirt and the X-ray",
        "",
        " \n\t",
        "!?… 👍 \x00 \ud800",
    ],
)
def test_a_capital_that_its_place_demands_names_nothing(text: str) -> None:
    assert entities(text) == ()


def test_a_common_word_that_opens_a_sentence_is_a_name_where_mid_sentence_has_it_too() -> None:
    assert named("Will is late again.") == []
    assert named("Will is late again. I asked Will to call.") == ["name:Will"]
    assert named("Lisbon is sunny.") == ["name:Lisbon"]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("file", "in src/app/main.py, ./run.sh and ../x", "src/app/main.py|./run.sh|../x"),
        ("file", "see C:\\x\\y.txt or ~/.ssh/config.", "C:\\x\\y.txt|~/.ssh/config"),
        ("file", "report.pdf, .env, Makefile, src/app/ and /etc/hosts", "report.pdf|.env|Makefile|src/app|/etc/hosts"),
        ("code", "call get_name, getName and MemoryManager.flush()", "get_name|getName|MemoryManager.flush"),
        ("code", "MAX_SIZE __init__ HTTPServer --no-cache", "MAX_SIZE|__init__|HTTPServer|--no-cache"),
        ("code", "from numpy.linalg.norm to self.a_b", "numpy.linalg.norm|self.a_b"),
        ("code", "run `npm test & x` or foo() or `x`", "npm test & x|foo|x"),
        ("url", "(https://a.org/wiki/Oslo_(city)), www.x.org!", "https://a.org/wiki/Oslo_(city)|www.x.org"),
        ("url", "docs.python.org/3 and ftp://h/f; `https://a.b/c`", "docs.python.org/3|ftp://h/f|https://a.b/c"),
        ("email", "mail jan.novak+x@example.co.uk.", "jan.novak+x@example.co.uk"),
        ("date", "on 2026-05-03T10:00:00Z, 12/05/2026 or 31.12.2025", "2026-05-03|12/05/2026|31.12.2025"),
        ("date", "May 3, March 3rd, 2026 and 3 May 2026", "May 3|March 3rd, 2026|3 May 2026"),
        ("date", "the 3rd of June; March 2025; sept 5", "3rd of June|March 2025|sept 5"),
        ("date", "am 3. Mai 2026; le 14 juillet; 3 de mayo de 2026", "3. Mai 2026|14 juillet|3 de mayo de 2026"),
        ("date", "2026年5月3日 5月", "2026年5月3日"),
        ("tag", "#running with @joe_k, (#über-uns)", "#running|@joe_k|#über-uns"),
    ],
)
def test_a_kind_is_told_by_its_letters_and_kept_as_written(kind: str, text: str, expected: str) -> None:
    assert named(text) == [f"{kind}:{each}" for each in expected.split("|")]


@pytest.mark.parametrize(
    "text",
    [
        "version 3.5 or v1.2.3, e.g. and i.e. at 7:30 a.m., 24/7 and/or km/h",
        "issue #1, colours #fff and #ff8800, &#x27; a#b",
        "you may 3 times, they march 10 miles, on 13/13/2026 or 1/2",
        "_really_ **bold** great.thanks text(s) well--known -v //x",
        "wait... what?! http:// www. @ # ` ``",
    ],
)
def test_what_only_looks_like_a_file_a_tag_a_date_or_code_is_none(text: str) -> None:
    assert entities(text) == ()


def test_in_code_only_code_files_and_addresses_are_looked_for() -> None:
    fenced = "```python\nimport Foo from Bar\n# see Anna, May 3\n@property\nuse_it(open('a.txt'))\n```"
    assert named(fenced) == ["code:use_it", "file:a.txt"]
    assert named("class Foo(Base):\n    Value = item.price") == ["code:item.price"]
    assert named("Tell Anna:\n```\nGood Thing") == ["name:Anna"]


def test_the_more_specific_kind_has_what_two_could_claim() -> None:
    assert named("`src/a.py` `https://a.io/x_y.py` a_b@c.org #May 3") == [
        "file:src/a.py",
        "url:https://a.io/x_y.py",
        "email:a_b@c.org",
        "tag:#May",
    ]


def test_each_thing_is_told_once_in_order_of_first_appearance() -> None:
    assert named("I like Oslo and #oslo, and x.py of OSLO, so Oslo and Bergen") == [
        "name:Oslo",
        "tag:#oslo",
        "file:x.py",
        "name:Bergen",
    ]


def test_a_text_with_many_things_keeps_the_first_ones() -> None:
    assert named(" ".join(f"name_{number}" for number in range(100))) == [
        f"code:name_{number}" for number in range(MAX_ENTITIES)
    ]


def test_what_is_longer_than_a_name_can_be_is_left_out() -> None:
    assert named(f"https://a.io/{'x' * 200} `{'y' * 200}` {'a_b' * 60} x_y") == ["code:x_y"]
    assert named("so " + "Aa " * 7) == []


def test_a_long_text_is_read_to_its_limit_and_no_word_is_cut() -> None:
    assert named("we saw Oslo\n" * 2_000) == ["name:Oslo"]
    assert named(f"x {'東' * 19_990} we saw Oslo") == []
    assert named(f"x {'東' * 19_984} in Oslo, Bergen") == ["name:Oslo"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_text_of_256_kb_is_read_to_its_limit(unit: str) -> None:
    text = (unit * HOSTILE_LENGTH)[:HOSTILE_LENGTH]
    assert len(entities(text)) <= MAX_ENTITIES
    assert len(entities(f"({text}")) <= MAX_ENTITIES


def check(text: str) -> None:
    found = entities(text)
    assert found == entities(text)
    assert len(found) <= MAX_ENTITIES
    assert len({(entity.kind, entity.text.casefold()) for entity in found}) == len(found)
    assert all(0 < len(entity.text) <= 120 and entity.text in text for entity in found)
    assert all(entity.text == entity.text.strip() for entity in found)


@given(st.text(max_size=200))
def test_any_text_has_a_few_distinct_things_that_stand_in_it(text: str) -> None:
    check(text)


@given(SENTENCES)
def test_any_sentence_has_a_few_distinct_things_that_stand_in_it(text: str) -> None:
    check(text)


@given(st.text("abcdefghijklmnopqrstuvwxyzäéß ,.!?\n", max_size=200).filter(lambda text: "." not in text.strip(".")))
def test_lower_case_prose_names_nothing(text: str) -> None:
    assert entities(text) == ()


@given(SENTENCES, st.sampled_from(["Quito", "Marta Gómez", "GitLab"]))
def test_a_name_in_mid_sentence_is_found_whatever_stands_before(text: str, name: str) -> None:
    found = entities(f"{text}\nwe saw {name} there")
    assert Entity(EntityKind.NAME, name) in found or len(found) == MAX_ENTITIES


def counted(messages: Sequence[Labelled]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """By kind: what was rightly found, what was found, what was marked."""
    right: Counter[str] = Counter()
    found: Counter[str] = Counter()
    marked: Counter[str] = Counter()
    for text, *labels in messages:
        has = set(named(text))
        for counter, entries in ((right, has & set(labels)), (found, has), (marked, set(labels))):
            counter.update(entry.partition(":")[0] for entry in entries)
    return right, found, marked


@pytest.mark.parametrize("messages", [TUNED, HELD_OUT], ids=["tuned", "held out"])
def test_precision_and_recall_on_labelled_messages(messages: Sequence[Labelled]) -> None:
    right, found, marked = counted(messages)
    by_kind = {kind: f"P {right[kind]}/{found[kind]} R {right[kind]}/{marked[kind]}" for kind in marked | found}
    assert right.total() >= 0.9 * found.total(), by_kind
    assert right.total() >= 0.8 * marked.total(), by_kind


def test_a_third_of_the_labelled_messages_names_nothing_and_every_label_stands_in_its_message() -> None:
    messages = (*TUNED, *HELD_OUT)
    assert len(messages) >= 120
    assert 0.3 <= sum(len(message) == 1 for message in messages) / len(messages) <= 0.4
    assert 0.3 <= len(HELD_OUT) / len(messages) <= 0.4
    for text, *labels in messages:
        for label in labels:
            kind, _, written = label.partition(":")
            assert written in text
            assert kind in set(EntityKind)
