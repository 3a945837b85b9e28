"""Reads whole records and their edits. Implements `ports.records.RecordReader`."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.kinds import OF_ITS_SESSION
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import AUTO_KEY, MemoryRecord, StoredEdit
from kalito_mcp.domain.records import Origin, Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.ports.records import ErasedText, ForgottenValue, RecentWords, ScanCursor, ScannedRecord, Tombstone
from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.numbered import key_of, message_key
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.record_rows import AT_THE_END, EDIT_COLUMNS
from kalito_mcp.storage.row_hash import HASHED_COLUMNS, LATER_COLUMNS, record_hash
from kalito_mcp.storage.sqlite.client_keys import ClientKeys
from kalito_mcp.storage.sqlite.forgotten_values import ForgottenValues
from kalito_mcp.storage.sqlite.queries import Queries, owned, within
from kalito_mcp.storage.sqlite.record_statements import STORED_COLUMNS
from kalito_mcp.storage.sqlite.stated import SELECT_STATED
from kalito_mcp.storage.sqlite.superseded import NOT_SUPERSEDED
from kalito_mcp.storage.sqlite.tombstones import Tombstones

_WHOLE: Final = f"""
SELECT {STORED_COLUMNS}, a.id, s.id, u.usage_count, u.last_used, (
    SELECT json_group_array(coalesce(effects.id, 'msg_' || effects.key)) FROM (
        SELECT id, key FROM records WHERE caused_by = r.key ORDER BY key LIMIT 100
    ) effects
)
FROM records r JOIN agents a ON a.key = r.agent_key LEFT JOIN sessions s ON s.key = r.session_key
    LEFT JOIN record_usage u ON u.record_key = r.key
"""
_ADMITTED: Final = f"""
    r.purged_at IS NULL AND a.owner = :owner AND (:agent IS NULL OR a.id = :agent)
    AND (:session IS NULL OR s.id = :session) AND {within("r")}
"""
SELECT_RECORD: Final = f"{_WHOLE} WHERE r.id = :id AND {_ADMITTED}"
SELECT_MESSAGE_RECORD: Final = f"{_WHOLE} WHERE r.key = :number AND r.type = 'message' AND {_ADMITTED}"
SELECT_RECORDS_OF_KEYS: Final = f"{_WHOLE} WHERE r.key IN (SELECT value FROM json_each(:keys)) ORDER BY r.key"
SELECT_NEWEST_OF_TYPE: Final = f"""
{_WHOLE}
WHERE r.agent_key = :agent_key AND r.type = :type AND r.id IS NOT NULL AND r.deleted_at IS NULL AND r.key < :before_key
    AND (:session IS NULL OR s.id = :session)
    AND (:project IS NULL OR r.project_key IS NULL OR r.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    )) AND {within("r")}
ORDER BY r.key DESC LIMIT :limit
"""
SELECT_KNOWN: Final = f"""
SELECT r.id, r.type, r.reach, r.text, r.importance, r.created_at, r.tokens, r.role, r.origin, s.id,
    (SELECT p.id FROM projects p WHERE p.key = r.project_key), CASE WHEN r.type = 'pin' THEN r.attributes END
FROM records r INDEXED BY records_known LEFT JOIN sessions s ON s.key = r.session_key AND {within("s")}
WHERE r.agent_key = :agent_key AND r.reach IS NOT NULL AND r.deleted_at IS NULL AND {within("r")}
    AND (r.is_internal = 0 OR :include_internal)
    AND (:project IS NULL OR r.reach = 'person' OR r.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    ))
    AND {NOT_SUPERSEDED}
ORDER BY r.importance DESC, r.created_at DESC, r.key DESC LIMIT :limit
"""
SELECT_SUPERSEDED: Final = f"""
SELECT coalesce(o.id, 'msg_' || o.key), coalesce(n.id, 'msg_' || n.key), n.created_at
FROM superseded_records s JOIN records n ON n.key = s.by_key JOIN records o ON o.key = s.record_key
WHERE s.record_key IN (
    SELECT value FROM json_each(:numbers) UNION ALL
    SELECT key FROM records WHERE id IN (SELECT value FROM json_each(:ids))
) AND n.deleted_at IS NULL AND {within("n")}
ORDER BY n.created_at, n.key
"""
# A project that has nothing yet has no key: it is not the same as none.
_IN_PROJECT: Final = """
    coalesce(r.project_key, 0) = coalesce(
        (SELECT key FROM projects WHERE owner = :owner AND id = :project),
        CASE WHEN coalesce(:project, 'personal') = 'personal' THEN 0 ELSE -1 END
    )
