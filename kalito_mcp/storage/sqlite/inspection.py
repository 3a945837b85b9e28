"""Inspects a database without changing it: SQLite's own checks, and checks for faults that those miss.

Synchronous, on a connection of its own that cannot write. For the command line, never inside a serving process. A deep
inspection reads every row and rebuilds the text index to compare it.
"""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from kalito_mcp.domain.audit import Chain
from kalito_mcp.domain.findings import Finding, Verdict, finding_of
from kalito_mcp.errors import StorageReplaced
from kalito_mcp.ports.embedder import Embedder
from kalito_mcp.storage.audit import SELECT_CHAIN, SELECT_HEAD, fault_at_end, fault_in_page
from kalito_mcp.storage.graph_rows import HASHED_EDGE_COLUMNS, HASHED_NODE_COLUMNS
from kalito_mcp.storage.intact_rows import UnreadableRow, intact_rows
from kalito_mcp.storage.record_rows import EDIT_COLUMNS
from kalito_mcp.storage.row_hash import HASHED_COLUMNS, LATER_COLUMNS, record_hash, row_hash
from kalito_mcp.storage.sqlite.schema import APPLICATION_ID, migrations
from kalito_mcp.storage.sqlite.side_files import SideFiles
from kalito_mcp.storage.sqlite.text_index_check import differences, owed_rebuild
from kalito_mcp.storage.sqlite.vector_check import VECTORS_SINCE, vector_findings, wrong_vectors
from kalito_mcp.storage.sqlite.vector_indexes import SELECT_INDEXES
from kalito_mcp.storage.tombstones import SELECT_UNSWEPT
from kalito_mcp.text.plurals import plural

_WAL_RESET_FIRST: Final = (3, 7, 0)
_WAL_RESET_FIXED: Final = (3, 51, 3)
_MOVE_ASIDE: Final = "end the servers listed under `opened by`, move the file aside together with its -wal and -shm"

