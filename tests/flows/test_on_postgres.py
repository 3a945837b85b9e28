"""What a conversation goes through is the same on PostgreSQL. `KALITO_TEST_STORE=postgres` runs every flow there."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.flows import harness, test_conversation

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "flow",
    [
        test_conversation.test_a_conversation_is_recorded_summarised_pinned_found_and_closed,
        test_conversation.test_another_process_goes_on_with_the_conversation,
        test_conversation.test_owed_work_of_a_process_that_ended_is_paid_by_the_next,
    ],
)
async def test_a_flow_is_the_same_on_postgresql(
    flow: Callable[[Path, str], Coroutine[Any, Any, None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "STORE", "postgres")
    await flow(tmp_path, harness.ERAS[1])
