"""`kalito-mcp serve` on a free port of this machine."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.server.prepared import PreparedProcess, start_prepared
from tests.server.wire import COVERED, PATIENCE_S, clean_environment


@dataclass(frozen=True)
class Web:
    """A server that accepts connections at `url`. `log` is what it wrote to stderr, once it has ended."""

    url: str
    process: subprocess.Popen[bytes] | PreparedProcess
    log: list[bytes] = field(default_factory=list)


@contextmanager
def web(transport: str, database: Path, *options: str, login: bool = False, **environment: str) -> Iterator[Web]:
    """Start a server. It listens until the block ends. Without `login` it needs no token."""
    arguments = [
        *("serve", "--transport", transport, "--port", "0"),
        *([] if login else ["--without-login"]),
        *options,
    ]
    variables = clean_environment(KALITO_DATABASE=str(database), **environment)
    with database.with_suffix(".stdout").open("wb") as stdout:
        process, stderr = _started(arguments, variables, stdout, is_covered=COVERED.items() <= environment.items())
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
            if COVERED.items() <= environment.items() and COVERED:
                process.terminate()
            else:
                process.kill()
            process.wait(PATIENCE_S)
            rest.join()


def _started(
    arguments: list[str], environment: dict[str, str], stdout: IO[bytes], *, is_covered: bool
) -> tuple[subprocess.Popen[bytes] | PreparedProcess, IO[bytes]]:
    """The process, and its stderr."""
    if sys.platform == "linux" and not (is_covered and COVERED):
        reading, writing = os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            process = start_prepared(
                arguments, environment, stdin=nothing.fileno(), stdout=stdout.fileno(), stderr=writing
            )
        os.close(writing)
        return process, os.fdopen(reading, "rb")
    started = subprocess.Popen(
        [sys.executable, "-m", "kalito_mcp", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert started.stderr is not None
    return started, started.stderr