SELECT_ROWS: Final = f"SELECT key, hash, {HASHED_COLUMNS}, {LATER_COLUMNS} FROM records ORDER BY key"
SELECT_EDIT_ROWS: Final = f"SELECT e.hash, {EDIT_COLUMNS} FROM memory_edits e ORDER BY e.record_key, e.version"
SELECT_WRONG_FORGOTTEN_VALUES: Final = """
SELECT key FROM forgotten_values
WHERE length(value_hash) <> 32 OR value_hash GLOB '*[^0-9a-f]*' OR is_erased NOT IN (0, 1) OR forgotten_at < 0
"""
# A record's edits are numbered without gaps and end with its revision.
SELECT_WRONG_HISTORIES: Final = """
SELECT r.key FROM records r LEFT JOIN (
    SELECT record_key, count(*) AS edits, min(version) AS first, max(version) AS last FROM memory_edits
    GROUP BY record_key
) e ON e.record_key = r.key
WHERE e.last <> r.revision OR e.last - e.first + 1 <> e.edits OR (e.edits IS NOT NULL AND r.purged_at IS NOT NULL)
"""
SELECT_WRONG_CAUSES: Final = """
SELECT r.key FROM records r WHERE r.caused_by IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM records c WHERE c.key = r.caused_by AND c.purged_at IS NULL)
"""
SELECT_WRONG_AGENTS: Final = """
SELECT r.key FROM records r JOIN sessions s ON s.key = r.session_key WHERE r.agent_key <> s.agent_key
"""
SELECT_WRONG_PROJECTS: Final = """
SELECT r.key FROM records r JOIN sessions s ON s.key = r.session_key
WHERE r.project_key IS NOT CASE WHEN r.reach IS 'person' THEN NULL ELSE s.project_key END
UNION ALL
SELECT r.key FROM records r WHERE r.session_key IS NULL AND r.reach = 'person' AND r.project_key IS NOT NULL
"""
SELECT_WRONG_AGENT_COUNTERS: Final = """
SELECT a.id FROM agents a WHERE a.record_count <> (
    SELECT count(*) FROM records r WHERE r.agent_key = a.key AND r.deleted_at IS NULL
)
"""
SELECT_NODE_ROWS: Final = f"SELECT n.key, n.hash, {HASHED_NODE_COLUMNS} FROM graph_nodes n ORDER BY n.key"
SELECT_EDGE_ROWS: Final = f"""
SELECT e.from_key, e.to_key, e.hash, {HASHED_EDGE_COLUMNS} FROM graph_edges e
JOIN graph_nodes f ON f.key = e.from_key JOIN graph_nodes t ON t.key = e.to_key
ORDER BY e.from_key, e.type, e.to_key
"""
# A process that has the graph in memory would never load a row beyond its graph's revision.
SELECT_WRONG_GRAPHS: Final = """
SELECT g.key FROM graphs g WHERE g.revision < g.removed_revision
    OR g.revision < (SELECT max(n.revision) FROM graph_nodes n WHERE n.graph_key = g.key)
    OR g.revision < (SELECT max(e.revision) FROM graph_edges e WHERE e.graph_key = g.key)
UNION
SELECT e.graph_key FROM graph_edges e JOIN graph_nodes f ON f.key = e.from_key JOIN graph_nodes t ON t.key = e.to_key
WHERE f.graph_key <> e.graph_key OR t.graph_key <> e.graph_key
"""
SELECT_WRONG_COUNTERS: Final = """
SELECT s.id FROM sessions s LEFT JOIN (
    SELECT session_key, total(type = 'message') AS messages, max(CASE WHEN type = 'message' THEN seq END) AS newest,
        total(type = 'message' AND deleted_at IS NOT NULL) AS hidden,
        total(type = 'pin' AND deleted_at IS NULL) AS pins, total(type = 'summary' AND deleted_at IS NULL) AS summaries,
        max(CASE WHEN type = 'summary' AND level = 0 THEN end_seq END) AS summarized,
        total(CASE WHEN type = 'message' AND deleted_at IS NULL THEN importance END) AS importance
    FROM records GROUP BY session_key
) r ON r.session_key = s.key
WHERE s.message_count <> coalesce(r.messages, 0) OR s.message_count <> coalesce(r.newest, 0)
    OR s.hidden_count <> coalesce(r.hidden, 0) OR s.pin_count <> coalesce(r.pins, 0)
    OR s.summary_count <> coalesce(r.summaries, 0) OR s.summarized_seq <> coalesce(r.summarized, 0)
    OR abs(s.importance_sum - coalesce(r.importance, 0)) > 0.001 + 0.000001 * s.message_count
"""
SELECT_SUMMARY_GAPS: Final = """
SELECT s.id FROM (
    SELECT session_key, seq, lag(end_seq, 1, 0) OVER (PARTITION BY session_key, level ORDER BY seq) AS before
    FROM records WHERE type = 'summary'
) r JOIN sessions s ON s.key = r.session_key
WHERE r.seq <> r.before + 1
"""
_GRAPHS_SINCE: Final = 2
_TYPED_RECORDS_SINCE: Final = 3
_UNSWEPT_SINCE: Final = 6
_FORGOTTEN_VALUES_SINCE: Final = 12
_AUDIT_SINCE: Final = 16
_PROJECTS_SINCE: Final = 9
_REACH_SINCE: Final = 10
# With these views the same statements inspect the database of an older release.
_VIEWS_OF_OLDER_RECORDS: Final = (
    """
    CREATE TEMP VIEW records AS
    SELECT r.*, s.agent_key AS agent_key, NULL AS origin, NULL AS client, NULL AS recorded_at, 1 AS revision,
        NULL AS deleted_at, NULL AS purged_at, 0 AS is_internal, 0 AS is_critical, NULL AS tags, NULL AS caused_by,
        NULL AS source, NULL AS document_id, NULL AS project_key, NULL AS reach
    FROM main.records r LEFT JOIN main.sessions s ON s.key = r.session_key
    """,
    "CREATE TEMP VIEW sessions AS SELECT *, 0 AS hidden_count FROM main.sessions",
    """
    CREATE TEMP VIEW memory_edits AS
    SELECT NULL AS record_key, NULL AS version, NULL AS edit_type, NULL AS editor_type, NULL AS editor_id,
        NULL AS changes, NULL AS edited_at, NULL AS hash
    WHERE 0
    """,
)
_VIEW_OF_RECORDS_WITHOUT_PROJECTS: Final = (
    "CREATE TEMP VIEW records AS SELECT *, NULL AS project_key, NULL AS reach FROM main.records"
)
_VIEW_OF_RECORDS_WITHOUT_REACH: Final = "CREATE TEMP VIEW records AS SELECT *, NULL AS reach FROM main.records"
_SELECT_VERSION: Final = "PRAGMA user_version"


