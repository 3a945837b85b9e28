"""What the wheel and the source distribution hold."""

import os
import subprocess
import sys
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path
from typing import Final

import pytest

from kalito_mcp.version import __version__

ROOT: Final = Path(__file__).parents[2]
NAME: Final = f"kalito_mcp-{__version__}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both distributions."""
    folder = tmp_path_factory.mktemp("dist")
    environment = os.environ | {"PYTHONPATH": ""}
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, env=environment, check=True)
    return folder


def test_the_source_distribution_has_what_registries_read_and_no_tests(built: Path) -> None:
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        names = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
    listings = [file for folder in ("plugins", ".agents", ".claude-plugin") for file in (ROOT / folder).rglob("*")]
    wanted = {file.relative_to(ROOT).as_posix() for file in listings if file.is_file()}
    assert wanted | {"server.json", "Containerfile", "LICENSE", "README.md", "requirements/runtime.txt"} <= names
    assert {name for name in names if name.startswith(("tests/", "bench/", ".ci/"))} == set()


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
    known = {file.relative_to(ROOT).as_posix() for file in (ROOT / "kalito_mcp").rglob("*") if file.is_file()}
    package = {name for name in names if not name.startswith(f"{NAME}.dist-info/")}
    assert package == {name for name in known if "__pycache__" not in name}


def test_the_wheel_brings_both_programs(built: Path) -> None:
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        points = ConfigParser()
        points.read_string(wheel.read(f"{NAME}.dist-info/entry_points.txt").decode())
    assert dict(points["console_scripts"]) == {
        "kalito-mcp": "kalito_mcp.cli.main:main",
        "kalito-hook": "kalito_mcp.cli.hook:main",
    }
