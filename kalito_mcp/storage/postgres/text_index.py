"""The text index: which records contain a term. New records wait in `fresh_terms` until they are folded into lists.

Terms are sent as one text, parted by spaces, of which a term has none.
"""

from collections.abc import Sequence
from typing import Any, Final

from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.storage.postgres.record_statements import (
    INSERT_RECORDS,
    INSERTING_OF_SESSION,
    inserted,
    inserted_of_session,
)
from kalito_mcp.storage.record_rows import Row
from kalito_mcp.text.analysis import MANY, SEVERAL, IndexedText

_ADDED: Final = """
    SELECT * FROM unnest(:keys, :texts::text[], :word_counts::bigint[], :first_persons::smallint[])
        AS listed (key, terms, word_count, is_first_person)
"""
_ENTRIES: Final = """shapes AS (
    INSERT INTO record_shapes (owner_key, record_key, word_count, is_first_person)
    SELECT :owner, key, word_count, is_first_person FROM added
)
INSERT INTO fresh_terms (owner_key, agent_key, record_key, terms)
SELECT :owner, :agent_key, key, string_to_array(terms, ' ') FROM added
"""
INSERT_ENTRIES: Final = f"WITH added AS ({_ADDED}), {_ENTRIES}"
INSERT_INDEXED_RECORDS: Final = f"WITH stored AS ({INSERT_RECORDS}), added AS ({_ADDED}), {_ENTRIES}"


def storing(counters: str) -> str:
    """A statement that stores records of a session with their entries, and counts them: in the session with these
    counters, and in its agent. It returns their keys, which ascend as the records do: the owner is locked before."""
    return f"""
WITH counted AS (
    UPDATE sessions SET {counters}, revision = revision + 1 WHERE owner_key = :owner AND key = :session_key
    RETURNING agent_key, project_key
), of_agent AS (
    UPDATE agents SET record_count = record_count + :records::bigint
    WHERE owner_key = :owner AND key = (SELECT agent_key FROM counted)
), {INSERTING_OF_SESSION}, {_ENTRIES.replace(":agent_key", "(SELECT agent_key FROM counted)")}
RETURNING record_key
"""


