"""Shared by the three writers: the path of a value, and why a text is refused. Pure."""

from typing import Any, Protocol

Key = str | int
"""A name in an object, or a number in an array."""
Place = tuple[Key, ...]
"""The way to a value from the top of a document."""


class NotReadable(ValueError):
    """The text is not of its format. The message has the line and the column, which count from 1."""

    def __init__(self, why: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {why}")


class NotEditable(ValueError):
    """The text is well-formed, but this cannot be written into it without touching something else."""


class Writer(Protocol):
    """A format. Each function raises NotReadable if the text is not of it; the editing ones also NotEditable."""

    def parse(self, text: str) -> Any:
        """The value that the text states."""

    def put(self, text: str, path: Place, value: Any) -> str:
        """The text with `value` at `path`."""

    def remove(self, text: str, path: Place) -> str:
        """The text without what is at `path`; the same text if nothing is."""


def value_at(document: Any, path: Place) -> Any:
    """The value at `path`, or None."""
    for key in path:
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and isinstance(key, int) and key < len(document):
            document = document[key]
        else:
            return None
    return document
