"""A server in a process of its own has Anthropic's memory tool if its environment says so."""

from pathlib import Path
from typing import Any

from tests.server.wire import COVERED, call, request, served

VIEW: dict[str, Any] = {"command": "view", "path": "/memories"}


def test_a_host_that_switches_it_on_can_call_it(tmp_path: Path) -> None:
    with served(tmp_path / "memory.db", KALITO_MEMORY_TOOL="on", **COVERED) as wire:
        wire.send(request(1, "tools/list"))
        assert wire.answer(1)["result"]["tools"][-1]["name"] == "memory"
        wire.send(call(2, "memory", **VIEW))
        result = wire.answer(2)["result"]
        assert result["content"][0]["text"].endswith("0B\t/memories")
        assert not result.get("isError")


def test_elsewhere_it_is_unknown(tmp_path: Path) -> None:
    with served(tmp_path / "memory.db", KALITO_MEMORY_TOOL="0") as wire:
        wire.send(request(1, "tools/list"))
        assert "memory" not in {tool["name"] for tool in wire.answer(1)["result"]["tools"]}
        wire.send(call(2, "memory", **VIEW))
        assert "memory" in wire.answer(2)["error"]["message"]
