"""What `python -m bench` runs."""

from importlib.util import find_spec

import pytest

from bench.__main__ import BENCHMARKS, CAMPAIGNS


@pytest.mark.parametrize("name", [*BENCHMARKS, *CAMPAIGNS])
def test_each_benchmark_that_is_run_is_there(name: str) -> None:
    assert find_spec(f"bench.{name}") is not None
