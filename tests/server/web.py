"""`kalito-mcp serve` on a free port of this machine."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.server.prepared import start
from tests.server.wire import COVERED, PATIENCE_S, clean_environment


@dataclass(frozen=True)
class Web:
    """A server that accepts connections at `url`. `log` is what it wrote to stderr, once it has ended."""

    url: str
    process: subprocess.Popen[bytes]
    log: list[bytes] = field(default_factory=list)


@contextmanager
def web(transport: str, database: Path, *options: str, login: bool = False, **environment: str) -> Iterator[Web]:
    """Start a server. It listens until the block ends. Without `login` it needs no token."""
    arguments = [
        *("serve", "--transport", transport, "--port", "0"),
        *([] if login else ["--without-login"]),
        *options,
    ]
    is_covered = COVERED and COVERED.items() <= environment.items()
    with database.with_suffix(".stdout").open("wb") as stdout:
        process = start(
            [sys.executable, "-m", "kalito_mcp", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=clean_environment(KALITO_DATABASE=str(database), **environment),
        )
    stderr = process.stderr
    assert stderr is not None
    with stderr:
        # A full pipe would hold the server up.
        log: list[bytes] = []
        rest = threading.Thread(target=log.extend, args=(stderr,))
        try:
            first = stderr.readline().decode().strip()
            rest.start()
            assert first.startswith("kalito-mcp: serving at "), first
            yield Web(first.rpartition(" ")[2], process, log)
        finally:
            # A killed process saves no coverage.
            if is_covered:
                process.terminate()
            else:
                process.kill()
            process.wait(PATIENCE_S)
            rest.join()
