"""Stores what records state, and which statement ended which. Implements `ports.facts.FactReader`.

Derived from the records: every change of a record changes its facts in the same transaction. A new statement is
compared with those of its line that stand. All work of one call runs in one step on the connection's thread.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.facts import StatedFact
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.facts.statements import RULES_VERSION
from kalito_mcp.long_texts import read_aside
from kalito_mcp.storage.sqlite.fact_lines import add, remove
from kalito_mcp.storage.sqlite.fact_rows import (
    SOURCE_COLUMNS,
    STATED_COLUMNS,
    SUPERSEDES,
    Source,
    Stated,
    fact,
    fact_within,
    read_source,
    whole_record,
)
from kalito_mcp.storage.sqlite.queries import Queries, limits_of, within
from kalito_mcp.storage.sqlite.records import SELECT_AGENT_KEY

SELECT_STATED: Final = f"""
SELECT {STATED_COLUMNS}
FROM facts f JOIN records r ON r.key = f.record_key LEFT JOIN records n ON n.key = f.superseded_by
    LEFT JOIN records c ON c.key = f.conflict_key
WHERE f.record_key IN (SELECT value FROM json_each(:keys)) AND {fact_within("f")}
ORDER BY f.record_key, f.first, f.place
"""
SELECT_SUPERSEDED: Final = f"""
SELECT r.key, r.id, length(r.text), r.created_at, coalesce(r.recorded_at, r.created_at), s.by_key, n.id, s.ordered_at,
    coalesce(n.recorded_at, n.created_at)
FROM superseded_records s JOIN records r ON r.key = s.record_key JOIN records n ON n.key = s.by_key
WHERE s.record_key IN (SELECT value FROM json_each(:keys)) AND {within("n")} ORDER BY r.key, s.ordered_at
"""
_IN_SCOPE: Final = f"""
    f.agent_key = :agent_key AND f.project_key IN (
        SELECT 0 UNION ALL SELECT key FROM projects WHERE owner = :owner AND (:project IS NULL OR id = :project)
    ) AND (:session IS NULL OR f.session_key = (SELECT key FROM sessions WHERE owner = :owner AND id = :session))
    AND {fact_within("f")}
"""
SELECT_CURRENT: Final = f"""
SELECT {STATED_COLUMNS}
FROM facts f JOIN records r ON r.key = f.record_key LEFT JOIN records n ON n.key = f.superseded_by
    LEFT JOIN records c ON c.key = f.conflict_key
WHERE {_IN_SCOPE} AND f.superseded_by IS NULL AND f.polarity = 'is' AND f.is_echo = 0
    AND (:subject IS NULL OR f.subject = :subject)
    AND NOT EXISTS (
        SELECT 1 FROM facts g INDEXED BY facts_lines
        WHERE g.agent_key = f.agent_key AND g.project_key = f.project_key AND g.subject = f.subject
            AND g.attribute = f.attribute AND g.value = f.value AND g.superseded_by IS NULL AND g.polarity = 'is'
            AND g.is_echo = 0 AND (g.ordered_at, g.record_key) > (f.ordered_at, f.record_key)
    )
ORDER BY f.subject, f.attribute, f.ordered_at DESC LIMIT :limit
"""
SELECT_LINE: Final = f"""
SELECT {STATED_COLUMNS}
FROM facts f JOIN records r ON r.key = f.record_key LEFT JOIN records n ON n.key = f.superseded_by
    LEFT JOIN records c ON c.key = f.conflict_key
