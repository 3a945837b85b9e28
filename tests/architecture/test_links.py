"""Relative links in the Markdown files lead to files, and to headings, that exist."""

import re
from pathlib import Path
from typing import Final

import click
import pytest

from kalito_mcp.cli.commands import commands

ROOT: Final = Path(__file__).parents[2]
GUIDES: Final = sorted((ROOT / "docs").glob("*.md"))
PAGES: Final = sorted(
    page for pattern in ("*.md", "docs/**/*.md", "bench/**/*.md", "tests/**/*.md") for page in ROOT.glob(pattern)
)
_LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
_CODE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _CODE.sub("", text(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in _LINK.findall(text(page)):
        file = page.parent / target if target else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{target}#{anchor}"


def test_the_readme_links_to_every_guide() -> None:
    linked = {target for target, _ in _LINK.findall(text(ROOT / "README.md"))}
    assert {page.relative_to(ROOT).as_posix() for page in GUIDES} <= linked


def test_a_guide_names_every_command() -> None:
    named = "\n".join(map(text, [ROOT / "README.md", *GUIDES]))
    for command in commands.list_commands(click.Context(commands)):
        assert re.search(rf"`(?:kalito-mcp )?{command}\b|kalito-mcp {command}\b", named), command
