"""Relative links in the Markdown files lead to files that exist."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted(
    page for pattern in ("*.md", "docs/**/*.md", "bench/**/*.md", "tests/**/*.md") for page in ROOT.glob(pattern)
)
_LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    targets = [match[1] for match in _LINK.finditer(page.read_text(encoding="utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_links_to_every_guide() -> None:
    linked = {match[1] for match in _LINK.finditer((ROOT / "README.md").read_text(encoding="utf-8"))}
    assert {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").glob("*.md")} <= linked
