"""The deep part of `inspection`: whether every row of every owner is as it was written, and what is derived agrees with
it. Each owner is read in a snapshot of its own, under the policies, and nothing is changed."""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

from kalito_mcp.domain.findings import Finding, finding_of
from kalito_mcp.storage.graph_rows import HASHED_EDGE_COLUMNS, HASHED_NODE_COLUMNS
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.postgres.leases import Lease
from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.storage.postgres.term_pages import Page, unpacked
from kalito_mcp.storage.postgres.text_index import COUNT_MARKS, marked_terms
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.storage.record_rows import EDIT_COLUMNS
from kalito_mcp.storage.row_hash import HASHED_COLUMNS, LATER_COLUMNS, record_hash, row_hash
from kalito_mcp.text.analysis import index_text
from kalito_mcp.text.plurals import plural

SELECT_EVERY_OWNER: Final = "SELECT name FROM owners ORDER BY key"
SELECT_RECORD_ROWS: Final = f"""
SELECT key, hash, {HASHED_COLUMNS}, {LATER_COLUMNS} FROM records WHERE owner_key = :owner ORDER BY key
"""
SELECT_EDIT_ROWS: Final = f"""
SELECT e.hash, {EDIT_COLUMNS} FROM memory_edits e WHERE e.owner_key = :owner ORDER BY e.record_key, e.version
"""
_NODE_COLUMNS: Final = HASHED_NODE_COLUMNS.replace(
    "hex(n.embedding)", "coalesce(upper(encode(n.embedding, 'hex')), '')"
)
SELECT_NODE_ROWS: Final = f"""
SELECT n.key, n.hash, {_NODE_COLUMNS}
FROM graph_nodes n WHERE n.owner_key = :owner ORDER BY n.key
"""
SELECT_EDGE_ROWS: Final = f"""
SELECT e.from_key, e.to_key, e.hash, {HASHED_EDGE_COLUMNS}
FROM graph_edges e JOIN graph_nodes f ON f.owner_key = :owner AND f.key = e.from_key
    JOIN graph_nodes t ON t.owner_key = :owner AND t.key = e.to_key
WHERE e.owner_key = :owner ORDER BY e.from_key, e.type, e.to_key
"""
SELECT_WRONG_COUNTERS: Final = """
SELECT 'session ' || s.id FROM sessions s LEFT JOIN (
    SELECT session_key, count(*) FILTER (WHERE type = 'message') AS messages,
        max(seq) FILTER (WHERE type = 'message') AS newest,
        count(*) FILTER (WHERE type = 'message' AND deleted_at IS NOT NULL) AS hidden,
        count(*) FILTER (WHERE type = 'pin' AND deleted_at IS NULL) AS pins,
        count(*) FILTER (WHERE type = 'summary' AND deleted_at IS NULL) AS summaries,
        max(end_seq) FILTER (WHERE type = 'summary' AND level = 0) AS summarized,
        sum(importance) FILTER (WHERE type = 'message' AND deleted_at IS NULL) AS importance
    FROM records WHERE owner_key = :owner GROUP BY session_key
) r ON r.session_key = s.key
WHERE s.owner_key = :owner AND (
    s.message_count <> coalesce(r.messages, 0) OR s.message_count <> coalesce(r.newest, 0)
    OR s.hidden_count <> coalesce(r.hidden, 0) OR s.pin_count <> coalesce(r.pins, 0)
    OR s.summary_count <> coalesce(r.summaries, 0) OR s.summarized_seq <> coalesce(r.summarized, 0)
    OR abs(s.importance_sum - coalesce(r.importance, 0)) > 0.001 + 0.000001 * s.message_count
)
UNION ALL
SELECT 'agent ' || a.id FROM agents a WHERE a.owner_key = :owner AND a.record_count <> (
    SELECT count(*) FROM records r WHERE r.owner_key = :owner AND r.agent_key = a.key AND r.deleted_at IS NULL
)
"""
SELECT_SUMMARY_GAPS: Final = """
SELECT s.id FROM (
    SELECT session_key, seq, lag(end_seq, 1, 0::bigint) OVER (PARTITION BY session_key, level ORDER BY seq) AS before
    FROM records WHERE owner_key = :owner AND type = 'summary'
) r JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
WHERE r.seq <> r.before + 1
"""
# A record's edits are numbered without gaps and end with its revision.
SELECT_WRONG_HISTORIES: Final = """
SELECT r.key::text FROM (
    SELECT record_key, count(*) AS edits, min(version) AS first, max(version) AS last FROM memory_edits
    WHERE owner_key = :owner GROUP BY record_key
) e JOIN records r ON r.owner_key = :owner AND r.key = e.record_key
WHERE e.last <> r.revision OR e.last - e.first + 1 <> e.edits OR r.purged_at IS NOT NULL
"""
SELECT_WRONG_PLACES: Final = """
SELECT r.key || ' (its cause is gone)' FROM records r
WHERE r.owner_key = :owner AND r.caused_by IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM records c WHERE c.owner_key = :owner AND c.key = r.caused_by AND c.purged_at IS NULL
)
UNION ALL
SELECT r.key || ' (not its session''s agent)'
FROM records r JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
WHERE r.owner_key = :owner AND r.agent_key <> s.agent_key
UNION ALL
SELECT r.key || ' (not its session''s project)'
FROM records r LEFT JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
WHERE r.owner_key = :owner AND CASE
    WHEN r.reach = 'person' THEN r.project_key IS NOT NULL
    WHEN r.session_key IS NOT NULL THEN r.project_key IS DISTINCT FROM s.project_key
    ELSE false
END
"""
# A process that has the graph in memory would never load a row beyond its graph's revision.
SELECT_WRONG_GRAPHS: Final = """
SELECT g.key::text FROM graphs g WHERE g.owner_key = :owner AND (
    g.revision < g.removed_revision
    OR g.revision < (
        SELECT max(n.revision) FROM graph_nodes n WHERE n.owner_key = :owner AND n.graph_key = g.key
    ) OR g.revision < (
        SELECT max(e.revision) FROM graph_edges e WHERE e.owner_key = :owner AND e.graph_key = g.key
    )
)
UNION
SELECT e.graph_key::text FROM graph_edges e JOIN graph_nodes f ON f.owner_key = :owner AND f.key = e.from_key
    JOIN graph_nodes t ON t.owner_key = :owner AND t.key = e.to_key
WHERE e.owner_key = :owner AND (f.graph_key <> e.graph_key OR t.graph_key <> e.graph_key)
"""
# Vectors that should not exist, and records that would never get one.
SELECT_WRONG_VECTORS: Final = """
SELECT v.record_key::text FROM record_vectors v
    LEFT JOIN records r ON r.owner_key = :owner AND r.key = v.record_key
    LEFT JOIN vector_indexes i ON i.key = v.index_key
WHERE v.owner_key = :owner AND (
    r.key IS NULL OR r.deleted_at IS NOT NULL OR r.text = '' OR i.key IS NULL OR octet_length(v.code) <> i.dimension
    OR v.agent_key <> r.agent_key OR v.session_key IS DISTINCT FROM r.session_key
)
UNION
SELECT r.key::text FROM records r CROSS JOIN vector_indexes i
WHERE r.owner_key = :owner AND i.state <> 'dropped' AND r.deleted_at IS NULL AND r.text <> '' AND NOT EXISTS (
    SELECT 1 FROM record_vectors v WHERE v.owner_key = :owner AND v.record_key = r.key AND v.index_key = i.key
) AND NOT EXISTS (
    SELECT 1 FROM vector_debts d WHERE d.owner_key = :owner AND d.record_key = r.key AND d.index_key = i.key
)
"""
SELECT_INDEXED: Final = """
SELECT r.key, r.agent_key, r.text, r.name, w.word_count, w.is_first_person
FROM records r LEFT JOIN record_shapes w ON w.owner_key = :owner AND w.record_key = r.key
WHERE r.owner_key = :owner AND r.deleted_at IS NULL ORDER BY r.key
"""
SELECT_COUNT_OF_SHAPES: Final = "SELECT count(*) FROM record_shapes WHERE owner_key = :owner"
SELECT_EVERY_PAGE: Final = """
SELECT agent_key, term, first, terms, keys FROM term_pages WHERE owner_key = :owner
ORDER BY agent_key DESC, term DESC, first DESC
"""
SELECT_EVERY_FRESH: Final = """
SELECT agent_key, record_key, terms FROM fresh_terms WHERE owner_key = :owner ORDER BY agent_key, record_key
"""

