"""What every flow shares: the protocol era of its client."""

from typing import Final

import pytest

from tests.flows.harness import ERAS

_IN_BOTH: Final = {
    "test_both_channels",
    "test_conversation",
    "test_facts",
    "test_graph_resources",
    "test_memory_tool",
    "test_refusals",
    "test_resources",
    "test_running_calls",
    "test_session_list",
    "test_subscribers_apart",
    "test_subscriptions",
    "test_three_days",
    "test_tools",
    "test_transports",
}
"""The flows that see what the eras do differently: envelopes, errors, resources, elicitation, a whole conversation. The
others are about what the tools do, which is behind the protocol: the newer one is enough."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The protocol of the client."""
    if "era" in metafunc.fixturenames:
        name = metafunc.module.__name__.rpartition(".")[2]
        metafunc.parametrize("era", ERAS if name in _IN_BOTH else ERAS[-1:])
