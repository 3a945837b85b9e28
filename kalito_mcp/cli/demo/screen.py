"""The layout of `kalito-mcp demo`: values in, lines of text out. Pure.

It does not know MCP and prints nothing. No line is wider than its screen. Without colour, a line has no escape codes.
If the encoding has no block elements, the marks are ASCII.
Width of a character: Unicode Standard Annex 11, as `unicodedata.east_asian_width` gives it.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import pairwise
from typing import Final

MIN_WIDTH: Final = 60
MAX_WIDTH: Final = 100

_MARGIN: Final = "  "
_ESCAPE: Final = "\x1b["
_RESET: Final = "\x1b[0m"
_WORD_OR_GAP: Final = re.compile(r"\s+|\S+")


class Tone(StrEnum):
    """Colours by purpose, as SGR parameters of the sixteen-colour palette, so that they follow the user's theme."""

    PLAIN = ""
    STRONG = "1"
    QUIET = "2"
    USER = "1;36"
    ASSISTANT = "32"
    RECENT = "36"
    PIN = "33"
    SUMMARY = "35"
    FOUND = "32"
    BAD = "31"


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The marks that a screen draws with; each is one column wide, except the ellipsis. The defaults are those for
    an encoding with block elements."""

    recent: str = "█"
    pins: str = "▓"
    summaries: str = "▒"
    found: str = "▄"
    free: str = "·"
    left: str = "▕"
    right: str = "▏"
    bar: str = "▎"
    rule: str = "─"
    upright: str = "│"
    corners: tuple[str, str, str, str] = ("╭", "╮", "╰", "╯")  # top left, top right, bottom left, bottom right
    ellipsis: str = "…"
    dot: str = "·"
    pin: str = "◆"
    auto_pin: str = "◇"
    summary: str = "≡"
    yes: str = "✓"
    no: str = "✗"


BLOCKS: Final = Glyphs()
ASCII: Final = Glyphs(
    recent="#",
    pins="@",
    summaries="=",
    found="%",
    free=".",
    left="[",
    right="]",
    bar="|",
    rule="-",
    upright="|",
    corners=("+", "+", "+", "+"),
    ellipsis="...",
    dot="-",
    pin="*",
    auto_pin="+",
    summary="=",
    yes="*",
    no="x",
)


@dataclass(frozen=True, slots=True)
class Screen:
    """Where lines go: how wide it is, whether it takes colour, and what it can draw."""

    width: int
    colour: bool
    glyphs: Glyphs
    encoding: str = "utf-8"


@dataclass(frozen=True, slots=True)
class Shares:
    """How the tokens of a context divide. The parts add up to `total`."""

    recent: int
    pins: int
    summaries: int
    found: int
    total: int
    budget: int


@dataclass(frozen=True, slots=True)
class ShownHit:
    """One hit of a search: the message's number in the script, its text, and its score (0 to 1)."""

    number: int
    speaker: str
    day: str
    text: str
    score: float
    is_expected: bool


def screen_for(columns: int, *, is_terminal: bool, no_color: bool, encoding: str) -> Screen:
    """The screen for an output of `columns` columns, between 60 and 100 wide.

    Colour only on a terminal without NO_COLOR; blocks only if the encoding has them.
    """
    try:
        _ink(BLOCKS).encode(encoding)
        glyphs = BLOCKS
    except (UnicodeEncodeError, LookupError):
        glyphs, encoding = ASCII, "ascii"
    return Screen(max(MIN_WIDTH, min(MAX_WIDTH, columns)), is_terminal and not no_color, glyphs, encoding)


def writable(screen: Screen, line: str) -> str:
    """The line, with a question mark for each character that the screen's encoding does not have."""
    return line.encode(screen.encoding, "replace").decode(screen.encoding)


def text_width(text: str) -> int:
    """Columns of the text on a terminal: wide and fullwidth characters take two, combining and invisible ones none."""
    return sum(_character_width(character) for character in text)


def printable(text: str) -> str:
    """The text without control characters: each becomes a space, line breaks stay."""
    return "".join(" " if unicodedata.category(c) == "Cc" and c != "\n" else c for c in text)


