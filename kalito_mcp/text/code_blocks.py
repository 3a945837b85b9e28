"""Fenced code in a message: where it is, what it defines, and a one-line label for it. Pure.

Definitions in any common language are recognised by the shape of a line. Code is never parsed or run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kalito_mcp.text.lazy_pattern import lazy

FENCE: Final = "```"

_MAX_LINES: Final = 400
_MAX_LINE: Final = 240
_MAX_NAMES: Final = 3
_MAX_SNIPPET: Final = 48

_LANGUAGE: Final = lazy(r"[ \t]*([A-Za-z][\w+#.-]{0,19})?[ \t]*(?:(?:\{|\w+=)[^\n]{0,80})?\r?\n")
_DEFINITION: Final = lazy(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|async|abstract|final|pub|override|unsafe)\s+)*"
    r"(?:"
    r"(?:def|class|function|fn|func|fun|interface|struct|enum|trait|record|protocol)\s+"
    r"(?:\([^()]{0,60}\)\s*)?([A-Za-z_$][\w$]*)\s*(?:$|[({:<;=]|extends\b|implements\b|struct\b)"
    r"|(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*(?::[^=]{0,60})?=\s*(?:async\b\s*)?(?:\(|function\b|[\w$]+\s*=>)"
    r"|(?i:create\s+(?:or\s+replace\s+)?(?:unique\s+)?(?:table|view|function|index|trigger)\s+(?:if\s+not\s+exists\s+)?)"
    r"([\w.\"`]+)"
    r")"
)
_PROSE: Final = frozenset(("markdown", "md", "text", "txt", "plaintext", "log", "diff", "csv"))
_COMMANDS: Final = frozenset(("", "sh", "bash", "zsh", "shell", "console", "terminal", "powershell", "sql", "text"))
_COMMENT: Final = ("#", "//", "/*", "*", "--", "<!--", '"""')


@dataclass(frozen=True, slots=True)
class Definition:
    """A named thing that a block defines: its name, and the number of its line, from 0."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One fenced block. `language` is empty if the fence names none; only the first 400 lines are kept."""

    language: str
    lines: tuple[str, ...]

    def definitions(self) -> list[Definition]:
        """The definitions in the block, in order, each name once; empty for prose and data such as Markdown or CSV."""
        if self.language in _PROSE:
            return []
        found: dict[str, Definition] = {}
        for number, line in enumerate(self.lines):
            match = _DEFINITION().match(line[:_MAX_LINE])
            if match:
                name = next(group for group in match.groups() if group).strip('"`')
                found.setdefault(name, Definition(name, number))
        return list(found.values())

    def label(self) -> str:
        """`[python code: parse_date]`: the language and the defined names, or the first of the commands."""
        kind = f"{self.language} code".lstrip()
        what = ", ".join(definition.name for definition in self.definitions()[:_MAX_NAMES])
        if not what and self.language in _COMMANDS:
            what = self._first_line()
        return f"[{kind}: {what}]" if what else f"[{kind}]"

    def _first_line(self) -> str:
        for line in self.lines:
            stripped = " ".join(line[:_MAX_LINE].split())
            if stripped and not stripped.startswith(_COMMENT) and any(map(str.isalnum, stripped)):
                # A sentence ender or a bracket inside the label would split the label.
                plain = stripped.translate(_UNBRACKET).replace(". ", " ").replace("? ", " ").replace("! ", " ")
                if len(plain) <= _MAX_SNIPPET:
                    return plain
                return plain[:_MAX_SNIPPET].rpartition(" ")[0] or plain[:_MAX_SNIPPET]
        return ""


_UNBRACKET: Final = str.maketrans({"[": "(", "]": ")", "`": "'"})


def code_blocks(text: str) -> Iterator[tuple[str, CodeBlock | None]]:
    """The text in order, as pairs of prose and the block after it. The block is None after the last prose.

    A fence that is never closed reaches to the end of the text.
    """
    for prose, code in _parts(text):
        yield prose, None if code is None else _block(code)


def collapse_code(text: str) -> str:
    """The text with every block replaced by its label."""
    if FENCE not in text:
        return text
    labels: dict[str, str] = {}  # a text may consist of the same block again and again
    found: list[str] = []
    for prose, code in _parts(text):
        found.append(prose)
        if code is not None:
            if code not in labels:
                labels[code] = f" {_block(code).label()}\n"
            found.append(labels[code])
    return "".join(found)


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    parts = text.split(FENCE)
    for number in range(0, len(parts), 2):
        yield parts[number], parts[number + 1] if number + 1 < len(parts) else None


def _block(code: str) -> CodeBlock:
    head = _LANGUAGE().match(code)
    language = (head.group(1) or "").lower() if head else ""
    body = code[head.end() :] if head else code
    return CodeBlock(language, tuple(body.split("\n", _MAX_LINES)[:_MAX_LINES]))
