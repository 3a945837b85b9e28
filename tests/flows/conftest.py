"""What every flow shares: the two protocol eras."""

import pytest

from tests.flows.harness import ERAS


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """The protocol of the client. Every flow runs in both."""
    return str(request.param)
