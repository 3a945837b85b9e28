"""Files of hosts with something changed at random: refused, or edited so that it can be undone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.hosts.edits import Part, Wish, command_in, has_ours, our_events, programs_in, removed, written
from kalito_mcp.hosts.facts import HookFile, Launcher
from kalito_mcp.hosts.known import HOSTS
from kalito_mcp.hosts.places import Places

GOLDEN = Path(__file__).with_name("golden")
WISH = Wish(Launcher("/b/kalito-mcp", "/b/kalito-hook"), has_hooks=True, variables={"KALITO_HOOKS": "x"})


def files() -> list[tuple[tuple[Part, ...], str]]:
    """Each golden file with what is written into it."""
    found = []
    for host in HOSTS:
        for state in ("before", "after"):
            places = Places("linux", GOLDEN / host.key / state, {})
            parts: dict[Path, tuple[Part, ...]] = {Path(host.entry.where(places)): (host.entry,)}
            if isinstance(host.hooks, HookFile):
                path = Path(host.hooks.where(places))
                parts[path] = (*parts.get(path, ()), host.hooks)
            found += [(among, path.read_text()) for path, among in parts.items() if path.exists()]
    return found


PIECES = ["", "{", "}", "[", "]", ",", ":", '"', "//", "/*", "\n", "  ", "#", "=", '"""', "'", "\\", "\t", "- ", "1"]
CHANGES = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 3, 20]), st.sampled_from(PIECES)), min_size=1, max_size=4
)


@given(st.sampled_from(files()), CHANGES)
def test_a_damaged_file_is_refused_or_what_is_written_into_it_can_be_taken_out(
    file: tuple[tuple[Part, ...], str], changes: list[tuple[float, int, str]]
) -> None:
    parts, text = file
    for place, length, piece in changes:
        at = round(place * len(text))
        text = text[:at] + piece + text[at + length :]
    try:
        after = written(parts, text, WISH)
    except ValueError:
        return
    assert written(parts, after, WISH) == after
    assert has_ours(parts, after)
    command_in(parts, after), our_events(parts, after), programs_in(parts, after)
    if not has_ours(parts, text):
        assert removed(parts, after, text) == text


def test_an_entry_whose_fields_have_other_types_is_refused_or_read() -> None:
    odd = '{"mcpServers": {"kalito": {"command": [], "args": ["kalito-mcp"], "env": 5}}}'
    assert command_in((HOSTS[0].entry,), odd) is None
    with pytest.raises(ValueError, match=r"kalito\.env is not an object"):
        written((HOSTS[0].entry,), odd, WISH)