# A list keeps its `first` and `last`, even if those records are taken out. One without records is removed: its term is
# nobody's.
# Lists are looked up one by one (OFFSET), and written by their key: no plan may read all lists of an agent.
DELETE_ENTRIES: Final = """
WITH shapes AS (
    DELETE FROM record_shapes WHERE owner_key = :owner AND record_key = ANY(:keys)
), fresh AS (
    DELETE FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key AND record_key = ANY(:keys)
    RETURNING record_key
), said AS (
    SELECT said.term, array_agg(listed.key) AS keys
    FROM unnest(:keys, :texts::text[]) AS listed (key, terms)
        CROSS JOIN LATERAL unnest(string_to_array(listed.terms, ' ')) AS said (term)
    WHERE listed.key NOT IN (SELECT record_key FROM fresh)
    GROUP BY said.term
), less AS (
    SELECT l.term, l.first, l.last, CASE
        WHEN cardinality(said.keys) = 1 THEN array_remove(l.offsets, (said.keys[1] - l.first)::integer)
        ELSE ARRAY(
            SELECT kept FROM unnest(l.offsets) WITH ORDINALITY AS listed (kept, place)
            WHERE l.first + kept <> ALL (said.keys) ORDER BY place
        )
    END AS offsets
    FROM said CROSS JOIN LATERAL (
        SELECT term, first, last, offsets FROM term_lists
        WHERE owner_key = :owner AND agent_key = :agent_key AND term = said.term AND EXISTS (
            SELECT 1 FROM unnest(said.keys) AS gone (key)
            WHERE gone.key BETWEEN first AND last AND gone.key - first = ANY (offsets)
        )
        OFFSET 0
    ) l
), emptied AS (
    DELETE FROM term_lists
    WHERE owner_key = :owner AND agent_key = :agent_key AND term = ANY (ARRAY(
        SELECT term FROM less WHERE offsets = '{}'
    )) AND (term, first) IN (SELECT term, first FROM less WHERE offsets = '{}')
)
INSERT INTO term_lists (owner_key, agent_key, term, first, last, offsets)
SELECT :owner, :agent_key, term, first, last, offsets FROM less WHERE offsets <> '{}'
ON CONFLICT (owner_key, agent_key, term, first) DO UPDATE SET offsets = excluded.offsets
"""
# All lists of the agent are read.
DELETE_DECAYED_ENTRY: Final = """
WITH fresh AS (
    DELETE FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key AND record_key = :key
), shape AS (
    DELETE FROM record_shapes WHERE owner_key = :owner AND record_key = :key
)
UPDATE term_lists SET offsets = array_remove(offsets, (:key - first)::integer)
WHERE owner_key = :owner AND agent_key = :agent_key AND :key - first = ANY(offsets)
"""
SELECT_DUE_AGENTS: Final = """
SELECT agent_key FROM fresh_terms WHERE owner_key = :owner GROUP BY agent_key HAVING count(*) >= :least
ORDER BY agent_key
"""
# The oldest fresh records are added to the last list of each of their terms, if they fit there and are newer than what
# is there; if not, they become lists of their own. A list begins at the key of its first record: a record that was
# taken out and is indexed again may find the list still there. Keys of one list are close enough for their differences.
# All rows are written by one upsert, so that no plan joins the lists, whatever PostgreSQL believes of their number.
FOLD: Final = """
WITH taken AS (
    DELETE FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key AND record_key = ANY (ARRAY(
        SELECT record_key FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key
        ORDER BY record_key LIMIT :most::bigint
    )) RETURNING record_key, terms
), said AS (
    SELECT t.term COLLATE "C" AS term, array_agg(taken.record_key ORDER BY taken.record_key) AS keys
    FROM taken CROSS JOIN LATERAL unnest(taken.terms) AS t (term)
    GROUP BY t.term COLLATE "C", taken.record_key >> 31
), placed AS (
    SELECT said.term, said.keys, CASE
        WHEN cardinality(l.offsets) + cardinality(said.keys) <= :list_keys::integer
            AND said.keys[1] > l.last
            AND said.keys[cardinality(said.keys)] - l.first < 2147483648
        THEN l.first
    END AS first
    FROM said LEFT JOIN LATERAL (
        SELECT first, last, offsets FROM term_lists
        WHERE owner_key = :owner AND agent_key = :agent_key AND term = said.term
        ORDER BY first DESC LIMIT 1
    ) l ON true
), written AS (
    INSERT INTO term_lists (owner_key, agent_key, term, first, last, offsets)
    SELECT :owner, :agent_key, placed.term, part.first, part.keys[cardinality(part.keys)],
        ARRAY(SELECT (key - part.first)::integer FROM unnest(part.keys) WITH ORDINALITY AS one (key, at) ORDER BY at)
    FROM placed CROSS JOIN LATERAL (
        SELECT placed.keys[start : start + :list_keys - 1] AS keys, coalesce(placed.first, placed.keys[start]) AS first
        FROM generate_series(1, cardinality(placed.keys), :list_keys) AS start
    ) part
    ON CONFLICT (owner_key, agent_key, term, first) DO UPDATE
    SET last = greatest(term_lists.last, excluded.last), offsets = CASE
        WHEN excluded.offsets[1] > term_lists.offsets[cardinality(term_lists.offsets)]
        THEN term_lists.offsets || excluded.offsets
        ELSE ARRAY(SELECT DISTINCT one FROM unnest(term_lists.offsets || excluded.offsets) AS one ORDER BY one)
    END
)
SELECT count(*) FROM taken
"""

COUNT_MARKS: Final = {1: "", SEVERAL: f"x{SEVERAL}:", MANY: f"x{MANY}:"}
"""The prefix of a term in the index, by the least number of times that the record contains it."""

LIST_KEYS: Final = 512
"""Records in one list: a new one of a frequent term rewrites two kilobytes at most."""

