"""The text index: which records contain a term. New records wait in `fresh_terms` until they are folded into the pages
of their terms.

Terms are one text, parted by spaces, of which a term has none.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import anyio.to_thread

from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.storage.postgres.record_statements import (
    INSERT_RECORDS,
    INSERTING_OF_SESSION,
    inserted,
    inserted_of_session,
)
from kalito_mcp.storage.postgres.term_pages import Changes, Page, by_page, changed, unpacked
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
SELECT :owner, :agent_key, key, terms FROM added
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


DELETE_FRESH_ENTRIES: Final = """
WITH shapes AS (
    DELETE FROM record_shapes WHERE owner_key = :owner AND record_key = ANY(:keys)
)
DELETE FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key AND record_key = ANY(:keys)
RETURNING record_key
"""
# The page that begins last at or before the oldest key of a term, and those that begin within its keys. They are looked
# up one by one (OFFSET): no plan may read all pages of an agent.
SELECT_PAGES: Final = """
SELECT found.term, found.first, p.terms, p.keys
FROM (
    SELECT DISTINCT at.term, at.first
    FROM unnest(:terms, :oldest_keys::bigint[], :newest_keys::bigint[]) AS asked (term, oldest, newest)
        CROSS JOIN LATERAL (
            (
                SELECT term, first FROM term_pages
                WHERE owner_key = :owner AND agent_key = :agent_key AND (term, first) <= (asked.term, asked.oldest)
                ORDER BY term DESC, first DESC LIMIT 1
            ) UNION ALL (
                SELECT term, first FROM term_pages
                WHERE owner_key = :owner AND agent_key = :agent_key AND term = asked.term
                    AND first > asked.oldest AND first <= asked.newest
                OFFSET 0
            )
        ) at
) found CROSS JOIN LATERAL (
    SELECT terms, keys FROM term_pages
    WHERE owner_key = :owner AND agent_key = :agent_key AND term = found.term AND first = found.first
    LIMIT 1
) p
"""
SELECT_STARTS: Final = """
SELECT string_agg(term, ' ' ORDER BY term, first), array_agg(first ORDER BY term, first)
FROM term_pages WHERE owner_key = :owner AND agent_key = :agent_key
"""
SELECT_ALL_PAGES: Final = """
SELECT term, first, terms, keys FROM term_pages WHERE owner_key = :owner AND agent_key = :agent_key
"""
WRITE_PAGES: Final = """
WITH emptied AS (
    DELETE FROM term_pages WHERE owner_key = :owner AND agent_key = :agent_key AND term = ANY (:emptied_terms::text[])
        AND (term, first) IN (SELECT * FROM unnest(:emptied_terms, :emptied_firsts::bigint[]))
)
INSERT INTO term_pages (owner_key, agent_key, term, first, terms, keys)
SELECT :owner, :agent_key, written.*
FROM unnest(:page_terms::text[], :firsts::bigint[], :texts::text[], :packed::bytea[]) AS written
ON CONFLICT (owner_key, agent_key, term, first) DO UPDATE SET terms = excluded.terms, keys = excluded.keys
"""
SELECT_DUE_AGENTS: Final = """
SELECT agent_key FROM fresh_terms f WHERE owner_key = :owner GROUP BY agent_key HAVING count(*) >= least(
    :most::bigint, greatest(:least::bigint, (
        SELECT record_count / :share::bigint FROM agents WHERE owner_key = :owner AND key = f.agent_key
    ))
)
ORDER BY agent_key
"""
DELETE_OLDEST_FRESH: Final = """
DELETE FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key AND record_key = ANY (ARRAY(
    SELECT record_key FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key
    ORDER BY record_key LIMIT :most::bigint
)) RETURNING record_key, terms
"""

COUNT_MARKS: Final = {1: "", SEVERAL: f"x{SEVERAL}:", MANY: f"x{MANY}:"}
"""The prefix of a term in the index, by the least number of times that the record contains it."""

FOLDED_AT_ONCE: Final = 1_000
_FEWEST_DUE, _MOST_DUE, _DUE_SHARE = 100, 250, 4
"""An agent's fresh records are folded when there are this many. A fold writes most pages of a small agent, so it waits
for a quarter of its records; each search reads all fresh ones."""

MANY_TERMS: Final = 200
"""For more terms than this, a fold reads where all pages begin, which costs less than one lookup for each term."""


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
        if not records:
            return
        keys = [key for key, _ in records]
        found = await self._all(DELETE_FRESH_ENTRIES, owner=owner, agent_key=agent_key, keys=keys)
        fresh = {key for [key] in found}
        changes: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for key, indexed in records:
            for term in () if key in fresh else indexed.terms:
                changes[term][key] = 0
        await self._change_pages(owner, agent_key, changes)

    async def replace_decayed(self, owner: str, agent_key: int, key: int, indexed: IndexedText | None) -> None:
        """Index a record as its row says, which decayed: the index has other terms for it than the row gave. All pages
        of the agent are read."""
        await self._all(DELETE_FRESH_ENTRIES, owner=owner, agent_key=agent_key, keys=[key])
        pages = [Page(*row) for row in await self._all(SELECT_ALL_PAGES, owner=owner, agent_key=agent_key)]
        changes = {
            term: {key: 0}
            for page in pages
            for term, packed in page.postings.items()
            if any(key == found for found, _ in unpacked(packed))
        }
        await self._change_pages(owner, agent_key, changes)
        await self.add(owner, agent_key, [] if indexed is None else [(key, indexed)])

    async def fold_due(self, owner: str) -> Sequence[int]:
        """The keys of the owner's agents that have enough fresh records to fold."""
        bounds = {"least": _FEWEST_DUE, "most": _MOST_DUE, "share": _DUE_SHARE}
        return [key for [key] in await self._all(SELECT_DUE_AGENTS, owner=owner, **bounds)]

    async def fold(self, owner: str, agent_key: int) -> int:
        """Fold the oldest fresh records of an agent into the pages of their terms. How many those were; fewer than
        FOLDED_AT_ONCE if no more are left."""
        names = {"owner": owner, "agent_key": agent_key}
        fresh = await self._all(DELETE_OLDEST_FRESH, **names, most=FOLDED_AT_ONCE)
        changes: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for key, terms in fresh:
            for marked in terms.split():
                if ":" in marked:
                    changes[marked.rpartition(":")[2]][key] += 1
                else:
                    changes[marked][key] = 1
        await self._change_pages(owner, agent_key, changes)
        return len(fresh)

    async def _change_pages(self, owner: str, agent_key: int, changes: Changes) -> None:
        """Write the pages where a change belongs. The owner's row is locked, so nobody else writes them."""
        if not changes:
            return
        names = {"owner": owner, "agent_key": agent_key}
        placed = None
        asked = [(term, min(records), max(records)) for term, records in changes.items()]
        if len(asked) > MANY_TERMS:
            [[terms, firsts]] = await self._all(SELECT_STARTS, **names)
            starts = [] if terms is None else zip(terms.split(" "), firsts, strict=True)
            placed = await anyio.to_thread.run_sync(by_page, starts, changes)
            asked = [(term, first, first) for term, first in placed]
        terms, oldest, newest = zip(*asked, strict=True)
        rows = await self._all(SELECT_PAGES, **names, terms=terms, oldest_keys=oldest, newest_keys=newest)
        found = [Page(*row) for row in rows]
        if placed is None:
            placed = by_page([page.start for page in found], changes)
        pages = await anyio.to_thread.run_sync(lambda: list(changed(found, placed)))
        written = [page for page in pages if page.terms or not page.term]
        emptied = [page for page in pages if page.term and not page.terms]
        await self._all(
            WRITE_PAGES,
            **names,
            emptied_terms=[page.term for page in emptied],
            emptied_firsts=[page.first for page in emptied],
            page_terms=[page.term for page in written],
            firsts=[page.first for page in written],
            texts=[page.terms for page in written],
            packed=[page.keys for page in written],
        )


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