"""
_OF_ITS_SESSION: Final = ", ".join(f"'{kind}'" for kind in sorted(OF_ITS_SESSION))
SELECT_LEFT_OPEN: Final = f"""
SELECT r.id, r.type, 'session', r.text, r.importance, r.created_at, r.tokens, r.role, r.origin, s.id,
    (SELECT p.id FROM projects p WHERE p.key = r.project_key), r.attributes
FROM records r JOIN sessions s ON s.key = r.session_key
WHERE r.key IN (
    SELECT key FROM records WHERE agent_key = :agent_key AND type = 'pin' AND id IS NOT NULL AND deleted_at IS NULL
    ORDER BY key DESC LIMIT 500
) AND r.reach IS NULL AND json_extract(r.attributes, '$.kind') IN ({_OF_ITS_SESSION}) AND {within("r")}
    AND {_IN_PROJECT} AND {NOT_SUPERSEDED} AND r.created_at >= coalesce((
        SELECT m.created_at FROM records m WHERE m.session_key = r.session_key AND m.type = 'message'
            AND m.deleted_at IS NULL ORDER BY m.seq DESC LIMIT 1 OFFSET {AT_THE_END - 1}
    ), 0)
ORDER BY r.created_at DESC, r.key DESC LIMIT :limit
"""
SELECT_DOCUMENT: Final = f"""
{_WHOLE}
WHERE r.agent_key = :agent_key AND r.source = :source AND {_IN_PROJECT} AND {within("r")}
ORDER BY r.seq
"""
SELECT_SAME_WORDS: Final = f"""
{_WHOLE}
WHERE r.key IN (
    SELECT key FROM records WHERE agent_key = :agent_key AND type = :type AND id IS NOT NULL AND deleted_at IS NULL
    ORDER BY key DESC LIMIT 5000
) AND r.text = :text AND s.id IS :session AND r.reach IS NULL AND {_IN_PROJECT} AND {within("r")}
    AND (r.client_key IS NULL OR r.client_key NOT GLOB '{AUTO_KEY}*')
ORDER BY r.key DESC LIMIT 1
"""
SELECT_SAME_KNOWN: Final = f"""
{_WHOLE}
WHERE r.key IN (
    SELECT key FROM records INDEXED BY records_known
    WHERE agent_key = :agent_key AND reach IS NOT NULL AND deleted_at IS NULL AND reach = :reach AND text = :text
) AND (r.reach = 'person' OR {_IN_PROJECT}) AND {within("r")}
    AND (r.client_key IS NULL OR r.client_key NOT GLOB '{AUTO_KEY}*')
ORDER BY r.key DESC LIMIT 1
"""
# Of untrusted origins, or else of users. A role's origin is not stored: `system` relays tools.
SELECT_RECENT_WORDS: Final = f"""
SELECT coalesce(r.id, 'msg_' || r.key), substr(r.text, 1, :most_chars),
    coalesce(r.origin, CASE r.role WHEN 'user' THEN 'user' ELSE 'tool' END)
FROM records r WHERE r.key IN (
    SELECT key FROM (
        SELECT key, role, origin, deleted_at FROM (
            SELECT key, role, origin, deleted_at FROM records INDEXED BY records_columns
            WHERE agent_key = coalesce(
                (SELECT agent_key FROM sessions WHERE owner = :owner AND id = :session), :agent_key
            ) ORDER BY key DESC LIMIT 2000
        )
        UNION
        SELECT key, role, origin, deleted_at FROM (
            SELECT key, role, origin, deleted_at FROM records
            WHERE type = 'message'
                AND session_key = (SELECT key FROM sessions WHERE owner = :owner AND id = :session)
            ORDER BY seq DESC LIMIT 500
        )
    )
    WHERE deleted_at IS NULL AND (
        (:is_untrusted AND (origin IN ('tool', 'document', 'import') OR (origin IS NULL AND role = 'system')))
        OR (NOT :is_untrusted AND (origin = 'user' OR (origin IS NULL AND role = 'user')))
    )
    ORDER BY key DESC LIMIT 200
) AND {within("r")}
ORDER BY r.key DESC
"""
SELECT_OF_SOURCE: Final = f"""
{_WHOLE}
WHERE r.agent_key IN (SELECT key FROM agents WHERE owner = :owner) AND r.source = :source
    AND (:project IS NULL OR {_IN_PROJECT}) AND {within("r")}