WHERE {_IN_SCOPE} AND f.subject = :subject AND f.attribute = :attribute AND f.is_echo = 0
ORDER BY f.ordered_at DESC, f.record_key DESC LIMIT :limit
"""
SELECT_CONFLICTS: Final = f"""
SELECT f.record_key, f.place, f.conflict_key FROM facts f
WHERE {_IN_SCOPE} AND f.conflict_key IS NOT NULL AND f.superseded_by IS NULL AND f.is_echo = 0
ORDER BY f.conflict_key DESC LIMIT :limit
"""
SELECT_SOURCES: Final = f"""
SELECT {SOURCE_COLUMNS} FROM records r WHERE r.key > :done_key AND r.key <= :last_key ORDER BY r.key LIMIT 100
"""
SELECT_SOURCES_OF_SESSION: Final = f"SELECT {SOURCE_COLUMNS} FROM records r WHERE r.session_key = :session_key"
SELECT_STATE: Final = "SELECT rules, done_key, last_key FROM facts_state"
UPDATE_STATE: Final = "UPDATE facts_state SET rules = :rules, done_key = :done_key, last_key = :last_key"
SELECT_LAST_KEY: Final = "SELECT coalesce(max(key), 0) FROM records"
DELETE_ALL_FACTS: Final = "DELETE FROM facts"
DELETE_ALL_SUPERSEDED: Final = "DELETE FROM superseded_records"


_MOST_AT_ONCE: Final = 200
"""Records of one call that are read for statements before it returns: in a twentieth of a second."""

_LONG_CHARS: Final = 5_000
"""Of records that are read for statements in a millisecond."""


class FactQueries(Queries):
    """`ports.facts.FactReader`."""

    async def of_records(self, scope: Scope, keys: Sequence[int]) -> Mapping[int, Sequence[StatedFact]]:
        asked = {"keys": json.dumps(list(keys)), "owner": scope.owner, **limits_of(scope)}
        found: dict[int, list[StatedFact]] = {}
        for row in await self._all(SELECT_STATED, **asked):
            found.setdefault(row[0], []).append(fact(row))
        for row in await self._all(SELECT_SUPERSEDED, **asked):
            found.setdefault(row[0], []).append(whole_record(row))
        return found

    async def current(self, scope: Scope, *, subject: str | None = None, limit: int) -> Sequence[StatedFact]:
        return [fact(row) for row in await self._in_scope(SELECT_CURRENT, scope, subject=subject, limit=limit)]

    async def line(self, scope: Scope, subject: str, attribute: str, *, limit: int) -> Sequence[StatedFact]:
        found = await self._in_scope(SELECT_LINE, scope, subject=subject, attribute=attribute, limit=limit)
        return [fact(row) for row in found]

    async def conflicts(self, scope: Scope, *, limit: int) -> Sequence[tuple[StatedFact, StatedFact]]:
        rows = await self._in_scope(SELECT_CONFLICTS, scope, limit=limit)
        stated_by = await self.of_records(scope, [key for row in rows for key in (row[0], row[2])])
        pairs: list[tuple[StatedFact, StatedFact]] = []
        for older_key, _, newer_key in rows:
            for older in stated_by.get(older_key, ()):
                newer = next((one for one in stated_by.get(newer_key, ()) if _is_of_line(one, older)), None)
                if older.conflicts_with is not None and newer is not None:
                    pairs.append((older, newer))
        return list(dict.fromkeys(pairs))

    async def is_behind(self) -> bool:
        [[_, done_key, last_key]] = await self._all(SELECT_STATE)
        return bool(done_key < last_key)

    async def left(self) -> tuple[int, Sequence[Source]]:
        """How many records a rebuild has still to read, by their keys, and the next of them. Where some were erased,
        they are fewer: counting them at every piece would take longer than reading them."""
        [[_, done_key, last_key]] = await self._all(SELECT_STATE)
        if done_key >= last_key:
            return 0, ()
        return last_key - done_key, await self._sources(done_key, last_key)

    async def _sources(self, done_key: int, last_key: int) -> list[Source]:
        return [Source(*row) for row in await self._all(SELECT_SOURCES, done_key=done_key, last_key=last_key)]

    async def _in_scope(self, statement: str, scope: Scope, **parameters: Any) -> list[Any]:
        asked = {"owner": scope.owner, "session": scope.session, **limits_of(scope)}
        keys = await self._all(SELECT_AGENT_KEY, agent=scope.agent, default_agent=DEFAULT_AGENT, **asked)
        if not keys:
            return []
        return await self._all(statement, agent_key=keys[0][0], project=scope.project, **asked, **parameters)


class FactStatements(FactQueries):
    """Changes the facts inside a write transaction."""

    async def add(self, sources: Iterable[Source]) -> None:
        """Add what these new records state. A large batch is read in the background, as in a rebuild, unless it names
        records to supersede.

        Raises:
            RecordNotFound: one names a record to supersede that its agent and project do not have.
        """
        listed = list(sources)
        if len(listed) > _MOST_AT_ONCE and not any(SUPERSEDES in (one.attributes or "") for one in listed):
            await self._leave_for_later(listed[0].key, listed[-1].key)
            return

        def read() -> list[tuple[Source, Stated]]:
            new = ((one, read_source(one)) for one in listed)
            return [one for one in new if any(one[1])]

        # A batch takes longer to read than other calls should wait.
        stating = await read_aside(sum(len(one.text) for one in listed), read, most=_LONG_CHARS)
        if stating:

            def run(connection: sqlite3.Connection) -> None:
                for source, read in stating:
                    add(connection, source, *read, named=read.superseded_ids)

            await self._on_thread(run)

    async def replace(self, sources: Sequence[Source], *, before: Source | None = None) -> None:
        """Replace what changed records state. A record that is forgotten or internal states nothing. `before` is the
        one that was edited.

        Raises:
            RecordNotFound: the edit names a record to supersede that its agent and project do not have.
        """
        read = [(source, read_source(source)) for source in sources]
        # To restore a record names nothing anew.
        known = None if before is None or before.deleted_at is not None else read_source(before).superseded_ids
        await self._on_thread(lambda connection: _replace(connection, read, known))

    async def move(self, session_key: int) -> None:
        """Read the records of a session again, which has another project now."""
        rows = await self._all(SELECT_SOURCES_OF_SESSION, session_key=session_key)
        await self.replace([Source(*row) for row in rows])

    async def remove(self, key: int) -> None:
        """Remove what an erased record stated."""
        await self._on_thread(lambda connection: remove(connection, key))

    async def restart(self, *, is_forced: bool) -> int:
        """Begin a rebuild if other rules made the facts, or if it is forced. How many records are left to read."""
        [[rules, _, _]] = await self._all(SELECT_STATE)
        if is_forced or rules != RULES_VERSION:
            [[newest]] = await self._all(SELECT_LAST_KEY)
            await self._all(DELETE_ALL_FACTS)
            await self._all(DELETE_ALL_SUPERSEDED)
            await self._all(UPDATE_STATE, rules=RULES_VERSION, done_key=0, last_key=newest)
        [[_, done_key, last_key]] = await self._all(SELECT_STATE)
        return max(0, int(last_key) - int(done_key))

    async def go_on(self, read: Mapping[Source, Stated]) -> int:
        """Rebuild the facts of the next records. How many are left. `read` is what was read of them before: a record
        that was changed meanwhile is read again. Any order of calls gives the same facts."""
        [[rules, done_key, last_key]] = await self._all(SELECT_STATE)
        sources = await self._sources(done_key, last_key)
        stating = [(source, read.get(source) or read_source(source)) for source in sources]
        await self._on_thread(lambda connection: _replace(connection, stating))
        done_key = sources[-1].key if sources else last_key
        await self._all(UPDATE_STATE, rules=rules, done_key=done_key, last_key=last_key)
        return max(0, int(last_key) - int(done_key))

    async def _leave_for_later(self, first_key: int, last_key: int) -> None:
        """Leave the records with these keys to the rebuild. Those in between are read again, if it has others left."""
        [[rules, done_key, left_key]] = await self._all(SELECT_STATE)
        done_key = done_key if done_key < left_key else first_key - 1
        await self._all(UPDATE_STATE, rules=rules, done_key=done_key, last_key=max(left_key, last_key))

    async def _on_thread(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        run: Any = self._connection._execute  # the driver's own way to run a function on its thread
        await run(lambda: work(self._connection._conn))


def _replace(
    connection: sqlite3.Connection, stating: Iterable[tuple[Source, Stated]], known: Sequence[str] | None = None
) -> None:
    """Without `known`, the ids that were named before, none is named anew."""
    for source, read in stating:
        remove(connection, source.key)
        named = () if known is None else set(read.superseded_ids).difference(known)
        add(connection, source, *read, named=named)


def _is_of_line(one: StatedFact, other: StatedFact) -> bool:
    return one.subject == other.subject and one.attribute == other.attribute and one.value != other.value
