"""What every flow shares: the protocol era of its client."""

from typing import Final

import pytest

from tests.campaign import first_of
from tests.flows.harness import ERAS

_SEEN_BY: Final = {
    "test_conversation",
    "test_refusals",
    "test_resources",
    "test_running_calls",
    "test_subscriptions",
    "test_transports",
}
"""The flows that see what the eras do differently: a whole conversation, errors, resources, calls that are cancelled,
subscriptions, transports. The others are about what the tools do, which is behind the protocol: in the check, the newer
era is enough."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The protocol of the client. What does not see it runs in the older era in `make campaigns`."""
    if "era" in metafunc.fixturenames:
        name = metafunc.module.__name__.rpartition(".")[2]
        metafunc.parametrize("era", ERAS if name in _SEEN_BY else first_of(reversed(ERAS)))
