"""What a start costs: wall-clock and CPU time from the spawn to the first answers of a server, and of commands.

`listed` shakes hands, waits, and asks for the tools, as a host does. `called` sends all of it and a `build_context` in
one write, so that the server is needed at once. The servers take turns: ours, ours without its catalogue, a plain
server of the SDK, and `bench/plain_server.py`, which is the floor. CPU time is that of all threads up to the answer. It
is read in Linux's way. Medians.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.report import ROOT, emit, options, progress
from bench.wire import PROTOCOL, clean_environment, echo_command, memory_command

TARGETS: Final = {"listed_wall_ratio_to_floor": 3.0, "listed_cpu_ms": 100.0, "command_cpu_ms": 60.0}
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
_READY: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LIST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_WITHOUT: Final = (
    "import sys, kalito_mcp.server.first_answers as first; first.load = lambda **_: None; sys.argv[0] = 'kalito-mcp'; "
    "from kalito_mcp.cli.main import main; main()"
)


def _call(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class _Started:
    """A server whose answers are awaited."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._began = time.perf_counter()
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=ROOT,
        )

    def send(self, *messages: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self._child.stdin.flush()

    def until(self, number: int) -> tuple[float, float]:
        """Wall-clock and CPU time until the answer with this id, in milliseconds."""
        assert self._child.stdout is not None
        while (answer := json.loads(self._child.stdout.readline())).get("id") != number:
            pass
        wall_ms = 1000 * (time.perf_counter() - self._began)
        assert "result" in answer, answer
        return wall_ms, self._cpu_ms()

    def end(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.stdout.read()
        self._child.stdout.close()
        self._child.wait()

    def _cpu_ms(self) -> float:
        # Linux's number for the clock of all threads of a process, also of those that have ended.
        return 1000 * time.clock_gettime(((~self._child.pid) << 3) | 2)


def listed(command: list[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Time to the first list of tools."""
    server = _Started(command, environment)
    server.send(_HELLO)
    server.until(0)
    server.send(_READY, _LIST)
    figures = server.until(1)
    server.end()
    return figures


def called(command: list[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Time to the answer of a call that was sent at once."""
    tool = _call("build_context", {"session_id": "nobody"})
    server = _Started(command, environment)
    server.send(_HELLO, _READY, tool if "kalito" in " ".join(command) else _call("echo", {"text": "x"}))
    figures = server.until(1)
    server.end()
    return figures


def ran(command: list[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Time of a command from its start to its end."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return 1000 * (time.perf_counter() - began), 1000 * (used.ru_utime + used.ru_stime)


def measure(folder: Path, count: int) -> dict[str, Any]:
    """All figures."""
    database = folder / "memory.db"
    environment = {**clean_environment(folder), "KALITO_PROJECT": "personal"}
    floor = [sys.executable, "-m", "bench.plain_server"]
    without = [sys.executable, "-c", _WITHOUT, *memory_command(database)[3:]]
    servers = {"kalito": memory_command(database), "without_catalogue": without, "sdk": echo_command(), "floor": floor}
    kalito = [sys.executable, "-m", "kalito_mcp"]
    commands = {
        "python_pass": [sys.executable, "-c", "pass"],
        "help": [*kalito, "--help"],
        "stats": [*kalito, "stats", "--database", str(database)],
    }
    called(servers["kalito"], environment)  # makes the database, and compiles what is imported
    kinds = {
        "listed": (listed, servers),
        "called": (called, {name: command for name, command in servers.items() if name != "floor"}),
        "commands": (ran, commands),
    }
    found: dict[str, Any] = {"n": count}
    for kind, (measured, each) in kinds.items():
        progress(f"start: {count} rounds of {kind}")
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in each}
        for _ in range(count):
            for name, command in each.items():
                taken[name].append(measured(command, environment))
        found[kind] = {
            name: {
                "wall_ms": statistics.median(wall for wall, _ in times),
                "cpu_ms": statistics.median(cpu for _, cpu in times),
                "fastest_wall_ms": min(wall for wall, _ in times),
            }
            for name, times in taken.items()
        }
    of = found["listed"]
    found["listed_ratio_to_floor"] = {unit: of["kalito"][unit] / of["floor"][unit] for unit in ("wall_ms", "cpu_ms")}
    return {**found, "targets": TARGETS}


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--starts", type=int, help="of each kind (default 20, quick 7)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        emit("start", measure(Path(folder), given.starts or (7 if given.quick else 20)))


if __name__ == "__main__":
    main()
