-- Canonical: how far a pin or a note reaches beyond its session.

-- NULL: it is its session's; a note is its project's, or personal. 'person': it is the person's, in every project, and
-- project_key is NULL. 'project': it is its project's. What older releases stored keeps NULL.
ALTER TABLE records ADD COLUMN reach TEXT CHECK (reach = 'project' OR reach = 'person');

CREATE INDEX records_known ON records (agent_key, importance DESC, created_at DESC, key DESC)
    WHERE reach IS NOT NULL AND deleted_at IS NULL;
