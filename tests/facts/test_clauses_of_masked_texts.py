"""What is masked is a long run of spaces. It splits a sentence as one space does."""

import pytest

from kalito_mcp.facts.clauses import clauses


@pytest.mark.parametrize("joint", [" and ", "; ", " - ", " because "])
def test_a_long_run_of_spaces_splits_as_one_does(joint: str) -> None:
    near = [(one.subject, one.predicate) for one in clauses(0, f"I live in Porto{joint}I work in Oslo")]
    far = [
        (one.subject, one.predicate)
        for one in clauses(0, f"I live in Porto{' ' * 3_000 + joint + ' ' * 900}I work in Oslo")
    ]
    assert len(near) == 2
    assert far == near
