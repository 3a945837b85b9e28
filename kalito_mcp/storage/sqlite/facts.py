"""Stores what records state, and which statement ended which. Implements `ports.facts.FactReader`.

Derived from the records: every change of a record changes its facts in the same transaction. A new statement is
compared with those of its line that stand. All work of one call runs in one step on the connection's thread.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import anyio.to_thread

from kalito_mcp.domain.facts import ANY, Polarity, Relation, StatedFact, Statement
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.facts.lines import relation
from kalito_mcp.facts.statements import RULES_VERSION
from kalito_mcp.storage.sqlite.fact_rows import (
    SOURCE_COLUMNS,
    STATED_COLUMNS,
    Source,
    fact,
    stated,
    superseded_ids,
    whole_record,
)
from kalito_mcp.storage.sqlite.queries import Queries
from kalito_mcp.storage.sqlite.records import SELECT_AGENT_KEY, message_key

INSERT_FACT: Final = """
INSERT INTO facts (record_key, place, agent_key, project_key, session_key, subject, attribute, value, polarity,
    is_change, first, last, ordered_at, is_live, is_echo)
VALUES (:record_key, :place, :agent_key, :project_key, :session_key, :subject, :attribute, :value, :polarity,
    :is_change, :first, :last, :ordered_at, :is_live, :is_echo)
"""
# Within a session, and among records that were stored when they were said, the order is that of the keys.
SELECT_LATEST_BEFORE: Final = """
SELECT ordered_at FROM facts
WHERE agent_key = :agent_key AND project_key = :project_key AND subject = :subject AND attribute = :attribute
    AND record_key < :record_key AND is_echo = 0 AND :is_echo = 0
    AND (session_key = :session_key OR (is_live = 1 AND :is_live = 1))
ORDER BY ordered_at DESC LIMIT 1
"""
_ON_LINE: Final = """
agent_key = :agent_key AND project_key = :project_key AND subject = :subject AND attribute = :attribute"""
_BEFORE: Final = "(ordered_at, record_key, place) < (:ordered_at, :record_key, :place)"
_STANDS_THEN: Final = "(superseded_by IS NULL OR superseded_at > :ordered_at)"
SELECT_NEXT_PLACE: Final = "SELECT coalesce(max(place) + 1, 0) FROM facts WHERE record_key = :record_key"
SELECT_STANDING: Final = f"""
SELECT DISTINCT value, polarity FROM facts INDEXED BY facts_standing WHERE {_ON_LINE} AND superseded_by IS NULL
"""
SELECT_IS_LATER: Final = f"SELECT 1 FROM facts WHERE {_ON_LINE} AND ordered_at > :ordered_at LIMIT 1"
SELECT_STANDING_THEN: Final = f"""
SELECT DISTINCT value, polarity FROM facts WHERE {_ON_LINE} AND ordered_at <= :ordered_at AND {_STANDS_THEN}
"""
SELECT_ATTRIBUTES: Final = """
SELECT DISTINCT attribute FROM facts
WHERE agent_key = :agent_key AND project_key = :project_key AND subject = :subject AND superseded_by IS NULL
    AND polarity = 'is'
"""
SELECT_ATTRIBUTES_OF_VALUE: Final = """
SELECT DISTINCT attribute FROM facts
WHERE agent_key = :agent_key AND project_key = :project_key AND subject = :subject AND value = :value
    AND superseded_by IS NULL AND polarity = 'is'
"""
UPDATE_SUPERSEDED: Final = f"""
UPDATE facts INDEXED BY facts_standing SET superseded_by = :record_key, superseded_at = :ordered_at
WHERE {_ON_LINE} AND value = :old_value AND polarity = :old_polarity AND superseded_by IS NULL AND {_BEFORE}
"""
# What stood until later than that.
UPDATE_SUPERSEDED_EARLIER: Final = f"""
UPDATE facts SET superseded_by = :record_key, superseded_at = :ordered_at
WHERE {_ON_LINE} AND value = :old_value AND polarity = :old_polarity AND superseded_at > :ordered_at AND {_BEFORE}
"""
UPDATE_CONFLICTS: Final = f"""
UPDATE facts INDEXED BY facts_standing SET conflict_key = :record_key
WHERE {_ON_LINE} AND value = :old_value AND polarity = :old_polarity AND {_BEFORE} AND superseded_by IS NULL
    AND conflict_key IS NULL AND record_key <> :record_key
