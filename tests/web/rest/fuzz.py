"""Calls every endpoint with what the OpenAPI document allows and what it does not: `make fuzz`.

Schemathesis makes the calls. Any answer with status 500, or one that is not as the document says, fails the run.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kalito_mcp.domain.access import Permission
from tests.web.rest.served import record, served

CONFIG = Path(__file__).with_name("schemathesis.toml")
_MARGIN_S = 60
_WITHOUT_LIMITS = {f"KALITO_HTTP_{name}_PER_MINUTE": "1000000" for name in ("CALLS", "WRITES", "REFUSALS")}


def fuzz(program: str, seconds: int, *options: str) -> subprocess.CompletedProcess[str]:
    """Run schemathesis against a server of its own for so many seconds."""
    with TemporaryDirectory() as folder, served(Path(folder), **_WITHOUT_LIMITS) as running:
        with running.client() as client:
            record(client, "november", "We fly to Oslo in May.", "Noted.")
        token = running.tokens[Permission.ADMIN]
        return subprocess.run(
            [
                *(program, "--config-file", str(CONFIG), "run", f"{running.origin}/api/openapi.json"),
                *("--header", f"Authorization: Bearer {token}", "--max-time", str(seconds), "--continue-on-failure"),
                # It would revoke its own token.
                *("--exclude-path", "/api/tokens/{token_id}", *options),
            ],
            capture_output=True,
            text=True,
            timeout=seconds + _MARGIN_S,
            cwd=folder,
            check=False,
        )


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="schemathesis")
    parser.add_argument("--seconds", type=int, default=600)
    asked = parser.parse_args(arguments)
    # It runs in a folder of its own.
    done = fuzz(str(Path(shutil.which(asked.program) or asked.program).absolute()), asked.seconds)
    print(done.stdout, done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
