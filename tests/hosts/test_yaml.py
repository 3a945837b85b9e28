"""Editing one entry of a YAML mapping in place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.hosts import yaml
from kalito_mcp.hosts.documents import NotEditable, NotReadable

PLACE = ("extensions", "kalito")
ENTRY = {"cmd": "/a b", "args": ["serve"], "enabled": True, "envs": {"K": "v: #x"}}
WRITTEN = '  kalito:\n    cmd: "/a b"\n    args: ["serve"]\n    enabled: true\n    envs: {"K": "v: #x"}\n'


def test_an_entry_is_put_below_the_others() -> None:
    for before, after in (
        ("", "extensions:\n" + WRITTEN),
        ("A: 1\n", "A: 1\nextensions:\n" + WRITTEN),
        ("A: 1", "A: 1\nextensions:\n" + WRITTEN),
        ("extensions:\n  x:\n    a: 1\nB: 2\n", "extensions:\n  x:\n    a: 1\n" + WRITTEN + "B: 2\n"),
        ("extensions:\n  kalito:\n    cmd: old\n  x:\n    a: 1\n", "extensions:\n" + WRITTEN + "  x:\n    a: 1\n"),
        (
            "extensions:\n    x:\n        a: 1",
            "extensions:\n    x:\n        a: 1\n" + WRITTEN.replace("\n  ", "\n    ").replace("  k", "    k", 1),
        ),
        ("---\nextensions: # mine\n\n  x: {}\n", "---\nextensions: # mine\n\n  x: {}\n" + WRITTEN),
    ):
        assert yaml.put(before, PLACE, ENTRY) == after
        assert yaml.parse(after)["extensions"]["kalito"] == ENTRY


@given(
    st.lists(
        st.sampled_from(
            [
                "A: 1 # one\n",
                "# about B\n",
                "\n",
                'B: "x: y"\n',
                "C:\n- one\n- two: 2\n",
                "D: |\n  kalito:\n    text\n",
                "'E e':\n  f: {a: 1}\n",
                "extensions:\n  x:\n    args:\n    - -y\n    note: >-\n      a: b\n\n      c\n  'y':\n    z: 1\n",
            ]
        ),
        unique=True,
    )
)
def test_taking_out_what_was_put_in_gives_the_text_of_before(pieces: list[str]) -> None:
    before = "".join(pieces)
    after = yaml.put(before, PLACE, ENTRY)
    assert yaml.parse(after)["extensions"]["kalito"] == ENTRY
    assert yaml.remove(after, PLACE if "extensions" in before else PLACE[:1]) == before


def test_an_entry_that_its_host_wrote_is_read() -> None:
    text = (
        "extensions:\n  kalito:\n    args:\n    - serve\n    - '--x'\n    cmd: /bin/kalito-mcp\n"
        "    envs:\n      A: b # c\n    bundled: null\n    timeout: 300 # s\n    name: 'it''s' # d\n"
    )
    assert yaml.parse(text)["extensions"]["kalito"] == {
        "args": ["serve", "--x"],
        "cmd": "/bin/kalito-mcp",
        "envs": {"A": "b"},
        "bundled": None,
        "timeout": 300,
        "name": "it's",
    }


def test_a_value_of_several_lines_is_not_written_again_in_another_form() -> None:
    text = "extensions:\n  kalito:\n    cmd: old\n    description: |\n      two\n      lines\n"
    entry = yaml.parse(text)["extensions"]["kalito"]
    with pytest.raises(NotEditable, match=r"kalito\.description is written in a form that is not kept"):
        yaml.put(text, PLACE, entry | {"cmd": "new"})


def test_what_is_not_understood_is_refused_with_its_place() -> None:
    for text, place in (
        ("A: 1\nextensions\n", "line 2, column 1: no name with a colon"),
        ("extensions:\n\tx: 1\n", "line 2, column 1: a tab indents"),
        ("  A: 1\n", "line 1, column 3: unexpected indentation"),
        ("A: 1\nA: 2\n", "line 2, column 1: A is there twice"),
        ("{extensions: {}}\n", "line 1, column 1: no name with a colon"),
        ("A: 1\n---\nB: 2\n", "line 2, column 1: no name with a colon"),
        ("]] broken", "line 1, column 1: no name with a colon"),
    ):
        with pytest.raises(NotReadable, match=f"^{place}"):
            yaml.put(text, PLACE, ENTRY)


@pytest.mark.parametrize("value", ["{x: {a: 1}}", "null", "&here"])
def test_entries_on_one_line_are_not_added_to(value: str) -> None:
    with pytest.raises(NotEditable, match="written on one line"):
        yaml.put(f"extensions: {value}\n", PLACE, ENTRY)
