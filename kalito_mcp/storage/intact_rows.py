"""What is wrong with a row that kalito did not write like this."""

from collections.abc import Iterator
from contextlib import contextmanager


class UnreadableRow(Exception):
    """A row contains a value that kalito never writes: its bytes were damaged."""


@contextmanager
def intact_rows() -> Iterator[None]:
    """Raise UnreadableRow for whatever goes wrong while rows are converted to values."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise UnreadableRow("a row is damaged") from error
