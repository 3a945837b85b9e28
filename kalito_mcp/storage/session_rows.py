"""Converts rows of sessions. Runs no SQL."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import NumberedSession

_STATE_PLACE: Final = 4


def sessions_of(rows: Iterable[Any]) -> Iterator[Session]:
    """The sessions of rows with the key, then the fields of `Session` in order."""
    for row in rows:
        fields = list(row)
        with intact_rows():
            fields[_STATE_PLACE] = SessionState(fields[_STATE_PLACE])
        fields[-1] = bool(fields[-1])
        key, *others = fields
        yield NumberedSession(*others, key=key)
