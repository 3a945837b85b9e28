"""Statements that read whole records and their edits."""

from typing import Final

from kalito_mcp.domain.kinds import OF_ITS_SESSION
from kalito_mcp.domain.memory_records import AUTO_KEY
from kalito_mcp.storage.record_rows import AT_THE_END, EDIT_COLUMNS
from kalito_mcp.storage.row_hash import HASHED_COLUMNS, LATER_COLUMNS
from kalito_mcp.storage.sqlite.queries import AGENT_KEY, owned, within
from kalito_mcp.storage.sqlite.record_statements import STORED_COLUMNS
from kalito_mcp.storage.sqlite.superseded import NOT_SUPERSEDED

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
SELECT_IDS_BY_TAIL: Final = """
SELECT r.id FROM records r JOIN agents a ON a.key = r.agent_key
WHERE r.id > :first AND r.id < :after AND r.id LIKE :like ESCAPE '!' AND a.owner = :owner
UNION
SELECT record_id FROM tombstones
WHERE record_id > :first AND record_id < :after AND record_id LIKE :like ESCAPE '!' AND owner = :owner
ORDER BY 1 LIMIT 20
"""
SELECT_RECORDS_OF_KEYS: Final = f"{_WHOLE} WHERE r.key IN (SELECT value FROM json_each(:keys)) ORDER BY r.key"
SELECT_NEWEST_OF_TYPES: Final = f"""
{_WHOLE}
WHERE r.key IN (
    SELECT newest.key FROM json_each(:types) wanted CROSS JOIN records newest ON newest.key IN (
        SELECT r.key FROM records r
        WHERE r.agent_key = {AGENT_KEY} AND r.type = wanted.value AND r.id IS NOT NULL AND r.deleted_at IS NULL
            AND r.key < :before_key
            AND (:session IS NULL OR r.session_key = (SELECT key FROM sessions WHERE owner = :owner AND id = :session))
            AND (:project IS NULL OR r.project_key IS NULL OR r.project_key = (
                SELECT key FROM projects WHERE owner = :owner AND id = :project
            )) AND {within("r")}
        ORDER BY r.key DESC LIMIT :limit
    )
)
ORDER BY r.key DESC LIMIT :limit
"""
_KNOWN: Final = """r.id, r.type, r.reach, r.text, r.importance, r.created_at, r.tokens, r.role, r.origin, s.id,
    (SELECT p.id FROM projects p WHERE p.key = r.project_key), CASE WHEN r.type = 'pin' THEN r.attributes END"""