ORDER BY r.key
"""
# "0" follows "/".
SELECT_SOURCES: Final = f"""
SELECT r.source, sum(length(CAST(r.text AS BLOB))) FROM records r
WHERE r.agent_key = :agent_key AND r.source >= :prefix AND r.source < rtrim(:prefix, '/') || '0'
    AND r.deleted_at IS NULL AND {_IN_PROJECT} AND {within("r")}
GROUP BY r.source ORDER BY r.source
"""
SELECT_PARTS: Final = f"{_WHOLE} WHERE r.document_id = :document_id AND {_ADMITTED} ORDER BY r.seq"
SELECT_PINS_OF_MESSAGE: Final = f"""
{_WHOLE}
WHERE r.type = 'pin' AND json_extract(r.attributes, '$.source_message_id') = :id
    AND r.session_key = (SELECT session_key FROM records WHERE key = :key)
ORDER BY r.key
"""
# At most one of each level, because a level has no overlaps: the last that begins at the message or before. The seq of
# a summary is that of its first message.
SELECT_SUMMARIES_OVER: Final = f"""
WITH RECURSIVE message(session_key, seq) AS (
    SELECT session_key, seq FROM records WHERE key = :key AND type IN ('message', 'summary')
),
levels(level) AS (
    SELECT 0 UNION ALL SELECT level + 1 FROM levels, message m WHERE EXISTS (
        SELECT 1 FROM records o
        WHERE o.session_key = m.session_key AND o.type = 'summary' AND o.level = levels.level + 1
    )
)
{_WHOLE}
WHERE r.key IN (
    SELECT (
        SELECT o.key FROM records o
        WHERE o.session_key = m.session_key AND o.type = 'summary' AND o.level = levels.level AND o.seq <= m.seq
        ORDER BY o.seq DESC LIMIT 1
    )
    FROM levels, message m
) AND r.end_seq >= (SELECT seq FROM message) AND r.purged_at IS NULL
ORDER BY r.level
"""
SELECT_CAUSES: Final = """
WITH RECURSIVE causes(key) AS (
    SELECT caused_by FROM records WHERE key = :key AND caused_by IS NOT NULL
    UNION SELECT r.caused_by FROM causes JOIN records r ON r.key = causes.key WHERE r.caused_by IS NOT NULL
)
SELECT coalesce(r.id, 'msg_' || r.key) FROM causes JOIN records r ON r.key = causes.key
"""
SELECT_EDITS: Final = f"SELECT {EDIT_COLUMNS} FROM memory_edits e WHERE e.record_key = :key ORDER BY e.version"
SELECT_AGENT_KEY: Final = f"""
SELECT key FROM agents WHERE owner = :owner AND id = coalesce(
    :agent, (SELECT b.id FROM sessions s JOIN agents b ON b.key = s.agent_key
             WHERE s.owner = :owner AND s.id = :session AND {within("s")}), :limit_agent, :default_agent
) AND (:limit_agent IS NULL OR id = :limit_agent)
"""
SELECT_SCANNED: Final = f"""
SELECT r.key, coalesce(r.id, 'msg_' || r.key), r.type, r.text, CASE WHEN :has_forgotten AND r.revision > 1 THEN (
        SELECT group_concat(json_extract(e.changes, '$.text'), char(10)) FROM memory_edits e WHERE e.record_key = r.key
    ) END, r.tags, r.name, r.created_at, (SELECT s.id FROM sessions s WHERE s.key = r.session_key),
    r.seq, r.end_seq, r.revision
FROM records r
WHERE r.agent_key = :agent_key AND r.key > :after_key AND r.purged_at IS NULL
    AND (r.deleted_at IS NULL OR :has_forgotten)
    AND (:project IS NULL OR r.project_key IS NULL OR r.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    )) AND {within("r")}
