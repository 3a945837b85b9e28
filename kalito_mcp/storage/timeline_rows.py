"""Converts rows of sessions with their clients, and counts messages by moments. Runs no SQL."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kalito_mcp.ports.timeline import BegunSession
from kalito_mcp.storage.session_rows import sessions_of

QUARTER_MS: Final = 900_000


def begun(rows: Sequence[Any]) -> list[BegunSession]:
    """The sessions of rows with a client, then the columns of a session."""
    sessions = sessions_of(row[1:] for row in rows)
    return [BegunSession(session, row[0]) for row, session in zip(rows, sessions, strict=True)]


def counts_of_spans(moments: Sequence[int], spans: Iterable[Sequence[Any]]) -> tuple[list[int], list[int]]:
    """How many messages sessions have from each moment until the next, and the keys of the sessions that are not within
    one such time. A span is a session's key, its oldest and its newest moment, and the count of its messages."""
    counts = [0] * (len(moments) - 1)
    across: list[int] = []
    # Most conversations are of one day, and their row says how many messages they have.
    for key, oldest, newest, count in spans:
        place = bisect_right(moments, newest) - 1
        if bisect_right(moments, oldest) - 1 == place and 0 <= place < len(counts):
            counts[place] += count
        else:
            across.append(key)
    return counts, across


def add_quarters(counts: list[int], moments: Sequence[int], quarters: Iterable[Sequence[Any]]) -> None:
    """Add the messages of quarters of an hour, each with its first moment and its count."""
    for moment, count in quarters:
        counts[bisect_right(moments, moment) - 1] += count