FOLDED_AT_ONCE: Final = 1_000
_FEWEST_FOLDED: Final = 100
"""A search reads 1,000 fresh records of an agent in 1.6 ms, and folding a record costs less among many."""


def marked_terms(indexed: IndexedText) -> str:
    """The terms of a record as the index has them, parted by spaces."""
    counted = zip(COUNT_MARKS.values(), (indexed.terms, indexed.several, indexed.many), strict=True)
    return " ".join(f"{mark}{term}" for mark, terms in counted for term in terms)


class TextIndexStatements(Queries):
    """Changes of the index. Those who change records call them in the same transaction."""

    async def add(self, owner: str, agent_key: int, records: Sequence[tuple[int, IndexedText]]) -> None:
        """Add records, by key, that are not in the index."""
        if records:
            await self._all(INSERT_ENTRIES, owner=owner, **_entries(agent_key, records))

    async def insert(self, owner: str, rows: Sequence[Row], indexed: Sequence[IndexedText]) -> None:
        """Store new records of one agent, given as rows for `inserted`, with their entries.

        Raises:
            AlreadyStored: a constraint says what is stored once. The transaction can do nothing else after that.
        """
        if rows:
            records = inserted(rows)
            [agent_key, *_] = records["all_agent_key"]
            entries = _entries(agent_key, list(zip(records["all_key"], indexed, strict=True)))
            with self._transaction.stored_once():
                await self._all(INSERT_INDEXED_RECORDS, owner=owner, **records, **entries)

    async def store(self, statement: str, entries: Sequence[tuple[Row, IndexedText]], **counted: Any) -> Sequence[int]:
        """Run a statement of `storing` for columns of `conversation_rows`. Returns the keys of the records.

        Raises:
            AlreadyStored: as `insert`.
        """
        records = inserted_of_session(row for row, _ in entries)
        with self._transaction.stored_once():
            found = await self._all(statement, **counted, **records, **_shapes([indexed for _, indexed in entries]))
        return sorted(key for [key] in found)

    async def remove(self, owner: str, agent_key: int, records: Sequence[tuple[int, IndexedText]]) -> None:
        """Take records out of the index. Each text is the one that was added."""
        if records:
            await self._all(
                DELETE_ENTRIES,
                owner=owner,
                agent_key=agent_key,
                keys=[key for key, _ in records],
                texts=[marked_terms(indexed) for _, indexed in records],
            )

    async def replace_decayed(self, owner: str, agent_key: int, key: int, indexed: IndexedText | None) -> None:
        """Index a record as its row says, which decayed: the index has other terms for it than the row gave."""
        await self._all(DELETE_DECAYED_ENTRY, owner=owner, agent_key=agent_key, key=key)
        await self.add(owner, agent_key, [] if indexed is None else [(key, indexed)])

    async def fold_due(self, owner: str) -> Sequence[int]:
        """The keys of the owner's agents that have enough fresh records to fold."""
        return [key for [key] in await self._all(SELECT_DUE_AGENTS, owner=owner, least=_FEWEST_FOLDED)]

    async def fold(self, owner: str, agent_key: int) -> int:
        """Fold the oldest fresh records of an agent into the lists of their terms. How many those were; fewer than
        FOLDED_AT_ONCE if no more are left."""
        names = {"owner": owner, "agent_key": agent_key}
        [[folded]] = await self._all(FOLD, **names, most=FOLDED_AT_ONCE, list_keys=LIST_KEYS)
        return int(folded)


def _entries(agent_key: int, records: Sequence[tuple[int, IndexedText]]) -> dict[str, Any]:
    """The parameters of the entries of records, by key."""
    shapes = _shapes([indexed for _, indexed in records])
    return {"agent_key": agent_key, "keys": [key for key, _ in records], **shapes}


def _shapes(indexed: Sequence[IndexedText]) -> dict[str, Any]:
    return {
        "texts": [marked_terms(one) for one in indexed],
        "word_counts": [one.word_count for one in indexed],
        "first_persons": [int(one.is_first_person) for one in indexed],
    }
