"""Statements for a person who looks through conversations."""

from typing import Final

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.storage.record_rows import AT_THE_END
from kalito_mcp.storage.sessions import IS_SHOWN
from kalito_mcp.storage.sqlite.queries import within
from kalito_mcp.storage.sqlite.sessions import SESSION_COLUMNS
from kalito_mcp.storage.sqlite.superseded import NOT_SUPERSEDED
from kalito_mcp.storage.timeline import QUARTER_MS

_IN_SCOPE: Final = f"""
    s.owner = :owner AND (:agent IS NULL OR a.id = :agent)
    AND (:project IS NULL OR s.project_key IS NULL OR s.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    )) AND {within("s")}
"""
_CLIENT: Final = """
    (SELECT f.client FROM records f WHERE f.session_key = s.key AND f.type = 'message' AND f.seq = 1)
"""
_NOT_ERASED: Final = f"""
    ({IS_SHOWN} OR EXISTS (
        SELECT 1 FROM records k WHERE k.session_key = s.key AND k.type = 'message' AND k.purged_at IS NULL
    ))
"""
SELECT_BEGUN: Final = f"""
SELECT {_CLIENT}, {SESSION_COLUMNS} FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND {within("s")} AND {_NOT_ERASED}
"""
SELECT_TIMELINE: Final = f"""
SELECT {_CLIENT}, {SESSION_COLUMNS} FROM sessions s INDEXED BY sessions_said JOIN agents a ON a.key = s.agent_key
WHERE {_IN_SCOPE} AND {_NOT_ERASED} AND (coalesce(s.newest_message_at, s.updated_at), s.key) < (
        :said_at, coalesce((SELECT key FROM sessions WHERE owner = :owner AND id = :before), 0)
    )
    AND (:begun_until IS NULL OR coalesce(s.oldest_message_at, s.created_at) <= :begun_until)
    AND (:client IS NULL OR {_CLIENT} = :client)
    AND (:is_forgotten IS NULL OR {IS_SHOWN} <> :is_forgotten)
ORDER BY coalesce(s.newest_message_at, s.updated_at) DESC, s.key DESC LIMIT :limit
"""
SELECT_CLIENTS: Final = f"""
SELECT DISTINCT client FROM (
    SELECT {_CLIENT} AS client FROM sessions s INDEXED BY sessions_said JOIN agents a ON a.key = s.agent_key
    WHERE {_IN_SCOPE} ORDER BY coalesce(s.newest_message_at, s.updated_at) DESC, s.key DESC LIMIT :among
) WHERE client IS NOT NULL ORDER BY client
"""
_NOTE: Final = """
    r.id, r.type, coalesce(r.reach, 'session'), r.text, r.importance, r.created_at, r.tokens, r.role, r.origin, s.id,
    (SELECT p.id FROM projects p WHERE p.key = r.project_key), CASE WHEN r.type = 'pin' THEN r.attributes END
"""
SELECT_NOTES: Final = f"""
SELECT {_NOTE} FROM json_each(:ids) named
CROSS JOIN sessions s ON s.owner = :owner AND s.id = named.value
CROSS JOIN records r ON r.key IN (
    SELECT key FROM records WHERE session_key = s.key AND type = 'summary' AND is_covered = 0
    UNION ALL
    SELECT key FROM (
        SELECT key FROM records
        WHERE session_key = s.key AND type = 'pin' AND deleted_at IS NULL AND is_internal = 0
        ORDER BY importance DESC, created_at DESC, key DESC LIMIT :limit
    )
)
WHERE r.deleted_at IS NULL AND r.purged_at IS NULL AND r.is_internal = 0 AND {NOT_SUPERSEDED} AND {within("s")}
    AND {within("r")}
ORDER BY named.key, r.type DESC, CASE r.type WHEN 'summary' THEN r.seq END, r.importance DESC, r.created_at DESC,
    r.key DESC
"""
SELECT_OPEN_POINTS: Final = f"""
SELECT {_NOTE} FROM records r JOIN sessions s ON s.key = r.session_key JOIN agents a ON a.key = s.agent_key
WHERE r.key IN (
    SELECT key FROM records
    WHERE agent_key IN (SELECT key FROM agents WHERE owner = :owner AND (:agent IS NULL OR id = :agent))
        AND type = 'pin' AND id IS NOT NULL AND deleted_at IS NULL
    ORDER BY key DESC LIMIT 1000
) AND r.reach IS NULL AND json_extract(r.attributes, '$.kind') = '{Kind.OPEN}' AND r.is_internal = 0
    AND {_IN_SCOPE} AND {NOT_SUPERSEDED} AND r.created_at >= coalesce((
        SELECT m.created_at FROM records m WHERE m.session_key = r.session_key AND m.type = 'message'
            AND m.deleted_at IS NULL ORDER BY m.seq DESC LIMIT 1 OFFSET {AT_THE_END - 1}
    ), 0)
ORDER BY r.created_at DESC, r.key DESC LIMIT :limit
"""
SELECT_SPANS: Final = f"""
SELECT s.key, s.oldest_message_at, s.newest_message_at, s.message_count - s.hidden_count
FROM sessions s INDEXED BY sessions_said JOIN agents a ON a.key = s.agent_key
WHERE {_IN_SCOPE} AND coalesce(s.newest_message_at, s.updated_at) >= :since AND s.oldest_message_at < :until
"""
SELECT_QUARTERS: Final = f"""
SELECT r.created_at / {QUARTER_MS} * {QUARTER_MS}, count(*) FROM json_each(:keys) named
CROSS JOIN records r ON r.session_key = named.value AND r.type = 'message'
WHERE r.deleted_at IS NULL AND r.created_at >= :since AND r.created_at < :until
GROUP BY 1
"""
