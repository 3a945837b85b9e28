"""Places statements in their lines, and ends those that a newer one supersedes. Runs on the connection's thread."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.facts import ANY, USER_SUBJECT, Polarity, Relation, Statement
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.facts.attributes import is_multiple
from kalito_mcp.facts.lines import is_ambiguous, names, relation
from kalito_mcp.facts.statements import HERE
from kalito_mcp.facts.vocabulary import stems
from kalito_mcp.storage.sqlite.fact_rows import Source, polarity_of
from kalito_mcp.storage.sqlite.records import message_key
from kalito_mcp.text.analysis import fold

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
_ENDED_LATER: Final = "(superseded_at, superseded_by) > (:ordered_at, :record_key)"
SELECT_NEXT_PLACE: Final = "SELECT coalesce(max(place) + 1, 0) FROM facts WHERE record_key = :record_key"
SELECT_STANDING: Final = f"""
SELECT DISTINCT value, polarity FROM facts INDEXED BY facts_standing WHERE {_ON_LINE} AND superseded_by IS NULL
"""
SELECT_IS_LATER: Final = f"""
SELECT 1 FROM facts WHERE {_ON_LINE} AND ordered_at >= :ordered_at
    AND (ordered_at > :ordered_at OR record_key > :record_key) LIMIT 1
"""
SELECT_STANDING_THEN: Final = f"""
SELECT DISTINCT value, polarity FROM facts WHERE {_ON_LINE} AND {_BEFORE} AND (superseded_by IS NULL OR {_ENDED_LATER})
"""
_IS_STANDING_WITH: Final = """
superseded_by IS NULL AND polarity = 'is' AND (instr(value, :part) OR instr(attribute, :part))"""
SELECT_ATTRIBUTES: Final = """
SELECT DISTINCT attribute FROM facts
WHERE agent_key = :agent_key AND project_key = :project_key AND subject = :subject AND superseded_by IS NULL
    AND polarity = 'is'
"""
# Of the subject and, if that is the speaker, of the things of conversations (`the deadline`).
SELECT_STANDING_WITH: Final = f"""
SELECT DISTINCT subject, attribute, value FROM facts
WHERE agent_key = :agent_key AND project_key = :project_key AND subject = :subject AND {_IS_STANDING_WITH}
UNION
SELECT DISTINCT subject, attribute, value FROM facts
WHERE :is_speaker AND agent_key = :agent_key AND project_key = :project_key AND subject >= '{HERE}'
    AND subject < '{HERE}~' AND {_IS_STANDING_WITH}
ORDER BY subject, attribute, value LIMIT 100
"""
UPDATE_SUPERSEDED: Final = f"""
UPDATE facts INDEXED BY facts_standing SET superseded_by = :record_key, superseded_at = :ordered_at
WHERE {_ON_LINE} AND value = :old_value AND polarity = :old_polarity AND superseded_by IS NULL AND {_BEFORE}
"""
# What stood until later than that.
UPDATE_SUPERSEDED_EARLIER: Final = f"""
UPDATE facts SET superseded_by = :record_key, superseded_at = :ordered_at
WHERE {_ON_LINE} AND value = :old_value AND polarity = :old_polarity AND {_ENDED_LATER} AND {_BEFORE}
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
SELECT_PROJECT: Final = "SELECT project_key FROM records WHERE key = :key"
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


def add(
    connection: sqlite3.Connection,
    source: Source,
    found: Sequence[Statement],
    ids: Sequence[str],
    *,
    named: Collection[str] = (),
) -> None:
    """Store what a record states, and which records it supersedes as a whole. `named` are those of the ids that
    somebody names just now.

    Raises:
        RecordNotFound: one of `named` is of no record of its agent and project.
    """
    for statement in found:
        _add_statement(connection, source, statement)
    place = {"agent_key": source.agent_key, "project_key": source.project_key}
    for record_id in ids:
        ended = {"number": message_key(record_id), "id": record_id, "by_key": source.key}
        found = connection.execute(INSERT_SUPERSEDED, {**ended, **place, "ordered_at": source.created_at}).fetchall()
        if not found and record_id in named:
            raise RecordNotFound(f"no record {record_id!r} here to supersede; send ids as a search returns them")


