"""Servers that are killed while they write: the short form of the campaign in bench/kill.py."""

import pytest

from bench.kill import campaign
from tests.server.wire import COVERED


@pytest.mark.timeout(300)
def test_nothing_acknowledged_is_lost_or_doubled_when_servers_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in COVERED:
        monkeypatch.delenv(name)
    found = campaign(rounds=2, writers=3)

    assert found["first_faults"] == []
    assert found["first_log_lines"] == []
    assert found["kills"] >= 2
    assert found["acknowledged"] > 100
    assert found["repeated_calls"] >= 1
