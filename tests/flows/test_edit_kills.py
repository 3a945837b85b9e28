"""kill -9 while two processes edit and erase never damages the database."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.storage.sqlite.inspection import inspect
from tests.server import prepared
from tests.server.wire import clean_environment

PROGRAM: Final = Path(__file__).with_name("edits_until_killed.py")
ROOT: Final = Path(__file__).parents[2]


def test_whenever_editors_are_killed_the_database_is_whole(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    chance = random.Random(7)
    for seed in range(0, 8, 2):
        editors = [
            prepared.start(
                [sys.executable, str(PROGRAM), str(database), str(seed + one)],
                stdout=subprocess.PIPE,
                cwd=ROOT,
                env=clean_environment(),
            )
            for one in range(2)
        ]
        for editor in editors:
            assert editor.stdout is not None
            assert editor.stdout.readline() == b"open\n"
        # Chance decides where they are when they die.
        time.sleep(chance.uniform(0.1, 0.8))
        for editor in editors:
            editor.kill()
        for editor in editors:
            editor.communicate()
        faults = [one for one in inspect(database, is_deep=True) if one.verdict is Verdict.FAILED]
        assert faults == []