_DISAGREEMENTS: Final = (
    ("counters", SELECT_WRONG_COUNTERS, "", "the counters of every session and agent match the records"),
    ("summaries", SELECT_SUMMARY_GAPS, "session ", "no level of summaries has a gap or an overlap"),
    ("histories", SELECT_WRONG_HISTORIES, "record ", "every record has all its edits"),
    (
        "ownership",
        SELECT_WRONG_PLACES,
        "record ",
        "every record belongs to its session's agent and project, and its cause exists",
    ),
    ("graphs", SELECT_WRONG_GRAPHS, "graph ", "no graph has a wrong revision or another graph's edges"),
)
_PAGE: Final = 500
_WAIT_S: Final = 30.0


async def deep_findings(connection: asyncpg.Connection) -> list[Finding]:
    """The findings about all owners, one a check. The connection has the codecs of the store."""
    faults: dict[str, list[str]] = defaultdict(list)
    async with reading(connection) as transaction:
        owners = [name for [name] in await transaction.all(SELECT_EVERY_OWNER)]
    for owner in owners:
        async with reading(connection) as transaction:
            with intact_rows():
                await Inspector(transaction, owner, faults).run()
    found = [finding_of("row hashes", faults["rows"], "no row is damaged", "restore these records from a backup")]
    found += [finding_of(check, faults[check], fine) for check, _, _, fine in _DISAGREEMENTS]
    remedy = "run `kalito-mcp reindex --vectors --all`"
    fine = "every record has its vector or waits for it, and no vector lacks its record"
    found.append(finding_of("vectors' records", faults["vectors"], fine, remedy))
    fine, remedy = "no difference from the records", "run `kalito-mcp reindex`"
    return [*found, finding_of("text index", faults["text"], fine, remedy)]


