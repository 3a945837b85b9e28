"""Statements that read whole records and their edits."""

from typing import Final

from kalito_mcp.domain.kinds import OF_ITS_SESSION
from kalito_mcp.domain.memory_records import AUTO_KEY
from kalito_mcp.storage.postgres.queries import AGENT_KEY, within
from kalito_mcp.storage.postgres.record_statements import STORED_COLUMNS, attribute
from kalito_mcp.storage.postgres.superseded import NOT_SUPERSEDED
from kalito_mcp.storage.record_rows import AT_THE_END, EDIT_COLUMNS
from kalito_mcp.storage.row_hash import HASHED_COLUMNS, LATER_COLUMNS

_WHOLE: Final = f"""
SELECT {STORED_COLUMNS}, a.id, s.id, u.usage_count, u.last_used, (
    SELECT coalesce(json_agg(coalesce(effects.id, 'msg_' || effects.key) ORDER BY effects.key), '[]')::text FROM (
        SELECT id, key FROM records WHERE owner_key = :owner AND caused_by = r.key ORDER BY key LIMIT 100
    ) effects
)
FROM records r JOIN agents a ON a.owner_key = :owner AND a.key = r.agent_key
    LEFT JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
    LEFT JOIN record_usage u ON u.owner_key = :owner AND u.record_key = r.key
WHERE r.owner_key = :owner
"""
_ADMITTED: Final = f"""
    r.purged_at IS NULL AND (:agent IS NULL OR a.id = :agent) AND (:session IS NULL OR s.id = :session)
    AND {within("r")}
"""
_OF_AGENT: Final = f"r.owner_key = :owner AND r.agent_key = {AGENT_KEY}"
_PROJECT_KEY: Final = "(SELECT key FROM projects WHERE owner_key = :owner AND id = :project)"
_PROJECT_ID: Final = "(SELECT p.id FROM projects p WHERE p.owner_key = :owner AND p.key = r.project_key)"
_SESSION_KEY: Final = "(SELECT key FROM sessions WHERE owner_key = :owner AND id = :session)"
_NOT_AUTOMATIC: Final = f"(r.client_key IS NULL OR NOT starts_with(r.client_key, '{AUTO_KEY}'))"

SELECT_RECORD: Final = f"{_WHOLE} AND r.id = :id AND {_ADMITTED}"
SELECT_MESSAGE_RECORD: Final = f"{_WHOLE} AND r.key = :number AND r.type = 'message' AND {_ADMITTED}"
SELECT_IDS_BY_TAIL: Final = """
SELECT id FROM records
WHERE owner_key = :owner AND id > :first AND id < :after AND id LIKE :like ESCAPE '!'
UNION
SELECT record_id FROM tombstones
WHERE owner_key = :owner AND record_id > :first AND record_id < :after AND record_id LIKE :like ESCAPE '!'
ORDER BY 1 LIMIT 20
"""
SELECT_RECORDS_OF_KEYS: Final = f"{_WHOLE} AND r.key = ANY(:keys) ORDER BY r.key"
SELECT_NEWEST_OF_TYPES: Final = f"""
{_WHOLE} AND r.key = ANY(ARRAY(
    SELECT newest.key FROM unnest(:types) AS wanted (type) CROSS JOIN LATERAL (
        SELECT r.key FROM records r
        WHERE {_OF_AGENT} AND r.type = wanted.type AND r.id IS NOT NULL AND r.deleted_at IS NULL
            AND r.key < :before_key AND (:session IS NULL OR r.session_key = {_SESSION_KEY})
            AND (:project IS NULL OR r.project_key IS NULL OR r.project_key = {_PROJECT_KEY}) AND {within("r")}
        ORDER BY r.key DESC LIMIT :limit
    ) newest
    ORDER BY newest.key DESC LIMIT :limit
))
ORDER BY r.key DESC
"""
_KNOWN: Final = f"""r.id, r.type, r.reach, r.text, r.importance, r.created_at, r.tokens, r.role, r.origin, s.id,
    {_PROJECT_ID}, CASE WHEN r.type = 'pin' THEN r.attributes END"""
