"""The coverage page has every statement of the specification, and the tests that it names exist."""

import ast
import re
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]
PAGE: Final = (Path(__file__).parent / "coverage.md").read_text(encoding="utf-8")
PAGES: Final = sorted(set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)})
DOCUMENTS: Final = (
    "memory-types",
    "memory-manager-overview",
    "memory-manager-reference",
    "graph-memory-api",
    "memory-schemas",
)

_TEST: Final = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
_BENCHMARK: Final = re.compile(r"`(bench/\w+\.py)`")
_CELLS: Final = re.compile(r"(?<!\\) \| ")


def part(document: str) -> str:
    """What the page says of one document."""
    return PAGE.split(f"## {document}\n")[1].split("\n## ")[0]


def sections(document: str) -> list[str]:
    """Its sections that carry an item, in their order."""
    return [line[2:] for line in part(document).splitlines() if line.startswith("- ") and not line.startswith("- (")]


def rows(document: str) -> list[list[str]]:
    """Section, item and what shows it."""
    lines = [line for line in part(document).splitlines() if line.startswith("| ")]
    return [_CELLS.split(line.removeprefix("| ").removesuffix(" |")) for line in lines[1:]]


@cache
def names_in(path: Path) -> set[str]:
    """The functions that a file defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_section_has_its_rows_in_order(document: str) -> None:
    assert [section for section, _ in groupby(row[0] for row in rows(document))] == sections(document)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_row_names_a_test_or_says_why_it_has_no_test(document: str) -> None:
    for row in rows(document):
        section, item, shown = row
        assert section and item, row
        assert _TEST.search(shown) or shown.startswith(("measured: ", "not checkable: ")), row


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_row_names_exists(document: str) -> None:
    for _, _, shown in rows(document):
        for file, name in _TEST.findall(shown):
            assert name in names_in(TESTS / file), f"{file}::{name}"
        for file in _BENCHMARK.findall(shown):
            assert (TESTS.parent / file).is_file(), file


def test_every_test_of_the_specification_is_on_the_page() -> None:
    listed = set(_TEST.findall(PAGE))
    for path in PAGES:
        missing = [
            name for name in names_in(path) if name.startswith("test_") and (f"spec/{path.name}", name) not in listed
        ]
        assert missing == [], path.name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_test_of_the_specification_names_its_document(path: Path) -> None:
    for one in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test_"):
            assert (ast.get_docstring(one) or "").startswith(DOCUMENTS), one.name
