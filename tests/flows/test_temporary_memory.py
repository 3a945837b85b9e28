"""`kalito_mcp.testing`: a memory that is gone after the block."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from kalito_mcp.testing import open_temporary_memory
from tests.stored import talk

pytestmark = pytest.mark.anyio
GUIDE: Final = Path(__file__).parents[2] / "docs" / "programs.md"


async def test_a_temporary_memory_is_its_own_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with open_temporary_memory() as memory, open_temporary_memory() as another:
        await memory.record_messages("trip", talk(1))
        await memory.finalize_session("trip")
        assert [one.id for one in await memory.conversations.recent()] == ["trip"]
        assert [one.id for one in await another.conversations.recent()] == []
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == []


def test_the_example_of_the_guide_runs() -> None:
    [example] = [one for one in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "testing" in one]
    subprocess.run([sys.executable, "-c", example], check=True, timeout=60)
