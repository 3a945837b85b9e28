"""Statements on what the memory gave back."""

from typing import Final

_NEWEST: Final = (1 << 63) - 1
"""A key that no entry reaches."""

_PROJECT: Final = "CASE WHEN s.key IS NULL THEN g.project ELSE coalesce(p.id, 'personal') END"
_COLUMNS: Final = f"""
    g.kind, g.at, g.tokens, g.parts, g.left_out, g.agent, {_PROJECT}, g.session, g.client, g.budget, g.key
"""
_OF_SCOPE: Final = f"""
FROM given g
    LEFT JOIN sessions s ON s.owner_key = :owner AND s.id = g.session
    LEFT JOIN projects p ON p.owner_key = :owner AND p.key = s.project_key
WHERE g.owner_key = :owner AND (:agent IS NULL OR g.agent = :agent) AND (:session IS NULL OR g.session = :session)
    AND (:project IS NULL OR {_PROJECT} IN (:project, 'personal'))
    AND (:limit_agent IS NULL OR g.agent = :limit_agent)
    AND (:limit_project IS NULL OR (
        g.project IN (:limit_project, 'personal') AND {_PROJECT} IN (:limit_project, 'personal')
    ))
"""
SELECT_GIVEN: Final = f"""
SELECT {_COLUMNS} {_OF_SCOPE}
    AND (:before_key IS NULL OR (g.at, g.key) < (
        SELECT at, key FROM given WHERE owner_key = :owner AND key = :before_key
    ))
    AND (:named::text IS NULL OR strpos(g.parts, :named) > 0)
ORDER BY g.at DESC, g.key DESC LIMIT :limit
"""
SELECT_GIVEN_ONCE: Final = f"SELECT {_COLUMNS} {_OF_SCOPE} AND g.key = :key"
SELECT_GIVEN_TOKENS: Final = f"SELECT g.at, g.kind, g.tokens {_OF_SCOPE} ORDER BY g.at, g.key"
# The number of an id is the key of a message, which has no id of its own. Records are looked up one by one (LIMIT): no
# plan may read all records of an owner.
SELECT_REVISIONS: Final = """
SELECT named.place, named.id, r.revision - (
    SELECT count(*) FROM memory_edits e
    WHERE e.owner_key = :owner AND e.record_key = r.key AND e.edited_at > named.at
) FROM unnest(:places::integer[], :ids, :numbers, :moments::bigint[]) AS named (place, id, number, at)
CROSS JOIN LATERAL (
    (SELECT key, revision FROM records WHERE owner_key = :owner AND id = named.id LIMIT 1)
    UNION ALL
    (SELECT key, revision FROM records WHERE owner_key = :owner AND key = named.number AND id IS NULL LIMIT 1)
) r
"""
INSERT_GIVEN: Final = """
INSERT INTO given (owner_key, agent, project, session, kind, at, client, budget, tokens, parts, left_out)
VALUES (:owner, :agent, :project, :session, :kind, :at, :client, :budget, :tokens, :parts, :left_out)
"""
# Those of this moment and before, and of more than `most` the oldest.
DELETE_GIVEN: Final = f"""
DELETE FROM given WHERE owner_key = :owner AND (at, key) <= (
    SELECT at, key FROM (
        SELECT :before_ms::bigint AS at, {_NEWEST} AS key
        UNION ALL SELECT * FROM (
            SELECT at, key FROM given WHERE owner_key = :owner ORDER BY at DESC, key DESC LIMIT 1 OFFSET :most
        ) AS last
    ) AS either ORDER BY at DESC, key DESC LIMIT 1
)
"""
