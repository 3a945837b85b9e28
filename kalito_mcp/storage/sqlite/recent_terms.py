"""The terms of an agent's newest records, from their texts.

After each message FTS5 would have to be queried again for every term of a question with each of its count marks, and
for the words that identify a language: some hundred terms, 25 us each, for a record or two. Their texts are
read instead, once per process.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.sqlite.text_index import entry_of_row

SELECT_NEW_TEXTS: Final = """
SELECT key, agent_key, text, name FROM records
WHERE agent_key = :agent_key AND key > :after_key AND key <= :last_key AND deleted_at IS NULL ORDER BY key
"""
_MOST_WORDS: Final = 5_000
"""Of new records that are read at once: some milliseconds."""

_MOST_RECORDS: Final = 1_000
"""Terms kept. Beyond that FTS5 is asked once for each term, and the count starts again."""


class RecentTerms:
    """Which of the newest records contain a term: their places, by marked term (see `text_index`)."""

    def __init__(self) -> None:
        self._places: dict[str, list[int]] = {}
        self._count = 0
        self._after_key = 0
        """All records of the agent after this key are known."""

    def begin_after(self, key: int) -> None:
        """Forget all, and begin after this key, where there are no records yet."""
        self._places, self._count, self._after_key = {}, 0, key

    def add(self, connection: sqlite3.Connection, agent_key: int, keys: Sequence[int], place: int, words: int) -> None:
        """Read the records with these keys, ascending; the first has this place. `words` is their total length; if it
        is too large, begin after them."""
        if words > _MOST_WORDS or self._count + len(keys) > _MOST_RECORDS:
            self.begin_after(keys[-1])
            return
        parameters = {"agent_key": agent_key, "after_key": keys[0] - 1, "last_key": keys[-1]}
        place_of = {key: at for at, key in enumerate(keys, place)}
        with intact_rows():
            for row in connection.execute(SELECT_NEW_TEXTS, parameters):
                for term in entry_of_row(row).terms.split():
                    self._places.setdefault(term, []).append(place_of[row[0]])
        self._count += len(keys)

    def places(self, marked: str, after_key: int) -> list[int] | None:
        """The places of the known records that contain the term, ascending, among them all after this key. None if not
        all after this key are known."""
        return None if after_key < self._after_key else self._places.get(marked, [])
