-- Canonical: what was forgotten or erased and does not come back by itself. A keyed hash tells nothing about its value
-- without the secret of `identity`. project_key NULL: personal. is_erased: no copy may be kept, not even a hidden one.
CREATE TABLE forgotten_values (
    key INTEGER PRIMARY KEY,
    value_hash TEXT NOT NULL CHECK (length(value_hash) = 32),
    agent_key INTEGER NOT NULL REFERENCES agents (key),
    project_key INTEGER REFERENCES projects (key),
    forgotten_at INTEGER NOT NULL,
    is_erased INTEGER NOT NULL CHECK (is_erased IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX forgotten_values_places ON forgotten_values (value_hash, agent_key, coalesce(project_key, 0));