"""
UPDATE_ENDED_SUBJECT: Final = """
UPDATE facts SET superseded_by = :record_key, superseded_at = :ordered_at
WHERE agent_key = :agent_key AND project_key = :project_key AND subject = :part AND ordered_at <= :ordered_at
    AND superseded_by IS NULL AND record_key < :record_key
"""
SELECT_LATER: Final = f"""
SELECT record_key, place, value, polarity, is_change, ordered_at FROM facts
WHERE {_ON_LINE} AND (value <> :value OR polarity <> :polarity) AND is_echo = 0
    AND (ordered_at, record_key, place) > (:ordered_at, :said_key, :place)
ORDER BY ordered_at, record_key, place LIMIT 1000
"""
SELECT_STANDING_BEFORE: Final = f"""
SELECT record_key, value, polarity, ordered_at FROM facts
WHERE {_ON_LINE} AND polarity = 'is' AND superseded_by IS NULL AND is_echo = 0 AND {_BEFORE}
ORDER BY ordered_at DESC, record_key DESC LIMIT 1
"""
_END: Final = "UPDATE facts SET superseded_by = :by_key, superseded_at = :at"
UPDATE_SUPERSEDED_ONE: Final = f"{_END} WHERE record_key = :record_key AND place = :place"
SELECT_FACTS_OF: Final = "SELECT 1 FROM facts WHERE record_key = :key LIMIT 1"
DELETE_FACTS: Final = "DELETE FROM facts WHERE record_key = :key"
SELECT_FREED: Final = """
SELECT record_key, place, agent_key, project_key, session_key, subject, attribute, value, polarity, is_change, first,
    last, ordered_at, is_live, is_echo, coalesce((
        SELECT CAST(substr(json_extract(r.attributes, '$.source_message_id'), 5) AS INTEGER) FROM records r
        WHERE r.key = record_key AND is_echo = 1
    ), record_key) AS said_key
FROM facts WHERE superseded_by = :key
"""
UPDATE_FREED: Final = "UPDATE facts SET superseded_by = NULL, superseded_at = NULL WHERE superseded_by = :key"
UPDATE_SETTLED: Final = "UPDATE facts SET conflict_key = NULL WHERE conflict_key = :key"
INSERT_SUPERSEDED: Final = """
INSERT OR IGNORE INTO superseded_records (by_key, record_key, ordered_at)
SELECT :by_key, key, :ordered_at FROM records
WHERE key = coalesce(:number, (SELECT key FROM records WHERE id = :id)) AND agent_key = :agent_key
    AND project_key IS :project_key AND purged_at IS NULL AND key <> :by_key
RETURNING record_key
"""
DELETE_SUPERSEDED: Final = "DELETE FROM superseded_records WHERE by_key = :key"
SELECT_STATED: Final = f"""
SELECT {STATED_COLUMNS}
FROM facts f JOIN records r ON r.key = f.record_key LEFT JOIN records n ON n.key = f.superseded_by
    LEFT JOIN records c ON c.key = f.conflict_key
WHERE f.record_key IN (SELECT value FROM json_each(:keys)) ORDER BY f.record_key, f.first, f.place
"""
SELECT_SUPERSEDED: Final = """
SELECT r.key, r.id, length(r.text), r.created_at, coalesce(r.recorded_at, r.created_at), s.by_key, n.id, s.ordered_at,
    coalesce(n.recorded_at, n.created_at)
