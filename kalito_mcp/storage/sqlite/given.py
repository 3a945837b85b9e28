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
    LEFT JOIN sessions s ON s.owner = g.owner AND s.id = g.session LEFT JOIN projects p ON p.key = s.project_key
WHERE g.owner = :owner AND (:agent IS NULL OR g.agent = :agent) AND (:session IS NULL OR g.session = :session)
    AND (:project IS NULL OR {_PROJECT} IN (:project, 'personal'))
    AND (:limit_agent IS NULL OR g.agent = :limit_agent)
    AND (:limit_project IS NULL OR (
        g.project IN (:limit_project, 'personal') AND {_PROJECT} IN (:limit_project, 'personal')
    ))
"""
SELECT_GIVEN: Final = f"""
SELECT {_COLUMNS} {_OF_SCOPE}
    AND (:before_key IS NULL OR (g.at, g.key) < (SELECT at, key FROM given WHERE owner = :owner AND key = :before_key))
    AND (:named IS NULL OR instr(g.parts, :named) > 0)
ORDER BY g.at DESC, g.key DESC LIMIT :limit
"""
SELECT_GIVEN_ONCE: Final = f"SELECT {_COLUMNS} {_OF_SCOPE} AND g.key = :key"
SELECT_GIVEN_TOKENS: Final = f"SELECT g.at, g.kind, g.tokens {_OF_SCOPE} ORDER BY g.at, g.key"
# The number of an id is the key of a message, which has no id of its own.
SELECT_REVISIONS: Final = """
SELECT json_extract(:places, named.fullkey), named.value, r.revision - (
    SELECT count(*) FROM memory_edits e
    WHERE e.record_key = r.key AND e.edited_at > json_extract(:moments, named.fullkey)
) FROM json_each(:ids) named CROSS JOIN records r ON r.key = coalesce(
    json_extract(:numbers, named.fullkey), (SELECT key FROM records WHERE id = named.value)
)
"""
INSERT_GIVEN: Final = """
INSERT INTO given (owner, agent, project, session, kind, at, client, budget, tokens, parts, left_out)
VALUES (:owner, :agent, :project, :session, :kind, :at, :client, :budget, :tokens, :parts, :left_out)
"""
# Those of this moment and before, and of more than `most` the oldest.
DELETE_GIVEN: Final = f"""
DELETE FROM given WHERE owner = :owner AND (at, key) <= (
    SELECT at, key FROM (
        SELECT :before_ms AS at, {_NEWEST} AS key
        UNION ALL SELECT * FROM (
            SELECT at, key FROM given WHERE owner = :owner ORDER BY at DESC, key DESC LIMIT 1 OFFSET :most
        ) AS last
    ) AS either ORDER BY at DESC, key DESC LIMIT 1
)
"""
