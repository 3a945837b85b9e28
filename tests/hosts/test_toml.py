"""Editing TOML tables in place."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.hosts import toml
from kalito_mcp.hosts.documents import NotEditable, NotReadable

PLACE = ("servers", "kalito")
BLOCK = '[servers.kalito]\ncommand = "a"\n'
PIECES = st.sampled_from(
    [
        "# a comment\n",
        "\n",
        'top = "x"\n',
        "[servers.other]\nb = 1 # [no.table]\n",
        '[servers."ka.li]to"]\nc = [\n  "[x]",\n  # ]\n]\n',
        "[[list]]\nd = '''\n[servers.kalito]\n'''\n",
        '[text]\ne = """\\\n[servers.kalito]\\"""\n"""\n',
        "[more.deep]\nf = { a = [1, 2] }\n",
        "[nel]\ng = 'a\x85b\u2028[c]'\n",
    ]
)


def test_a_table_is_put_at_its_place_or_at_the_end() -> None:
    for before, after in (
        ("", BLOCK),
        ("a = 1\n", "a = 1\n\n" + BLOCK),
        ("a = 1", "a = 1\n\n" + BLOCK),
        ("a = 1\r\n", ("a = 1\n\n" + BLOCK).replace("\n", "\r\n")),
        ('[servers.kalito] # ours\ncommand = "old"\n\n# next\n[b]\n', BLOCK + "\n# next\n[b]\n"),
        ('[servers.kalito]\ncommand = "old"\n[servers.kalito.env]\nA = "1"\n\n[b]\n', BLOCK + "\n[b]\n"),
        ('[servers.kalito.env]\nA = "1"\n[b]\n[servers.kalito]\nx = 1\n', BLOCK + "[b]\n"),
    ):
        assert toml.put(before, PLACE, {"command": "a"}) == after


@given(st.lists(PIECES, unique=True, max_size=6), st.booleans())
def test_taking_out_what_was_put_in_gives_the_text_of_before(pieces: list[str], ends_with_line: bool) -> None:
    before = "".join(sorted(pieces, key=lambda piece: "[" in piece.partition("\n")[0] and piece[0] == "["))
    after = toml.put(before, PLACE, {"command": "a", "args": ["b"], "env": {"C d": 'e"f'}})
    assert tomllib.loads(after)["servers"]["kalito"] == {"command": "a", "args": ["b"], "env": {"C d": 'e"f'}}
    assert toml.remove(after, PLACE) == before
    changed = after + ("\n[later]\nz = 1\n" if ends_with_line else "# later")
    assert toml.remove(changed, PLACE) == before + changed[len(after) :]


def test_lists_in_lists_do_not_end_a_table() -> None:
    table = "[servers.kalito]\nargs = [\n[1],\n[2], # [a]\n]\nlast = 1\n"
    assert toml.remove(f"{table}[b]\n", PLACE) == "[b]\n"
    assert toml.remove(table.replace("kalito", "other") + "\n" + BLOCK, PLACE) == table.replace("kalito", "other")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[features]\nhooks = true\n"),
        ("[features]\nweb = 1\n", "[features]\nhooks = true\nweb = 1\n"),
        ("[features]", "[features]\nhooks = true\n"),
    ],
)
def test_a_value_goes_below_the_header_of_its_table(before: str, after: str) -> None:
    assert toml.put(before, ("features", "hooks"), True) == after


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = \n", "line 1, column 5"), ("a = 1\na = 2\n", "line 2, column"), ('a = "', "line 1, column 1")],
)
def test_a_broken_text_is_refused_with_the_place_of_the_error(text: str, place: str) -> None:
    for edit in (toml.parse, lambda broken: toml.put(broken, PLACE, {}), lambda broken: toml.remove(broken, PLACE)):
        with pytest.raises(NotReadable, match=f"^{place}"):
            edit(text)


def test_a_value_that_json_has_not_is_not_written() -> None:
    with pytest.raises(NotEditable):
        toml.put("", PLACE, {"when": tomllib.loads("a = 2026-01-01")["a"]})
    with pytest.raises(NotEditable):
        toml.put("", ("servers", 0), {})