@asynccontextmanager
async def reading(connection: asyncpg.Connection) -> AsyncIterator[Transaction]:
    """A snapshot for the block, with the policies of the role."""
    transaction = Transaction(connection, {}, Lease(), wait_s=_WAIT_S)
    try:
        yield transaction
    finally:
        await transaction.rollback()


class Inspector(Queries):
    """Adds the faults of one owner to lists, by check."""

    def __init__(self, transaction: Transaction, owner: str, faults: dict[str, list[str]]) -> None:
        super().__init__(transaction)
        self._owner = owner
        self._faults = faults

    async def run(self) -> None:
        """Run all checks."""
        async for key, stored, *row in self._rows(SELECT_RECORD_ROWS):
            if record_hash(row) != stored:
                self._add("rows", f"record {key} ({row[1]})")
        async for stored, record, version, *row in self._rows(SELECT_EDIT_ROWS):
            if row_hash(record, version, *row) != stored:
                self._add("rows", f"edit {version} of record {record}")
        async for key, stored, *row in self._rows(SELECT_NODE_ROWS):
            if row_hash(*row) != stored:
                self._add("rows", f"node {key} ({row[2]})")
        async for from_key, to_key, stored, *row in self._rows(SELECT_EDGE_ROWS):
            if row_hash(*row) != stored:
                self._add("rows", f"edge {from_key} to {to_key} ({row[2]})")
        for check, statement, what, _ in _DISAGREEMENTS:
            for [fault] in await self._all(statement, owner=self._owner):
                self._add(check, f"{what}{fault}")
        for [key] in await self._all(SELECT_WRONG_VECTORS, owner=self._owner):
            self._add("vectors", f"record {key}")
        await self._compare_text_index()

    def _add(self, check: str, fault: str) -> None:
        self._faults[check].append(f"{fault} of {self._owner}")

    async def _rows(self, statement: str) -> AsyncIterator[Any]:
        async for page in self._transaction.pages(statement, _PAGE, owner=self._owner):
            for row in page:
                yield row

    async def _compare_text_index(self) -> None:
        """Compare the records of each term with those of a rebuilt index. Of each term are kept how many they are, the
        sum of their keys, and that of the squares: all pages would not fit into memory."""
        said: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        records = 0
        async for key, agent_key, text, name, word_count, is_first_person in self._rows(SELECT_INDEXED):
            indexed = index_text(text, name)
            records += word_count is not None
            if (word_count, is_first_person) != (indexed.word_count, int(indexed.is_first_person)):
                self._add("text", f"the shape of record {key}")
            for term in marked_terms(indexed).split():
                _count(said[agent_key, term], key, 1)
        [[shapes]] = await self._all(SELECT_COUNT_OF_SHAPES, owner=self._owner)
        if shapes != records:
            self._add("text", f"the shapes of {plural(shapes - records, 'record')} not there")
        next_of_agent, next_start = None, None
        async for agent_key, *row in self._rows(SELECT_EVERY_PAGE):
            page = Page(*row)
            if not page.is_sound(next_start if next_of_agent == agent_key else None):
                self._add("text", f"the order of the page {page.first}")
            next_of_agent, next_start = agent_key, page.start
            for term, packed in page.postings.items():
                for key, times in unpacked(packed):
                    for mark in [*COUNT_MARKS.values()][:times]:
                        _count(said[agent_key, f"{mark}{term}"], key, -1)
        async for agent_key, key, terms in self._rows(SELECT_EVERY_FRESH):
            for term in terms.split():
                _count(said[agent_key, term], key, -1)
        if wrong := sum(any(sums) for sums in said.values()):
            self._add("text", f"the records of {plural(wrong, 'term')}")


def _count(sums: list[int], key: int, sign: int) -> None:
    sums[0] += sign
    sums[1] += sign * key
    sums[2] += sign * key * key
