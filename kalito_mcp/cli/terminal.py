"""Input and output on a terminal."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import click

from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.safety.escaping import as_data

EXCERPT_CHARS: Final = 80
_LISTS: Final = ("tags", "related_to", "supersedes")
"""Fields that are lists of words or ids."""


def typed_fields(text: str | None, assignments: Sequence[str], unset: Sequence[str] = ()) -> dict[str, Any]:
    """The fields given by a text (`-` is standard input), --set and --unset; None removes a field.

    Raises:
        click.UsageError: an assignment without a field or a value, or a field given twice.
    """
    given: list[tuple[str, Any]] = [] if text is None else [("text", _standard_input() if text == "-" else text)]
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not name or not equals:
            raise click.UsageError(f"--set takes FIELD=VALUE, such as --set status=completed, not {assignment!r}")
        given.append((name, _listed(value) if name in _LISTS else _value(value)))
    given += [(name, None) for name in unset]
    fields = dict(given)
    if len(fields) < len(given):
        raise click.UsageError("a field is given twice; give each once")
    return fields


def _value(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)  # NaN and Infinity are words
    except (ValueError, RecursionError):
        return text


def _listed(text: str) -> Any:
    """The value of a field that is a list: as JSON, or else its parts between commas."""
    value = _value(text)
    if value is None or isinstance(value, list):
        return value
    return [part for one in text.split(",") if (part := one.strip())]


def _standard_input() -> str:
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError:
        raise InvalidInput("standard input is not UTF-8; nothing was written. Convert it to UTF-8 first") from None


def ask(question: str, *, undone: str) -> None:
    """Ask the person, and return if they say yes. `undone` says what was not done.

    Raises:
        Conflict: stdin is not a terminal. click.Abort: the person did not say yes.
    """
    if not sys.stdin.isatty():
        raise Conflict(f"{undone}: there is no terminal to ask on; add --yes to go ahead")
    click.confirm(question, abort=True)


def tell(lines: Iterable[str]) -> None:
    """Print lines, with control characters escaped: a terminal would obey them."""
    for line in lines:
        click.echo(as_data(line))


def tell_json(values: Iterable[Mapping[str, Any]]) -> None:
    """Print one JSON object a line."""
    for value in values:
        # ASCII output: JSON's own escapes, which a program can read back.
        click.echo(json.dumps(value))


def one_line(text: str, chars: int = EXCERPT_CHARS) -> str:
    """The text on one line, cut to `chars` characters and escaped."""
    line = " ".join(text[: chars * 20].split())
    return as_data(line if len(line) <= chars else f"{line[: chars - 1]}…")