FROM superseded_records s JOIN records r ON r.key = s.record_key JOIN records n ON n.key = s.by_key
WHERE s.record_key IN (SELECT value FROM json_each(:keys)) ORDER BY r.key, s.ordered_at
"""
_IN_SCOPE: Final = """
    f.agent_key = :agent_key AND (:project IS NULL OR f.project_key = 0 OR f.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    )) AND (:session IS NULL OR f.session_key = (SELECT key FROM sessions WHERE owner = :owner AND id = :session))
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
SELECT {SOURCE_COLUMNS} FROM records r WHERE r.key > :done_key AND r.key <= :last_key ORDER BY r.key LIMIT 500
"""
SELECT_SOURCES_OF_SESSION: Final = f"SELECT {SOURCE_COLUMNS} FROM records r WHERE r.session_key = :session_key"
SELECT_STATE: Final = "SELECT rules, done_key, last_key FROM facts_state"
UPDATE_STATE: Final = "UPDATE facts_state SET rules = :rules, done_key = :done_key, last_key = :last_key"
SELECT_LAST_KEY: Final = "SELECT coalesce(max(key), 0) FROM records"
DELETE_ALL_FACTS: Final = "DELETE FROM facts"
DELETE_ALL_SUPERSEDED: Final = "DELETE FROM superseded_records"


_LONG_CHARS: Final = 5_000
"""Of records that are read for statements in a millisecond."""


class FactQueries(Queries):
    """`ports.facts.FactReader`."""

    async def of_records(self, keys: Sequence[int]) -> Mapping[int, Sequence[StatedFact]]:
        asked = json.dumps(list(keys))
        found: dict[int, list[StatedFact]] = {}
        for row in await self._all(SELECT_STATED, keys=asked):
            found.setdefault(row[0], []).append(fact(row))
        for row in await self._all(SELECT_SUPERSEDED, keys=asked):
            found.setdefault(row[0], []).append(whole_record(row))
        return found

    async def current(self, scope: Scope, *, subject: str | None = None, limit: int) -> Sequence[StatedFact]:
        return [fact(row) for row in await self._in_scope(SELECT_CURRENT, scope, subject=subject, limit=limit)]

    async def line(self, scope: Scope, subject: str, attribute: str, *, limit: int) -> Sequence[StatedFact]:
        found = await self._in_scope(SELECT_LINE, scope, subject=subject, attribute=attribute, limit=limit)
        return [fact(row) for row in found]

    async def conflicts(self, scope: Scope, *, limit: int) -> Sequence[tuple[StatedFact, StatedFact]]:
        rows = await self._in_scope(SELECT_CONFLICTS, scope, limit=limit)
        stated_by = await self.of_records([key for row in rows for key in (row[0], row[2])])
        pairs: list[tuple[StatedFact, StatedFact]] = []
        for older_key, _, newer_key in rows:
            for older in stated_by.get(older_key, ()):
                newer = next((one for one in stated_by.get(newer_key, ()) if _is_of_line(one, older)), None)
                if older.conflicts_with is not None and newer is not None:
                    pairs.append((older, newer))
        return list(dict.fromkeys(pairs))

    async def _in_scope(self, statement: str, scope: Scope, **parameters: Any) -> list[Any]:
        asked = {"owner": scope.owner, "session": scope.session}
        keys = await self._all(SELECT_AGENT_KEY, agent=scope.agent, default_agent=DEFAULT_AGENT, **asked)
        if not keys:
            return []
        return await self._all(statement, agent_key=keys[0][0], project=scope.project, **asked, **parameters)


class FactStatements(FactQueries):
    """Changes the facts inside a write transaction."""

    async def add(self, sources: Iterable[Source]) -> None:
        """Add what these new records state.

        Raises:
            RecordNotFound: one names a record to supersede that its agent and project do not have.
        """
        listed = list(sources)

        def read() -> list[tuple[Source, list[Statement], list[str]]]:
            new = ((one, stated(one), superseded_ids(one)) for one in listed)
            return [one for one in new if one[1] or one[2]]

        # A batch takes longer to read than other calls should wait.
        is_batch = sum(len(one.text) for one in listed) > _LONG_CHARS
        stating = await anyio.to_thread.run_sync(read) if is_batch else read()
        if stating:

            def run(connection: sqlite3.Connection) -> None:
                for source, found, ids in stating:
                    _add(connection, source, found, ids, is_new=True)

            await self._on_thread(run)

    async def replace(self, sources: Sequence[Source]) -> None:
        """Replace what changed records state. A record that is forgotten or internal states nothing."""
        read = [(source, stated(source), superseded_ids(source)) for source in sources]

        def run(connection: sqlite3.Connection) -> None:
            for source, found, ids in read:
                _remove(connection, source.key)
                _add(connection, source, found, ids)

        await self._on_thread(run)

    async def move(self, session_key: int) -> None:
        """Read the records of a session again, which has another project now."""
        rows = await self._all(SELECT_SOURCES_OF_SESSION, session_key=session_key)
        await self.replace([Source(*row) for row in rows])

    async def remove(self, key: int) -> None:
        """Remove what an erased record stated."""
        await self._on_thread(lambda connection: _remove(connection, key))

    async def restart(self, *, is_forced: bool) -> bool:
        """Begin a rebuild if other rules made the facts, or if it is forced. Whether there is something to rebuild."""
        [[rules, done_key, last_key]] = await self._all(SELECT_STATE)
        if not is_forced and rules == RULES_VERSION:
            return bool(done_key < last_key)
        [[newest]] = await self._all(SELECT_LAST_KEY)
        await self._all(DELETE_ALL_FACTS)
        await self._all(DELETE_ALL_SUPERSEDED)
        await self._all(UPDATE_STATE, rules=RULES_VERSION, done_key=0, last_key=newest)
        return bool(newest)

    async def go_on(self) -> bool:
        """Rebuild the facts of the next 500 records. Whether more are left. What was added or changed meanwhile is
        read again, so that any order of calls gives the same facts."""
        [[rules, done_key, last_key]] = await self._all(SELECT_STATE)
        rows = await self._all(SELECT_SOURCES, done_key=done_key, last_key=last_key)
        sources = [Source(*row) for row in rows]
        await self.replace(sources)
        done_key = sources[-1].key if sources else last_key
        await self._all(UPDATE_STATE, rules=rules, done_key=done_key, last_key=last_key)
        return bool(done_key < last_key)

    async def _on_thread(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        run: Any = self._connection._execute  # the driver's own way to run a function on its thread
        await run(lambda: work(self._connection._conn))


def _is_of_line(one: StatedFact, other: StatedFact) -> bool:
    return one.subject == other.subject and one.attribute == other.attribute and one.value != other.value


def _add(
    connection: sqlite3.Connection,
    source: Source,
    found: Sequence[Statement],
    ids: Sequence[str],
    *,
    is_new: bool = False,
) -> None:
    for statement in found:
        _add_statement(connection, source, statement)
    place = {"agent_key": source.agent_key, "project_key": source.project_key}
    for record_id in ids:
        ended = {"number": message_key(record_id), "id": record_id, "by_key": source.key}
        found = connection.execute(INSERT_SUPERSEDED, {**ended, **place, "ordered_at": source.created_at}).fetchall()
        if not found and is_new:
            raise RecordNotFound(f"no record {record_id!r} here to supersede; send ids as a search returns them")


def _add_statement(connection: sqlite3.Connection, source: Source, statement: Statement) -> None:
    row: dict[str, Any] = {
        "record_key": source.key,
        "said_key": source.said_key,
        "agent_key": source.agent_key,
        "project_key": source.project_key or 0,
        "session_key": source.session_key,
        "subject": statement.subject,
        "attribute": statement.attribute,
        "value": statement.value,
        "polarity": str(statement.polarity),
        "is_change": int(statement.is_change),
        "first": statement.start,
        "last": statement.end,
        "is_live": int(source.is_live),
        "is_echo": int(source.is_echo),
    }
    if statement.attribute == ANY:
        for [attribute] in connection.execute(SELECT_ATTRIBUTES_OF_VALUE, row).fetchall():
            _place_in_line(connection, source, {**row, "attribute": attribute})
        return
    if statement.attribute == "move":
        row["attribute"] = _moved_attribute(connection, row)
    _place_in_line(connection, source, row)


def _moved_attribute(connection: sqlite3.Connection, row: Mapping[str, Any]) -> str:
    """Whether `moved to X` means a home or an employer: the latter only if that alone is known of the subject."""
    known = {attribute for [attribute] in connection.execute(SELECT_ATTRIBUTES, row)}
    return "employer" if "employer" in known and known.isdisjoint(("home", "address")) else "home"


def _place_in_line(connection: sqlite3.Connection, source: Source, row: dict[str, Any]) -> None:
    """Store a statement, and what it means for the others of its line."""
    before = connection.execute(SELECT_LATEST_BEFORE, row).fetchone()
    row["ordered_at"] = max(source.created_at, before[0]) if before else source.created_at
    is_newest = connection.execute(SELECT_IS_LATER, row).fetchone() is None
    standing = connection.execute(SELECT_STANDING if is_newest else SELECT_STANDING_THEN, row).fetchall()
    [row["place"]] = connection.execute(SELECT_NEXT_PLACE, row).fetchone()
    connection.execute(INSERT_FACT, row)
    _end_earlier(connection, row, standing, is_newest=is_newest)
    _end_by_later(connection, row)


def _end_earlier(
    connection: sqlite3.Connection, row: Mapping[str, Any], standing: Sequence[tuple[str, str]], *, is_newest: bool
) -> None:
    newer = row["value"], Polarity(row["polarity"])
    if row["is_echo"]:
        return
    for value, polarity in standing:
        meant = relation(row["attribute"], (value, Polarity(polarity)), newer, is_change=bool(row["is_change"]))
        old = {**row, "old_value": value, "old_polarity": polarity}
        if meant is Relation.SUPERSEDES:
            connection.execute(UPDATE_SUPERSEDED, old)
            if not is_newest:
                connection.execute(UPDATE_SUPERSEDED_EARLIER, old)
        elif meant is Relation.CONFLICT:
            connection.execute(UPDATE_CONFLICTS, old)
    if newer == ("no", Polarity.IS) and row["attribute"].startswith("have "):
        connection.execute(UPDATE_ENDED_SUBJECT, {**row, "part": f"{row['subject']} {row['attribute'][5:]}"})


def _end_by_later(connection: sqlite3.Connection, row: Mapping[str, Any]) -> None:
    """End the statement if a later one did already, or if it tells of a past before what stands."""
    older = row["value"], Polarity(row["polarity"])
    key = {"record_key": row["record_key"], "place": row["place"]}
    for by_key, _, value, polarity, is_change, at in connection.execute(SELECT_LATER, row):
        meant = relation(row["attribute"], older, (value, Polarity(polarity)), is_change=bool(is_change))
        if meant is Relation.SUPERSEDES and by_key != row["record_key"]:
            connection.execute(UPDATE_SUPERSEDED_ONE, {**key, "by_key": by_key, "at": at})
            return
    if older[1] is Polarity.WAS:
        found = connection.execute(SELECT_STANDING_BEFORE, row).fetchone()
        if found and found[0] != row["record_key"] and found[1] != row["value"]:
            connection.execute(UPDATE_SUPERSEDED_ONE, {**key, "by_key": found[0], "at": found[3]})


def _remove(connection: sqlite3.Connection, key: int) -> None:
    """Remove the statements of a record. Those that it ended stand again, unless another one ended them too."""
    connection.execute(DELETE_SUPERSEDED, {"key": key})
    if connection.execute(SELECT_FACTS_OF, {"key": key}).fetchone() is None:
        return
    cursor = connection.execute(SELECT_FREED, {"key": key})
    names = [column[0] for column in cursor.description]
    freed = [dict(zip(names, row, strict=True)) for row in cursor.fetchall() if row[0] != key]
    connection.execute(DELETE_FACTS, {"key": key})
    connection.execute(UPDATE_FREED, {"key": key})
    connection.execute(UPDATE_SETTLED, {"key": key})
    for row in freed:
        _end_by_later(connection, row)