_OF_KNOWN: Final = f"""
FROM records r LEFT JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key AND {within("s")}
"""
_WHERE_KNOWN: Final = f"""
WHERE {_OF_AGENT} AND r.reach IS NOT NULL AND r.deleted_at IS NULL AND {within("r")}
    AND (r.is_internal = 0 OR :include_internal::boolean)
    AND (:project IS NULL OR r.reach = 'person' OR r.project_key = {_PROJECT_KEY})
    AND {NOT_SUPERSEDED}
"""
_MOST_IMPORTANT: Final = "ORDER BY r.importance DESC, r.created_at DESC, r.key DESC"
SELECT_KNOWN: Final = f"SELECT {_KNOWN} {_OF_KNOWN} {_WHERE_KNOWN} {_MOST_IMPORTANT} LIMIT :limit"
SELECT_KNOWN_OF_SPACE: Final = f"""
SELECT {_KNOWN}, c.member, row_number() OVER (PARTITION BY c.member {_MOST_IMPORTANT}) AS turn
{_OF_KNOWN} LEFT JOIN shared_copies c ON c.space = :space AND c.record_id = r.id {_WHERE_KNOWN}
ORDER BY turn, r.tokens, r.key DESC LIMIT :limit
"""
SELECT_SUPERSEDED: Final = f"""
SELECT coalesce(o.id, 'msg_' || o.key), coalesce(n.id, 'msg_' || n.key), n.created_at
FROM superseded_records s JOIN records n ON n.owner_key = :owner AND n.key = s.by_key
    JOIN records o ON o.owner_key = :owner AND o.key = s.record_key
WHERE s.owner_key = :owner AND s.record_key = ANY(
    :numbers || ARRAY(SELECT key FROM records WHERE owner_key = :owner AND id = ANY(:ids))
) AND n.deleted_at IS NULL AND {within("n")}
ORDER BY n.created_at, n.key
"""
# Without a moment of its own, a record was stored when it was said.
SELECT_SAID_IN_ORDER: Final = """
SELECT coalesce(id, 'msg_' || key) FROM records
WHERE owner_key = :owner AND recorded_at IS NULL AND key = ANY(
    :numbers || ARRAY(SELECT key FROM records WHERE owner_key = :owner AND id = ANY(:ids))
)
ORDER BY key
"""
# A project that has nothing yet has no key: it is not the same as none.
_IN_PROJECT: Final = f"""
    coalesce(r.project_key, 0) = coalesce(
        {_PROJECT_KEY}, CASE WHEN coalesce(:project, 'personal') = 'personal' THEN 0 ELSE -1 END
    )
"""
_OF_ITS_SESSION: Final = ", ".join(f"'{kind}'" for kind in sorted(OF_ITS_SESSION))
SELECT_LEFT_OPEN: Final = f"""
SELECT r.id, r.type, 'session', r.text, r.importance, r.created_at, r.tokens, r.role, r.origin, s.id, {_PROJECT_ID},
    r.attributes
FROM records r JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
WHERE r.owner_key = :owner AND r.key = ANY(ARRAY(
    SELECT r.key FROM records r
    WHERE {_OF_AGENT} AND r.type = 'pin' AND r.id IS NOT NULL AND r.deleted_at IS NULL
    ORDER BY r.key DESC LIMIT 500
)) AND r.reach IS NULL AND {attribute("r", "kind")} IN ({_OF_ITS_SESSION}) AND {within("r")}
    AND {_IN_PROJECT} AND {NOT_SUPERSEDED} AND r.created_at >= coalesce((
        SELECT m.created_at FROM records m
        WHERE m.owner_key = :owner AND m.session_key = r.session_key AND m.type = 'message' AND m.deleted_at IS NULL
        ORDER BY m.seq DESC LIMIT 1 OFFSET {AT_THE_END - 1}
    ), 0)
ORDER BY r.created_at DESC, r.key DESC LIMIT :limit
"""
_STATED_FOR: Final = f"""(:project IS NULL OR r.project_key IS NULL OR r.project_key = (
        SELECT key FROM projects WHERE owner_key = :owner AND id = :project
    )) AND {within("r")}
"""
_STATED_KEYS: Final = f"""
(
    SELECT r.key FROM records r
    WHERE r.owner_key = :owner AND r.agent_key = {AGENT_KEY} AND r.reach IS NOT NULL AND r.deleted_at IS NULL
        AND {_STATED_FOR}
    ORDER BY r.key DESC LIMIT :lasting::bigint
)
UNION ALL
(
    SELECT r.key FROM records r
    WHERE r.owner_key = :owner AND r.agent_key = {AGENT_KEY} AND r.type = 'pin' AND r.id IS NOT NULL
        AND r.deleted_at IS NULL AND r.reach IS NULL AND {_STATED_FOR}
    ORDER BY r.key DESC LIMIT :of_sessions::bigint
)
UNION ALL
(
    SELECT r.key FROM records r
    WHERE r.owner_key = :owner AND r.agent_key = {AGENT_KEY} AND r.deleted_at IS NOT NULL
        AND (r.type = 'pin' OR (r.type = 'document' AND r.reach IS NOT NULL)) AND r.purged_at IS NULL AND {_STATED_FOR}
    ORDER BY r.key DESC LIMIT :forgotten::bigint
)
"""
"""Which records state something: pins, and notes that are known beyond their session. How many of each, and
`places_of`, are parameters."""
SELECT_STATED: Final = f"{_WHOLE} AND r.key = ANY(ARRAY({_STATED_KEYS})) ORDER BY r.key DESC"
SELECT_DOCUMENT: Final = f"""
{_WHOLE} AND r.agent_key = {AGENT_KEY} AND r.source = :source AND {_IN_PROJECT} AND {within("r")} ORDER BY r.seq
"""
SELECT_SAME_WORDS: Final = f"""
{_WHOLE} AND r.key = (
    SELECT r.key FROM (
        SELECT r.key, r.text, r.agent_key, r.session_key, r.project_key, r.reach, r.client_key FROM records r
        WHERE {_OF_AGENT} AND r.type = :type AND r.id IS NOT NULL AND r.deleted_at IS NULL
        ORDER BY r.key DESC LIMIT 5000
    ) r
    WHERE r.text = :text AND ((:session IS NULL AND r.session_key IS NULL) OR r.session_key = {_SESSION_KEY})
        AND r.reach IS NULL AND {_IN_PROJECT} AND {within("r")} AND {_NOT_AUTOMATIC}
    ORDER BY r.key DESC LIMIT 1
)
"""
SELECT_SAME_KNOWN: Final = f"""
{_WHOLE} AND r.key = (
    SELECT r.key FROM records r
    WHERE {_OF_AGENT} AND r.reach IS NOT NULL AND r.deleted_at IS NULL AND r.reach = :reach AND r.text = :text
        AND (r.reach = 'person' OR {_IN_PROJECT}) AND {within("r")} AND {_NOT_AUTOMATIC}
    ORDER BY r.key DESC LIMIT 1
)
"""
# Of untrusted origins, or else of users. A role's origin is not stored: `system` relays tools.
# The agent is a range of one: by `=`, a plan may follow the keys of the owner and skip those of other agents.
SELECT_RECENT_WORDS: Final = f"""
WITH of_agent AS (
    SELECT coalesce(
        (SELECT agent_key FROM sessions WHERE owner_key = :owner AND id = :session), {AGENT_KEY}
    ) AS agent_key
), recent AS MATERIALIZED (
    (
        SELECT key, role, origin, deleted_at FROM records
        WHERE owner_key = :owner AND agent_key BETWEEN (TABLE of_agent) AND (TABLE of_agent)
        ORDER BY agent_key DESC, key DESC LIMIT 2000
    )
    UNION
    (
        SELECT key, role, origin, deleted_at FROM records
        WHERE owner_key = :owner AND type = 'message' AND session_key = {_SESSION_KEY} ORDER BY seq DESC LIMIT 500
    )
), chosen AS (
    (
        SELECT key, 0 AS place FROM recent WHERE deleted_at IS NULL
            AND (origin IN ('tool', 'document', 'import') OR (origin IS NULL AND role = 'system'))
        ORDER BY key DESC LIMIT 200
    )
    UNION ALL
    (
        SELECT key, 1 FROM recent WHERE deleted_at IS NULL
            AND (origin = 'user' OR (origin IS NULL AND role = 'user'))
        ORDER BY key DESC LIMIT 200
    )
)
SELECT coalesce(r.id, 'msg_' || r.key), substr(r.text, 1, :most_chars::integer),
    coalesce(r.origin, CASE r.role WHEN 'user' THEN 'user' ELSE 'tool' END)
FROM chosen CROSS JOIN LATERAL (SELECT * FROM records WHERE owner_key = :owner AND key = chosen.key OFFSET 0) r
WHERE {within("r")} ORDER BY chosen.place, r.key DESC
"""
SELECT_OF_SOURCE: Final = f"""
{_WHOLE} AND r.source = :source AND (:project IS NULL OR {_IN_PROJECT}) AND {within("r")} ORDER BY r.key
"""
# "0" follows "/". A text is as long as before `nul_text` replaced characters of it.
SELECT_SOURCES: Final = f"""
SELECT r.source, sum(octet_length(
    replace(replace(r.text, U&'\\F8F0\\F8F0', 'xxx'), U&'\\F8F0' || '0', 'x')
)) FROM records r
WHERE {_OF_AGENT} AND r.source >= :prefix AND r.source < rtrim(:prefix, '/') || '0'
    AND r.deleted_at IS NULL AND {_IN_PROJECT} AND {within("r")}
GROUP BY r.source ORDER BY r.source
"""
SELECT_PARTS: Final = f"{_WHOLE} AND r.document_id = :document_id AND {_ADMITTED} ORDER BY r.seq"
SELECT_PINS_OF_MESSAGE: Final = f"""
{_WHOLE} AND r.type = 'pin' AND {attribute("r", "source_message_id")} = :id
    AND r.session_key = (SELECT session_key FROM records WHERE owner_key = :owner AND key = :key)
ORDER BY r.key
"""
# At most one of each level, because a level has no overlaps: the last that begins at the message or before. The seq of
# a summary is that of its first message.
SELECT_SUMMARIES_OVER: Final = f"""
WITH RECURSIVE message AS (
    SELECT session_key, seq FROM records
    WHERE owner_key = :owner AND key = :key AND type IN ('message', 'summary')
), levels (level) AS (
    SELECT 0 UNION ALL SELECT level + 1 FROM levels CROSS JOIN message m WHERE EXISTS (
        SELECT 1 FROM records o
        WHERE o.owner_key = :owner AND o.session_key = m.session_key AND o.type = 'summary'
            AND o.level = levels.level + 1
    )
)
{_WHOLE} AND r.key = ANY(ARRAY(
    SELECT (
        SELECT o.key FROM records o
        WHERE o.owner_key = :owner AND o.session_key = m.session_key AND o.type = 'summary'
            AND o.level = levels.level AND o.seq <= m.seq
        ORDER BY o.seq DESC LIMIT 1
    )
    FROM levels CROSS JOIN message m
)) AND r.end_seq >= (SELECT seq FROM message) AND r.purged_at IS NULL
ORDER BY r.level
"""
SELECT_CAUSES: Final = """
WITH RECURSIVE causes (key) AS (
    SELECT caused_by FROM records WHERE owner_key = :owner AND key = :key AND caused_by IS NOT NULL
    UNION
    SELECT r.caused_by FROM causes JOIN records r ON r.owner_key = :owner AND r.key = causes.key
    WHERE r.caused_by IS NOT NULL
)
SELECT coalesce(r.id, 'msg_' || r.key) FROM causes JOIN records r ON r.owner_key = :owner AND r.key = causes.key
"""
SELECT_EDITS: Final = f"""
SELECT {EDIT_COLUMNS} FROM memory_edits e WHERE e.owner_key = :owner AND e.record_key = :key ORDER BY e.version
"""
# JSON in one line each.
SELECT_SCANNED: Final = f"""
SELECT r.key, coalesce(r.id, 'msg_' || r.key), r.type, r.text,
    CASE WHEN :has_forgotten::boolean AND r.revision > 1 THEN (
        SELECT string_agg(e.changes, chr(10) ORDER BY e.version) FROM memory_edits e
        WHERE e.owner_key = :owner AND e.record_key = r.key
    ) END, r.tags, r.name, r.created_at,
    (SELECT s.id FROM sessions s WHERE s.owner_key = :owner AND s.key = r.session_key), r.seq, r.end_seq, r.revision
FROM records r
WHERE {_OF_AGENT} AND r.key > :after_key AND r.purged_at IS NULL
    AND (r.deleted_at IS NULL OR :has_forgotten)
    AND (:project IS NULL OR r.project_key IS NULL OR r.project_key = {_PROJECT_KEY}) AND {within("r")}
ORDER BY r.key LIMIT :limit
"""
SELECT_HASHED: Final = f"""
SELECT 'msg_' || key, hash, {HASHED_COLUMNS}, {LATER_COLUMNS} FROM records
WHERE owner_key = :owner AND key = ANY(:numbers) AND type = 'message'
UNION ALL
SELECT id, hash, {HASHED_COLUMNS}, {LATER_COLUMNS} FROM records WHERE owner_key = :owner AND id = ANY(:ids)
"""
