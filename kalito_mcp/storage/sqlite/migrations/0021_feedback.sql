-- Canonical: how often users gave a message each label of feedback. Past answers show it.
CREATE TABLE feedback (
    record_key INTEGER NOT NULL REFERENCES records (key) ON DELETE CASCADE,
    label TEXT NOT NULL CHECK (label = 'up' OR label = 'down' OR label = 'retry'),
    count INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (record_key, label)
) STRICT, WITHOUT ROWID;

-- What graphs have of it, for the newest message of each node. Feedback is in a session's graph and in its agent's.
INSERT INTO feedback (record_key, label, count, last_at)
SELECT record_key, label, max(count), max(last_at) FROM (
    SELECT r.key AS record_key, substr(f.text, 1, instr(f.text || ':', ':') - 1) AS label,
        sum(CAST(round(f.repeat) AS INTEGER)) AS count, max(f.last_access) AS last_at
    FROM graph_edges e JOIN graph_nodes f ON f.key = e.to_key JOIN graph_nodes n ON n.key = e.from_key
    JOIN graphs g ON g.key = n.graph_key JOIN json_each(n.source_record_ids) named
    JOIN records r ON r.key = CAST(substr(named.value, 5) AS INTEGER) AND r.agent_key = g.agent_key
    WHERE e.type = 'has_feedback' AND r.type = 'message' AND r.purged_at IS NULL AND named.value GLOB 'msg_[1-9]*'
        AND named.key = json_array_length(n.source_record_ids) - 1
    GROUP BY n.key, r.key, label
) WHERE label IN ('up', 'down', 'retry') GROUP BY record_key, label;

-- A session's graph is made when it is needed: no message owes it.
DROP INDEX sessions_unobserved;