_OF_KNOWN: Final = f"""
FROM records r INDEXED BY records_known LEFT JOIN sessions s ON s.key = r.session_key AND {within("s")}
"""
_WHERE_KNOWN: Final = f"""
WHERE r.agent_key = {AGENT_KEY} AND r.reach IS NOT NULL AND r.deleted_at IS NULL AND {within("r")}
    AND (r.is_internal = 0 OR :include_internal)
    AND (:project IS NULL OR r.reach = 'person' OR r.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    ))
    AND {NOT_SUPERSEDED}
"""
_MOST_IMPORTANT: Final = "ORDER BY r.importance DESC, r.created_at DESC, r.key DESC"
SELECT_KNOWN: Final = f"SELECT {_KNOWN} {_OF_KNOWN} {_WHERE_KNOWN} {_MOST_IMPORTANT} LIMIT :limit"
SELECT_KNOWN_OF_SPACE: Final = f"""
SELECT {_KNOWN}, c.member, row_number() OVER (PARTITION BY c.member {_MOST_IMPORTANT}) AS turn
{_OF_KNOWN} LEFT JOIN shared_copies c ON c.space = :space AND c.record_id = r.id {_WHERE_KNOWN}
ORDER BY turn, r.tokens, r.key DESC LIMIT :limit
"""
"""In turn of those who shared them, so that nobody's are more than their part."""
SELECT_SUPERSEDED: Final = f"""
SELECT coalesce(o.id, 'msg_' || o.key), coalesce(n.id, 'msg_' || n.key), n.created_at
FROM superseded_records s JOIN records n ON n.key = s.by_key JOIN records o ON o.key = s.record_key
WHERE s.record_key IN (
    SELECT value FROM json_each(:numbers) UNION ALL
    SELECT key FROM records WHERE id IN (SELECT value FROM json_each(:ids))
) AND n.deleted_at IS NULL AND {within("n")}
ORDER BY n.created_at, n.key
"""
# Without a moment of its own, a record was stored when it was said.
SELECT_SAID_IN_ORDER: Final = """
SELECT coalesce(r.id, 'msg_' || r.key) FROM records r JOIN agents a ON a.key = r.agent_key
WHERE r.key IN (
    SELECT value FROM json_each(:numbers) UNION ALL
    SELECT key FROM records WHERE id IN (SELECT value FROM json_each(:ids))
) AND a.owner = :owner AND r.recorded_at IS NULL
ORDER BY r.key
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
    SELECT key FROM records WHERE agent_key = {AGENT_KEY} AND type = 'pin' AND id IS NOT NULL AND deleted_at IS NULL
    ORDER BY key DESC LIMIT 500
) AND r.reach IS NULL AND json_extract(r.attributes, '$.kind') IN ({_OF_ITS_SESSION}) AND {within("r")}
    AND {_IN_PROJECT} AND {NOT_SUPERSEDED} AND r.created_at >= coalesce((
        SELECT m.created_at FROM records m WHERE m.session_key = r.session_key AND m.type = 'message'
            AND m.deleted_at IS NULL ORDER BY m.seq DESC LIMIT 1 OFFSET {AT_THE_END - 1}
    ), 0)
ORDER BY r.created_at DESC, r.key DESC LIMIT :limit
"""
_STATED_FOR: Final = f"""(:project IS NULL OR r.project_key IS NULL OR r.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    )) AND {within("r")}
"""
_STATED_KEYS: Final = f"""
SELECT key FROM (
    SELECT r.key FROM records r INDEXED BY records_known
    WHERE r.agent_key = {AGENT_KEY} AND r.reach IS NOT NULL AND r.deleted_at IS NULL AND {_STATED_FOR}
    ORDER BY r.key DESC LIMIT :lasting
)
UNION ALL
SELECT key FROM (
    SELECT r.key FROM records r INDEXED BY records_of_types
    WHERE r.agent_key = {AGENT_KEY} AND r.type = 'pin' AND r.id IS NOT NULL AND r.deleted_at IS NULL
        AND r.reach IS NULL AND {_STATED_FOR}
    ORDER BY r.key DESC LIMIT :of_sessions
)
UNION ALL
SELECT key FROM (
    SELECT r.key FROM records r INDEXED BY records_columns
    WHERE r.agent_key = {AGENT_KEY} AND r.deleted_at IS NOT NULL
        AND (r.type = 'pin' OR (r.type = 'document' AND r.reach IS NOT NULL)) AND r.purged_at IS NULL AND {_STATED_FOR}
    ORDER BY r.key DESC LIMIT :forgotten
)
"""
"""Which records state something: pins, and notes that are known beyond their session. How many of each, and
`places_of`, are parameters."""
SELECT_STATED: Final = f"{_WHOLE} WHERE r.key IN ({_STATED_KEYS}) ORDER BY r.key DESC"
SELECT_DOCUMENT: Final = f"""
{_WHOLE}
WHERE r.agent_key = {AGENT_KEY} AND r.source = :source AND {_IN_PROJECT} AND {within("r")}
ORDER BY r.seq
"""
SELECT_SAME_WORDS: Final = f"""
{_WHOLE}
WHERE r.key IN (
    SELECT key FROM records WHERE agent_key = {AGENT_KEY} AND type = :type AND id IS NOT NULL AND deleted_at IS NULL
    ORDER BY key DESC LIMIT 5000
) AND r.text = :text AND s.id IS :session AND r.reach IS NULL AND {_IN_PROJECT} AND {within("r")}
    AND (r.client_key IS NULL OR r.client_key NOT GLOB '{AUTO_KEY}*')
ORDER BY r.key DESC LIMIT 1
"""
SELECT_SAME_KNOWN: Final = f"""
{_WHOLE}
WHERE r.key IN (
    SELECT key FROM records INDEXED BY records_known
    WHERE agent_key = {AGENT_KEY} AND reach IS NOT NULL AND deleted_at IS NULL AND reach = :reach AND text = :text
) AND (r.reach = 'person' OR {_IN_PROJECT}) AND {within("r")}
    AND (r.client_key IS NULL OR r.client_key NOT GLOB '{AUTO_KEY}*')
ORDER BY r.key DESC LIMIT 1
"""
# Of untrusted origins, or else of users. A role's origin is not stored: `system` relays tools.
SELECT_RECENT_WORDS: Final = f"""
WITH recent AS MATERIALIZED (
    SELECT key, role, origin, deleted_at FROM (
        SELECT key, role, origin, deleted_at FROM records INDEXED BY records_columns
        WHERE agent_key = coalesce(
            (SELECT agent_key FROM sessions WHERE owner = :owner AND id = :session), {AGENT_KEY}
        ) ORDER BY key DESC LIMIT 2000
    )
    UNION
    SELECT key, role, origin, deleted_at FROM (
        SELECT key, role, origin, deleted_at FROM records
        WHERE type = 'message' AND session_key = (SELECT key FROM sessions WHERE owner = :owner AND id = :session)
        ORDER BY seq DESC LIMIT 500
    )
), chosen(key, place) AS (
    SELECT * FROM (
        SELECT key, 0 FROM recent WHERE deleted_at IS NULL
            AND (origin IN ('tool', 'document', 'import') OR (origin IS NULL AND role = 'system'))
        ORDER BY key DESC LIMIT 200
    )
    UNION ALL
    SELECT * FROM (
        SELECT key, 1 FROM recent WHERE deleted_at IS NULL
            AND (origin = 'user' OR (origin IS NULL AND role = 'user'))
        ORDER BY key DESC LIMIT 200
    )
)
SELECT coalesce(r.id, 'msg_' || r.key), substr(r.text, 1, :most_chars),
    coalesce(r.origin, CASE r.role WHEN 'user' THEN 'user' ELSE 'tool' END)
FROM chosen CROSS JOIN records r ON r.key = chosen.key
WHERE {within("r")} ORDER BY chosen.place, r.key DESC
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
WHERE r.agent_key = {AGENT_KEY} AND r.source >= :prefix AND r.source < rtrim(:prefix, '/') || '0'
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
SELECT_SCANNED: Final = f"""
SELECT r.key, coalesce(r.id, 'msg_' || r.key), r.type, r.text, CASE WHEN :has_forgotten AND r.revision > 1 THEN (
        SELECT group_concat(e.changes, char(10)) FROM memory_edits e WHERE e.record_key = r.key
    ) END, r.tags, r.name, r.created_at, (SELECT s.id FROM sessions s WHERE s.key = r.session_key),
    r.seq, r.end_seq, r.revision
FROM records r
WHERE r.agent_key = {AGENT_KEY} AND r.key > :after_key AND r.purged_at IS NULL
    AND (r.deleted_at IS NULL OR :has_forgotten)
    AND (:project IS NULL OR r.project_key IS NULL OR r.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    )) AND {within("r")}
ORDER BY r.key LIMIT :limit
"""
SELECT_HASHED: Final = f"""
SELECT 'msg_' || key, hash, {HASHED_COLUMNS}, {LATER_COLUMNS} FROM records
WHERE key IN (SELECT value FROM json_each(:numbers)) AND type = 'message' AND {owned("records")}
UNION ALL
SELECT id, hash, {HASHED_COLUMNS}, {LATER_COLUMNS} FROM records
WHERE id IN (SELECT value FROM json_each(:ids)) AND {owned("records")}
"""