def _project_of(connection: sqlite3.Connection, source: Source) -> int:
    """The project whose lines a record is in: for a pin of a message that of the message, wherever the pin is known."""
    found = connection.execute(SELECT_PROJECT, {"key": source.said_key}).fetchone() if source.is_echo else None
    return (found[0] if found else source.project_key) or 0


def _add_statement(connection: sqlite3.Connection, source: Source, statement: Statement) -> None:
    row: dict[str, Any] = {
        "record_key": source.key,
        "said_key": source.said_key,
        "agent_key": source.agent_key,
        "project_key": _project_of(connection, source),
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
        for subject, attribute, value in _named(connection, source, statement.value, row):
            ended = ("no", str(Polarity.IS)) if is_multiple(attribute) else (value, str(Polarity.NOT))
            line = {"subject": subject, "attribute": attribute, "value": ended[0], "polarity": ended[1]}
            _place_in_line(connection, source, {**row, **line, "is_change": 1})
        return
    if statement.attribute == "move":
        row["attribute"] = _moved_attribute(connection, row)
    _place_in_line(connection, source, row)


def _named(
    connection: sqlite3.Connection, source: Source, value: str, row: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    """The standing statements that name this value, as subject, attribute and value. None if it may mean several."""
    words = stems(value).split()
    if not words:
        return []
    longest = max(words, key=len)
    speaker = fold(source.name) if source.name else USER_SUBJECT
    asked = {**row, "part": longest[:-1] if len(longest) > _SHORT else longest, "is_speaker": row["subject"] == speaker}
    found = [one for one in connection.execute(SELECT_STANDING_WITH, asked) if names(value, *one)]
    return [] if is_ambiguous(value) and len({subject for subject, _, _ in found}) > 1 else found


_SHORT: Final = 4
"""Characters of a stem up to which its last one is as written."""


def _moved_attribute(connection: sqlite3.Connection, row: Mapping[str, Any]) -> str:
    """Whether `moved to X` means a home or an employer: the latter only if that alone is known of the subject."""
    known = {attribute for [attribute] in connection.execute(SELECT_ATTRIBUTES, row)}
    return "employer" if "employer" in known and known.isdisjoint(("home", "address")) else "home"


def _place_in_line(connection: sqlite3.Connection, source: Source, row: dict[str, Any]) -> None:
    """Store a statement, and what it means for the others of its line."""
    before = connection.execute(SELECT_LATEST_BEFORE, row).fetchone()
    row["ordered_at"] = max(source.created_at, before[0]) if before else source.created_at
    [row["place"]] = connection.execute(SELECT_NEXT_PLACE, row).fetchone()
    is_newest = connection.execute(SELECT_IS_LATER, row).fetchone() is None
    standing = connection.execute(SELECT_STANDING if is_newest else SELECT_STANDING_THEN, row).fetchall()
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
        meant = relation(row["attribute"], (value, polarity_of(polarity)), newer, is_change=bool(row["is_change"]))
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
        meant = relation(row["attribute"], older, (value, polarity_of(polarity)), is_change=bool(is_change))
        if meant is Relation.SUPERSEDES and by_key != row["record_key"]:
            connection.execute(UPDATE_SUPERSEDED_ONE, {**key, "by_key": by_key, "at": at})
            return
    if older[1] is Polarity.WAS:
        found = connection.execute(SELECT_STANDING_BEFORE, row).fetchone()
        if found and found[0] != row["record_key"] and found[1] != row["value"]:
            connection.execute(UPDATE_SUPERSEDED_ONE, {**key, "by_key": found[0], "at": found[3]})


def remove(connection: sqlite3.Connection, key: int) -> None:
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
