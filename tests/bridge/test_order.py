"""What hooks report of a conversation is recorded in the order in which it was said, whichever server records it."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from kalito_mcp.capture.spool import Spool
from kalito_mcp.runtime.database_address import LocalFiles
from tests.bridge.machines import bridge, gate, home_behind, hook, outbox_of, texts_at, until
from tests.server.wire import served


@pytest.mark.parametrize("is_bridge", [False, True], ids=["memory here", "memory elsewhere"])
def test_what_waits_is_recorded_before_what_is_said_later_even_if_a_server_dies_over_it(
    tmp_path: Path, *, is_bridge: bool
) -> None:
    here = home = tmp_path / "laptop"
    here.mkdir()
    files = LocalFiles(here / "memory.db")
    spool = Spool(files.spool)
    said: list[str] = []

    def say(conversation: str, count: int) -> None:
        for _ in range(count):
            said.append(f"word {len(said)}")
            payload = {"session_id": conversation, "cwd": str(here), "prompt": said[-1]}
            hook(here, "codex", "UserPromptSubmit", payload)

    with gate() as between, ExitStack() as running:
        say("c", 2)
        recording = spool.take()
        next(recording)  # as a server that begins to record it
        if is_bridge:
            home = tmp_path / "home"
            running.enter_context(home_behind(between, home))
        running.enter_context(bridge(here, between.url) if is_bridge else served(here / "memory.db"))
        until(lambda: any(files.hooks.glob("server-*.json")), "it listens")
        say("c", 2)
        assert outbox_of(here).count() == 0
        assert texts_at(home) == []
        recording.close()  # as a server that dies
        say("c", 1)
        until(lambda: texts_at(home) == said, "all is recorded, in order")