def wal_reset_exposure(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Finding:
    """Whether this SQLite can corrupt a WAL that two connections write and checkpoint at once."""
    name = ".".join(map(str, version))
    if _WAL_RESET_FIRST <= version < _WAL_RESET_FIXED or version[:2] == (3, 52):
        detail = f"{name}; its WAL-reset bug is harmless as long as no other program writes to this file"
        return Finding("sqlite", Verdict.OK, detail)
    return Finding("sqlite", Verdict.OK, name)


def inspect(
    path: Path,
    *,
    is_deep: bool,
    embedder: Embedder | None = None,
    place: str | None = None,
) -> Iterator[Finding]:
    """The findings about the database at `path`, which must exist. A finding that makes the other checks meaningless is
    the last. `place` is where vectors are kept outside the database."""
    try:
        SideFiles(path).refuse_foreign_wal()
        with closing(_open(path)) as connection:
            if not (yield from _identity(connection)):
                return
            yield _size(connection, path)
            yield finding_of(
                "structure",
                [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)") if row[0] != "ok"],
                "SQLite's integrity_check passed",
                f"{_MOVE_ASIDE} (do not delete it), and restore a backup",
            )
            yield finding_of(
                "references",
                # An edge has no row number.
                [f"{row[0]} row {row[1] or '?'}" for row in connection.execute("PRAGMA foreign_key_check")],
                "every record has its session, and every edge has its ends",
            )
            yield from _unswept(connection)
            yield from _audit(connection)
            for verdict, detail in vector_findings(connection, embedder, place):
                yield Finding("vectors", Verdict(verdict), detail)
            owed = owed_rebuild(connection)
            if owed is not None:
                yield Finding("text index", Verdict.WARNING, owed)
            if is_deep:
                yield from _deep(connection)
    except (
        sqlite3.Error,
        UnreadableRow,
        UnicodeDecodeError,
    ) as error:  # SQLite may quote a damaged name
        yield Finding("readable", Verdict.FAILED, f"{path}: {error}; {_MOVE_ASIDE}, and restore a backup")
    except StorageReplaced as error:
        yield Finding("files", Verdict.FAILED, str(error))


def _open(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. It also returns text that is not UTF-8, so that the hash check finds it."""
    try:
        return _connect(path, "?mode=ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN:
            raise
    # On a read-only disk a database in WAL mode can only be read without its -wal.
    return _connect(path, "?immutable=1")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path.absolute().as_uri() + mode, uri=True)
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _size(connection: sqlite3.Connection, path: Path) -> Finding:
    """Whether the file ends at the end of a page. SQLite itself reads zeros in place of a missing end."""
    [page_size] = connection.execute("PRAGMA page_size").fetchone()
    wal = path.with_name(f"{path.name}-wal")
    is_cut = path.stat().st_size % page_size != 0
    # A checkpoint on a full disk also leaves such an end, but then the pages are still in the -wal.
    if is_cut and not (wal.exists() and wal.stat().st_size):
        return Finding("size", Verdict.FAILED, "cut short within its last page: restore a backup")
    return Finding("size", Verdict.OK, "a whole number of pages")


def _identity(connection: sqlite3.Connection) -> Generator[Finding, None, bool]:
    """Report which program's database it is. Returns whether the other checks make sense."""
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    newest = len(migrations())
    if application != APPLICATION_ID:
        yield Finding("schema", Verdict.FAILED, "not a kalito database; point KALITO_DATABASE at another file")
    elif version > newest:
        yield Finding("schema", Verdict.FAILED, f"schema {version} is newer than {newest}: upgrade kalito-mcp")
    elif version < newest:
        yield Finding("schema", Verdict.WARNING, f"schema {version}; `serve` migrates it to {newest}, with a backup")
    else:
        yield Finding("schema", Verdict.OK, f"schema {version}")
    return bool(application == APPLICATION_ID and version <= newest)


def _unswept(connection: sqlite3.Connection) -> Iterator[Finding]:
    """A warning if an erasure was interrupted."""
    [version] = connection.execute(_SELECT_VERSION).fetchone()
    if version >= _UNSWEPT_SINCE and connection.execute(SELECT_UNSWEPT).fetchone():
        remedy = "`serve` finishes it in the background, `kalito-mcp purge` without an ID does it now"
        detail = f"a purge was interrupted, and the erased text may still be in the files: {remedy}"
        yield Finding("erasures", Verdict.WARNING, detail)


def _audit(connection: sqlite3.Connection) -> Iterator[Finding]:
    [version] = connection.execute(_SELECT_VERSION).fetchone()
    if version >= _AUDIT_SINCE:
        chain = Chain()
        fault = fault_in_page(chain, connection.execute(SELECT_CHAIN, {"after": 0, "limit": -1}))
        if fault is None:
            fault = fault_at_end(chain, connection.execute(SELECT_HEAD).fetchall())
        if fault is None:
            yield Finding("audit log", Verdict.OK, f"{plural(chain.last.count, 'entry')}, each as it was written")
        else:
            remedy = "somebody changed the file, or the disk did; compare it with a backup"
            yield Finding("audit log", Verdict.FAILED, f"{fault}: {remedy}")


def _deep(connection: sqlite3.Connection) -> Iterator[Finding]:
    [version] = connection.execute(_SELECT_VERSION).fetchone()
    if version < _TYPED_RECORDS_SINCE:
        for view in _VIEWS_OF_OLDER_RECORDS:
            connection.execute(view)
    elif version < _PROJECTS_SINCE:
        connection.execute(_VIEW_OF_RECORDS_WITHOUT_PROJECTS)
    elif version < _REACH_SINCE:
        connection.execute(_VIEW_OF_RECORDS_WITHOUT_REACH)
    yield finding_of(
        "row hashes", _damaged_rows(connection, version), "no row is damaged", "restore these records from a backup"
    )
    yield from _disagreements(connection, version)
    if owed_rebuild(connection) is None:
        yield _text_index(connection)


def _damaged_rows(connection: sqlite3.Connection, version: int) -> list[str]:
    """The rows that differ from their hashes."""
    records = connection.execute(SELECT_ROWS)
    damaged = [f"record {key} ({row[1]})" for key, stored, *row in records if record_hash(row) != stored]
    damaged += [
        f"edit {key} of record {record}"
        for stored, record, key, *row in connection.execute(SELECT_EDIT_ROWS)
        if row_hash(record, key, *row) != stored
    ]
    if version >= _GRAPHS_SINCE:
        damaged += _damaged_graph_rows(connection)
    if version >= _FORGOTTEN_VALUES_SINCE:
        damaged += [f"forgotten value {row[0]}" for row in connection.execute(SELECT_WRONG_FORGOTTEN_VALUES)]
    return damaged


def _disagreements(connection: sqlite3.Connection, version: int) -> Iterator[Finding]:
    """Whether derived and duplicated values agree everywhere."""
    counters = [f"session {row[0]}" for row in connection.execute(SELECT_WRONG_COUNTERS)]
    counters += [f"agent {row[0]}" for row in connection.execute(SELECT_WRONG_AGENT_COUNTERS)]
    yield finding_of("counters", counters, "the counters of every session and agent match the records")
    gaps = [f"session {row[0]}" for row in connection.execute(SELECT_SUMMARY_GAPS)]
    yield finding_of("summaries", gaps, "no level of summaries has a gap or an overlap")
    histories = [f"record {row[0]}" for row in connection.execute(SELECT_WRONG_HISTORIES)]
    yield finding_of("histories", histories, "every record has all its edits")
    causes = [f"record {row[0]}" for row in connection.execute(SELECT_WRONG_CAUSES)]
    causes += [f"record {row[0]} (not its session's agent)" for row in connection.execute(SELECT_WRONG_AGENTS)]
    if version >= _PROJECTS_SINCE:
        causes += [f"record {row[0]} (not its session's project)" for row in connection.execute(SELECT_WRONG_PROJECTS)]
    yield finding_of(
        "ownership", causes, "every record belongs to its session's agent and project, and its cause exists"
    )
    if version >= _GRAPHS_SINCE:
        graphs = [f"graph {row[0]}" for row in connection.execute(SELECT_WRONG_GRAPHS)]
        yield finding_of("graphs", graphs, "no graph has a wrong revision or another graph's edges")
    if version >= VECTORS_SINCE and connection.execute(SELECT_INDEXES).fetchone() is not None:
        wrong = [f"record {key}" for key in wrong_vectors(connection)]
        remedy = "run `kalito-mcp reindex --vectors --all`"
        yield finding_of(
            "vectors' records",
            wrong,
            "every record has its vector or waits for it, and no vector lacks its record",
            remedy,
        )


def _text_index(connection: sqlite3.Connection) -> Finding:
    try:
        with intact_rows():
            differing = differences(connection)
    except (sqlite3.Error, UnreadableRow, UnicodeDecodeError) as error:
        return Finding("text index", Verdict.FAILED, f"cannot be read ({error}); run `kalito-mcp reindex`")
    remedy = "; run `kalito-mcp reindex`" if differing else ""
    detail = f"{plural(differing, 'difference')} from a rebuilt index{remedy}"
    return Finding("text index", Verdict.FAILED if differing else Verdict.OK, detail)


def _damaged_graph_rows(connection: sqlite3.Connection) -> list[str]:
    nodes = connection.execute(SELECT_NODE_ROWS)
    damaged = [f"node {key} ({row[2]})" for key, stored, *row in nodes if row_hash(*row) != stored]
    edges = connection.execute(SELECT_EDGE_ROWS)
    damaged += [
        f"edge {from_key} to {to_key} ({row[2]})"
        for from_key, to_key, stored, *row in edges
        if row_hash(*row) != stored
    ]
    return damaged