ORDER BY r.key LIMIT :limit
"""
_LISTED: Final = frozenset(RecordType) - {RecordType.MESSAGE}
_NEWEST: Final = (1 << 63) - 1
SELECT_HASHED: Final = f"""
SELECT 'msg_' || key, hash, {HASHED_COLUMNS}, {LATER_COLUMNS} FROM records
WHERE key IN (SELECT value FROM json_each(:numbers)) AND type = 'message' AND {owned("records")}
UNION ALL
SELECT id, hash, {HASHED_COLUMNS}, {LATER_COLUMNS} FROM records
WHERE id IN (SELECT value FROM json_each(:ids)) AND {owned("records")}
"""


class RecordQueries(Queries):
    """`ports.records.RecordReader`."""

    async def record(self, scope: Scope, record_id: str) -> MemoryRecord | None:
        parameters = {"owner": scope.owner, "agent": scope.agent, "session": scope.session, **limits_of(scope)}
        number = message_key(record_id)
        if number is not None:
            found = await self._records(SELECT_MESSAGE_RECORD, number=number, **parameters)
        else:
            found = await self._records(SELECT_RECORD, id=record_id, **parameters)
        return next(iter(found), None)

    async def list_records(
        self, scope: Scope, types: frozenset[RecordType], *, after: str | None = None, limit: int
    ) -> Sequence[MemoryRecord]:
        agent_key = await self._agent_key(scope)
        if agent_key is None:
            return []
        before_key = _NEWEST
        if after is not None:
            last = await self.record(scope, after)
            if last is None:
                raise RecordNotFound(f"no record {after!r} to continue after; list from the start")
            before_key = key_of(last)
        found: list[MemoryRecord] = []
        for kind in sorted((types or _LISTED) & _LISTED):
            found += await self._records(
                SELECT_NEWEST_OF_TYPE,
                agent_key=agent_key,
                type=str(kind),
                before_key=before_key,
                session=scope.session,
                owner=scope.owner,
                project=scope.project,
                limit=limit,
                **limits_of(scope),
            )
        return sorted(found, key=lambda one: -key_of(one))[:limit]

    async def document(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        parameters = {"agent_key": await self._agent_key(scope), "source": source, **_places(scope)}
        return await self._records(SELECT_DOCUMENT, **parameters)

    async def of_source(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        return await self._records(SELECT_OF_SOURCE, source=source, **_places(scope))

    async def sources(self, scope: Scope, prefix: str) -> Sequence[tuple[str, int]]:
        agent_key = await self._agent_key(scope)
        found = await self._all(SELECT_SOURCES, agent_key=agent_key, prefix=prefix, **_places(scope))
        return [(source, size) for source, size in found]

    async def parts(self, scope: Scope, document_id: str) -> Sequence[MemoryRecord]:
        parameters = {"owner": scope.owner, "agent": scope.agent, "session": scope.session, **limits_of(scope)}
        return await self._records(SELECT_PARTS, document_id=document_id, **parameters)

    async def known(self, scope: Scope, *, limit: int, include_internal: bool = False) -> Sequence[KnownRecord]:
        parameters = {"agent_key": await self._agent_key(scope), "limit": limit, **_places(scope)}
        return [
            rows.known(row) for row in await self._all(SELECT_KNOWN, **parameters, include_internal=include_internal)
        ]

    async def left_open(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        parameters = {"agent_key": await self._agent_key(scope), "limit": limit, **_places(scope)}
        return [rows.known(row) for row in await self._all(SELECT_LEFT_OPEN, **parameters)]

    async def statements(self, scope: Scope, *, lasting: int, of_sessions: int, forgotten: int) -> list[MemoryRecord]:
        limits = {"lasting": lasting, "of_sessions": of_sessions, "forgotten": forgotten}
        keys = await self._all(SELECT_STATED, agent_key=await self._agent_key(scope), **limits, **_places(scope))
        return (await self._records(SELECT_RECORDS_OF_KEYS, keys=json.dumps([row[0] for row in keys])))[::-1]

    async def superseded(self, scope: Scope, record_ids: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        found = await self._all(SELECT_SUPERSEDED, **_named(record_ids), owner=scope.owner, **limits_of(scope))
        return {superseded: (record_id, at) for superseded, record_id, at in found}

    async def same_words(self, scope: Scope, record_type: RecordType, text: str) -> MemoryRecord | None:
        parameters = {"type": str(record_type), "text": text, "session": scope.session, **_places(scope)}
        found = await self._records(SELECT_SAME_WORDS, agent_key=await self._agent_key(scope), **parameters)
        return next(iter(found), None)

    async def same_known(self, scope: Scope, reach: Reach, text: str) -> MemoryRecord | None:
        parameters = {"reach": str(reach), "text": text, **_places(scope)}
        found = await self._records(SELECT_SAME_KNOWN, agent_key=await self._agent_key(scope), **parameters)
        return next(iter(found), None)

    async def recent_words(self, scope: Scope, *, most_chars: int) -> Sequence[RecentWords]:
        parameters = {"session": scope.session, "most_chars": most_chars, **_places(scope)}
        agent_key = await self._agent_key(scope)
        found = [
            row
            for is_untrusted in (True, False)
            for row in await self._all(
                SELECT_RECENT_WORDS, agent_key=agent_key, is_untrusted=is_untrusted, **parameters
            )
        ]
        return [RecentWords(record_id, text, Origin(origin)) for record_id, text, origin in found]

    async def pins_of(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        return await self._records(SELECT_PINS_OF_MESSAGE, id=record.id, key=key_of(record))

    async def summaries_over(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        return await self._records(SELECT_SUMMARIES_OVER, key=key_of(record))

    async def edits(self, record: MemoryRecord) -> Sequence[StoredEdit]:
        return [rows.stored_edit(row) for row in await self._all(SELECT_EDITS, key=key_of(record))]

    async def causes(self, record: MemoryRecord) -> frozenset[str]:
        return frozenset(row[0] for row in await self._all(SELECT_CAUSES, key=key_of(record)))

    async def of_client_keys(
        self, scope: Scope, record_type: RecordType, client_keys: Collection[str]
    ) -> Sequence[MemoryRecord]:
        keys = await ClientKeys(self._connection).records(scope, record_type, client_keys)
        return await self._records(SELECT_RECORDS_OF_KEYS, keys=json.dumps(keys)) if keys else []

    async def client_keys(self, scope: Scope, record_type: RecordType, prefix: str) -> Sequence[str]:
        return await ClientKeys(self._connection).beginning_with(scope, record_type, prefix)

    async def erased_texts(
        self, scope: Scope, record_type: RecordType, texts: Collection[str], client_keys: Collection[str] = ()
    ) -> Sequence[ErasedText]:
        return await Tombstones(self._connection).of_texts(scope, record_type, texts, client_keys)

    async def tombstone(self, scope: Scope, record_id: str) -> Tombstone | None:
        return await Tombstones(self._connection).of_record(scope, record_id)

    async def erased(self, scope: Scope, record_ids: Sequence[str]) -> frozenset[str]:
        return await Tombstones(self._connection).of_records(scope.owner, record_ids)

    async def damaged(self, scope: Scope, record_ids: Sequence[str]) -> Sequence[str]:
        found = await self._all(SELECT_HASHED, **_named(record_ids), owner=scope.owner)
        return [record_id for record_id, stored_hash, *row in found if record_hash(row) != stored_hash]

    async def scan(
        self, scope: Scope, *, after: ScanCursor | None, limit: int, has_forgotten: bool = False
    ) -> Sequence[ScannedRecord]:
        parameters = {"after_key": after or 0, "limit": limit, **_places(scope)}
        agent_key = await self._agent_key(scope)
        found = await self._all(SELECT_SCANNED, agent_key=agent_key, has_forgotten=has_forgotten, **parameters)
        return [ScannedRecord(key, record_id, RecordType(kind), *row) for key, record_id, kind, *row in found]

    async def has_forgotten_values(self, owner: str) -> bool:
        del owner  # no index has it
        return not await ForgottenValues(self._connection).is_empty()

    async def forgotten_values(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        return await ForgottenValues(self._connection).of(scope, keys)

    async def _agent_key(self, scope: Scope) -> int | None:
        """The key of the agent that the scope names, else of its session's agent, else of the default one."""
        found = await self._all(
            SELECT_AGENT_KEY,
            owner=scope.owner,
            agent=scope.agent,
            session=scope.session,
            default_agent=DEFAULT_AGENT,
            **limits_of(scope),
        )
        return next((int(row[0]) for row in found), None)

    async def _records(self, statement: str, **parameters: Any) -> list[MemoryRecord]:
        return [rows.record(row) for row in await self._all(statement, **parameters)]


def _named(record_ids: Sequence[str]) -> dict[str, str]:
    """The parameters that name records by their ids: those of messages by the numbers in them."""
    numbers = [number for one in record_ids if (number := message_key(one)) is not None]
    return {"numbers": json.dumps(numbers), "ids": json.dumps(list(record_ids))}


def _places(scope: Scope) -> dict[str, str | None]:
    """The parameters that name the owner, the project and the limits."""
    return {"owner": scope.owner, "project": scope.project, **limits_of(scope)}
