"""The short form of `bench.fuzz`: what no client should send, and what every client may."""

import pytest

from bench import fuzz
from bench.fuzz_inputs import tool_schemas

pytestmark = pytest.mark.timeout(300)


def test_broken_lines_are_answered_under_each_id_that_can_be_read() -> None:
    part = fuzz.lines(1_000, tool_schemas())
    assert (part.sent, part.violations) == (1_000, [])


@pytest.mark.campaign
def test_broken_heads_and_bodies_and_drawn_calls_end_in_no_failure_of_ours() -> None:
    parts = fuzz.over_http({"heads": 300, "bodies": 1_000, "calls": 1_000, "slow": 0}, tool_schemas())
    assert {name: part.violations for name, part in parts.items()} == {name: [] for name in parts}
    assert parts["calls"].answers["done"] > 100
