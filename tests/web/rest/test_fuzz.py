"""A short form of `make fuzz`."""

import os
import shutil
from pathlib import Path

import pytest

from tests.web.rest.fuzz import fuzz

BROUGHT = Path(__file__).parents[3] / "build" / "fuzz" / "bin"


@pytest.mark.campaign
@pytest.mark.timeout(180)
def test_every_answer_to_made_up_calls_is_as_the_document_says() -> None:
    program = shutil.which("schemathesis", path=f"{BROUGHT}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("schemathesis is not installed; `make fuzz` brings it")
    done = fuzz(program, 20)
    assert done.returncode == 0, done.stdout[-20_000:]
