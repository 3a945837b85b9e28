"""The templates and static files in the package: what is not in them, and where those of others come from."""

import hashlib
import re
from pathlib import Path

import pytest

from kalito_mcp.web.page import rendering
from kalito_mcp.web.page.static_files import static_files
from tests.web.page.vendored import STATIC, vendored

PAGE = STATIC.parent
TEMPLATES = sorted((PAGE / "templates").glob("*.html"))
FORBIDDEN = {
    r"\|\s*safe\b": "{{ text | safe }}",
    r"\bMarkup\(": "{{ Markup(text) }}",
    r"autoescape": "{% autoescape false %}",
    r"\sstyle\s*=": '<p style="color: red">',
    r"<style\b": "<style>p {}</style>",
    r"\son[a-z]+=": '<p onclick="x()">',
    r"\shx-on\b": '<p hx-on:click="x()">',
    r"\shx-(?:vals|vars|headers|request)\s*=\s*['\"]?js:": "<p hx-vals='js:{a: 1}'>",
    r"<script(?![^>]*\ssrc=)": "<script defer>alert(1)</script>",
    r"(?:href|src|action|hx-\w+)\s*=\s*[\"']?(?:https?:|//|javascript:|data:)": '<a href="https://example.org">',
    r"\s(?!url=)[\w-]+=\{\{": "<p class={{ name }}>",
}
"""What no template may have, and a line that has it."""


def test_a_pattern_finds_what_it_is_for() -> None:
    for pattern, line in FORBIDDEN.items():
        assert re.search(pattern, line), pattern


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda one: one.name)
def test_a_template_has_nothing_inline_and_escapes_all(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    for pattern in FORBIDDEN:
        assert not re.search(pattern, text), (pattern, re.search(pattern, text))


def test_only_the_renderer_makes_markup() -> None:
    for file in PAGE.rglob("*.py"):
        if file != Path(rendering.__file__):
            text = file.read_text(encoding="utf-8")
            assert "Markup" not in text, file.name
            assert "jinja2" not in text, file.name


def test_every_template_is_used() -> None:
    sources = "".join(one.read_text(encoding="utf-8") for one in [*PAGE.rglob("*.py"), *TEMPLATES])
    for template in TEMPLATES:
        assert f'"{template.name}"' in sources, template.name


def test_our_own_script_makes_no_html_and_no_code_of_texts() -> None:
    for file in STATIC.glob("*.js"):
        if file.name not in {one["file"] for one in vendored()}:
            text = file.read_text(encoding="utf-8")
            for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
                assert forbidden not in text, (file.name, forbidden)


def test_a_file_of_others_is_the_one_that_the_list_names() -> None:
    for entry in vendored():
        assert hashlib.sha256((STATIC / entry["file"]).read_bytes()).hexdigest() == entry["sha256"], entry["file"]
        assert (STATIC / entry["licence_file"]).read_text(encoding="utf-8").strip()
        assert entry["integrity"].startswith("sha512-")
        assert b"sourceMappingURL" not in (STATIC / entry["file"]).read_bytes()
    minified = {name for name, file in static_files().items() if max(map(len, file.content.splitlines())) > 5_000}
    assert minified == {entry["file"] for entry in vendored()}


def test_the_lists_and_licences_are_not_served() -> None:
    assert {Path(name).suffix for name in static_files()} <= {".css", ".js", ".svg"}