def one_line(text: str) -> str:
    """The text on one line: every run of white space and control characters is one space."""
    return " ".join(printable(text).split())


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """The longest beginning that fits `width` columns; it ends in the ellipsis if something was cut."""
    if text_width(text) <= width:
        return text
    room = width - text_width(ellipsis)
    kept: list[str] = []
    for character in text:
        room -= _character_width(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + ellipsis


def wrap(text: str, width: int, *, max_lines: int | None = None, ellipsis: str = "…") -> list[str]:
    """Lines of at most `width` columns, broken between words; a word that is too long is broken inside.

    Line breaks and indentation of the text stay. With `max_lines`, the last line ends in the ellipsis if text was cut.
    The empty text is one empty line.
    """
    lines = [line for paragraph in printable(text).split("\n") for line in _wrap_paragraph(paragraph, width)]
    if max_lines is not None and len(lines) > max_lines:
        last = lines[max_lines - 1]
        room = width - text_width(ellipsis)
        if text_width(last) > room and " " in last.strip():
            last = last[: last.rindex(" ")]
        lines[max_lines - 1 :] = [clip(last, room, "").rstrip() + ellipsis]
    return lines


def pad(text: str, width: int) -> str:
    """The text, filled with spaces up to `width` columns."""
    return text + " " * max(0, width - text_width(text))


def paint(screen: Screen, text: str, tone: Tone) -> str:
    """The text in a tone; unchanged on a screen without colour."""
    if not screen.colour or not text or tone is Tone.PLAIN:
        return text
    return f"{_ESCAPE}{tone}m{text}{_RESET}"


def heading(screen: Screen, text: str) -> list[str]:
    """An empty line, and a line across the screen with the text in it."""
    label = clip(one_line(text), screen.width - len(_MARGIN) - 6, screen.glyphs.ellipsis)
    rest = screen.width - len(_MARGIN) - 4 - text_width(label)
    rule = screen.glyphs.rule
    return [
        "",
        _MARGIN + paint(screen, rule * 2, Tone.QUIET) + f" {paint(screen, label, Tone.STRONG)} "
        + paint(screen, rule * rest, Tone.QUIET),
    ]  # fmt: skip


def prose(screen: Screen, text: str, tone: Tone = Tone.PLAIN) -> list[str]:
    """A paragraph, wrapped."""
    return [_MARGIN + paint(screen, line, tone) for line in wrap(text, screen.width - len(_MARGIN))]


def bubble(screen: Screen, number: int, speaker: str, text: str, *, is_user: bool, max_lines: int) -> list[str]:
    """One message: its number, its speaker, and as much of it as fits; line breaks become spaces."""
    tone = Tone.USER if is_user else Tone.ASSISTANT
    label = pad(clip(one_line(speaker), 9, screen.glyphs.ellipsis), 9)
    indent = len(_MARGIN) + 4 + 9 + 1
    lines = wrap(one_line(text), screen.width - indent - 2, max_lines=max_lines, ellipsis=screen.glyphs.ellipsis)
    bar = paint(screen, screen.glyphs.bar, tone)
    first = f"{_MARGIN}{paint(screen, f'{number:3d}', Tone.QUIET)} {paint(screen, label, tone)} "
    return [f"{first if at == 0 else ' ' * indent}{bar} {line}" for at, line in enumerate(lines)]


def notice(screen: Screen, mark: str, title: str, body: str, tone: Tone, *, max_lines: int = 2) -> list[str]:
    """An event outside the conversation: a mark, a title, and an abbreviated body below it."""
    indent = len(_MARGIN) + 14
    room = screen.width - indent - 2
    lines = [f"{' ' * indent}{paint(screen, f'{mark} ' + clip(one_line(title), room, screen.glyphs.ellipsis), tone)}"]
    if body:
        cut = wrap(one_line(body), room, max_lines=max_lines, ellipsis=screen.glyphs.ellipsis)
        lines += [f"{' ' * (indent + 2)}{paint(screen, line, Tone.QUIET)}" for line in cut]
    return lines


def bar_cells(parts: Sequence[int], whole: int, width: int) -> list[int]:
    """How many of `width` cells each part fills, and last how many stay free; the sum is exactly `width`.

    Each number is within one cell of its true share. If the parts exceed the whole, no cell is free. If both are 0, all
    cells are free.
    """
    scale = max(whole, sum(parts))
    if scale == 0:
        return [*(0 for _ in parts), width]
    edges = [0]
    used = 0
    for part in parts:
        used += part
        edges.append((2 * used * width + scale) // (2 * scale))
    cells = [right - left for left, right in pairwise(edges)]
    return [*cells, width - edges[-1]]


def budget_bar(screen: Screen, shares: Shares) -> list[str]:
    """The context as a bar, with its tokens and the budget, and below it the legend."""
    glyphs = screen.glyphs
    figures = f" {shares.total:,} of {shares.budget:,} tokens"
    cells_wide = screen.width - len(_MARGIN) - 4 - len(figures) - 2
    parts = (
        ("recent", shares.recent, glyphs.recent, Tone.RECENT),
        ("pins", shares.pins, glyphs.pins, Tone.PIN),
        ("summaries", shares.summaries, glyphs.summaries, Tone.SUMMARY),
        ("found", shares.found, glyphs.found, Tone.FOUND),
    )
    *filled, free = bar_cells([tokens for _, tokens, _, _ in parts], shares.budget, cells_wide)
    bar = "".join(paint(screen, part[2] * cells, part[3]) for part, cells in zip(parts, filled, strict=True))
    bar += paint(screen, glyphs.free * free, Tone.QUIET)
    legend = [(f"{glyph} {name} {tokens:,}", tone) for name, tokens, glyph, tone in parts if tokens]
    return [
        f"{_MARGIN}    {paint(screen, glyphs.left, Tone.QUIET)}{bar}{paint(screen, glyphs.right, Tone.QUIET)}"
        + paint(screen, figures, Tone.STRONG),
        *_flow(screen, legend, indent=len(_MARGIN) + 5),
    ]


def hit_list(screen: Screen, query: str, hits: Sequence[ShownHit], took_ms: float) -> list[str]:
    """A search and its hits, best first, each with its score as a number and as a short bar."""
    glyphs = screen.glyphs
    took = f"{took_ms:.0f} ms"
    room = screen.width - len(_MARGIN) - 2 - len(took) - 1
    question = clip(one_line(query), room, glyphs.ellipsis)
    lines = [
        "",
        f"{_MARGIN}{paint(screen, f'? {question}', Tone.STRONG)}"
        f"{' ' * (room - text_width(question) + 1)}{paint(screen, took, Tone.QUIET)}",
    ]
    if not hits:
        return [*lines, f"{_MARGIN}    nothing found"]
    for hit in hits:
        full, free = bar_cells([round(hit.score * 100)], 100, 8)
        meter = paint(screen, glyphs.recent * full, Tone.FOUND) + paint(screen, glyphs.free * free, Tone.QUIET)
        label = f"message {hit.number} {glyphs.dot} {hit.speaker} {glyphs.dot} {hit.day}"
        tick = f" {glyphs.yes}" if hit.is_expected else ""
        label = clip(one_line(label), screen.width - len(_MARGIN) - 4 - 8 - 6 - len(tick), glyphs.ellipsis)
        lines.append(f"{_MARGIN}    {meter} {hit.score:.2f} {label}{paint(screen, tick, Tone.FOUND)}")
        indent = len(_MARGIN) + 4 + 8 + 6
        text = clip(one_line(hit.text), screen.width - indent, glyphs.ellipsis)
        lines.append(f"{' ' * indent}{text if hit.is_expected else paint(screen, text, Tone.QUIET)}")
    return lines


def framed(screen: Screen, title: str, text: str, *, marks: Sequence[str] = ()) -> list[str]:
    """The whole text in a frame, wrapped; the words in `marks` stand out if they are on one line."""
    glyphs = screen.glyphs
    top_left, top_right, bottom_left, bottom_right = glyphs.corners
    inner = screen.width - len(_MARGIN) - 4
    label = clip(one_line(title), inner - 3, glyphs.ellipsis)
    side = paint(screen, glyphs.upright, Tone.QUIET)
    lines = [
        _MARGIN
        + paint(screen, f"{top_left}{glyphs.rule} ", Tone.QUIET)
        + paint(screen, label, Tone.STRONG)
        + paint(screen, f" {glyphs.rule * (inner - 1 - text_width(label))}{top_right}", Tone.QUIET)
    ]
    for line in wrap(text.strip("\n"), inner):
        shown = pad(line, inner)
        for mark in marks:
            shown = shown.replace(mark, paint(screen, mark, Tone.PIN))
        lines.append(f"{_MARGIN}{side} {shown} {side}")
    lines.append(_MARGIN + paint(screen, f"{bottom_left}{glyphs.rule * (inner + 2)}{bottom_right}", Tone.QUIET))
    return lines


def figures_table(screen: Screen, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Two columns: a figure and its meaning, which wraps below itself."""
    first = max((text_width(figure) for figure, _ in rows), default=0)
    indent = len(_MARGIN) + first + 2
    lines: list[str] = []
    for figure, meaning in rows:
        head = _MARGIN + " " * (first - text_width(figure)) + paint(screen, figure, Tone.STRONG) + "  "
        for at, line in enumerate(wrap(meaning, screen.width - indent)):
            lines.append((head if at == 0 else " " * indent) + line)
    return lines


def _flow(screen: Screen, entries: Sequence[tuple[str, Tone]], *, indent: int) -> list[str]:
    lines: list[str] = []
    wide = screen.width
    for text, tone in entries:
        if wide + 2 + text_width(text) > screen.width:
            lines.append(" " * indent + paint(screen, text, tone))
            wide = indent + text_width(text)
        else:
            lines[-1] += "  " + paint(screen, text, tone)
            wide += 2 + text_width(text)
    return lines


def _ink(glyphs: Glyphs) -> str:
    return "".join("".join(getattr(glyphs, field.name)) for field in fields(glyphs))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf", "Cc"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _wrap_paragraph(paragraph: str, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for piece in _WORD_OR_GAP.findall(paragraph):
        if text_width(line) + text_width(piece) <= width:
            line += piece
            continue
        if piece.isspace():
            # A gap at the edge becomes the line break.
            lines.append(line)
            line = ""
            continue
        if line.strip():
            lines.append(line.rstrip())
            line = ""
        for character in piece:
            if text_width(line) + _character_width(character) > width:
                lines.append(line)
                line = ""
            line += character
    return [*lines, line.rstrip()] if line.strip() or not lines else lines
