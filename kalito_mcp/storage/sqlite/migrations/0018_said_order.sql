-- Lists of sessions are in order of what was said: an import writes later than what it imports was said.
DROP INDEX sessions_recent;
CREATE INDEX sessions_said ON sessions (owner, coalesce(newest_message_at, updated_at) DESC, key DESC);
