"""Passphrases that are quick to check: the real cost is tested with the command, and by `tests/access`."""

import pytest

from kalito_mcp.access import passphrases


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process stores takes a thirtieth of the time. Each stored passphrase carries its own cost."""
    monkeypatch.setattr(passphrases, "COST", 1 << 10)
