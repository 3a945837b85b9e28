"""SQL that makes a database of an older release from a new one, for tests of what migrations keep."""

from typing import Final

BACK_TO_20: Final = """
DROP TABLE shared_copies; DROP TABLE space_members; DROP TABLE spaces;
DROP TABLE given;
DROP TABLE feedback; CREATE INDEX sessions_unobserved ON sessions (key) WHERE message_count > observed_seq;
DELETE FROM migrations WHERE number > 20; PRAGMA user_version = 20;
"""
"""Feedback in graphs alone."""

BACK_TO_9: Final = """
DROP TABLE shared_copies; DROP TABLE space_members; DROP TABLE spaces;
DROP TABLE given;
DROP TABLE feedback; CREATE INDEX sessions_unobserved ON sessions (key) WHERE message_count > observed_seq;
DROP TRIGGER record_vectors_removed; DROP TABLE vector_removals; ALTER TABLE vector_indexes DROP COLUMN centre;
CREATE UNIQUE INDEX record_vectors_of_sessions ON record_vectors (session_key, key) WHERE session_key IS NOT NULL;
DROP INDEX sessions_said; CREATE INDEX sessions_recent ON sessions (owner, updated_at DESC, key DESC);
DROP TRIGGER record_vectors_moved_removed; DROP TABLE vector_moves; DROP TABLE vector_leftovers;
DROP TABLE audit_log; DROP TABLE audit_head;
DROP TABLE passphrases; DROP TABLE oauth_clients; DROP TABLE oauth_requests; DROP TABLE oauth_codes;
DROP TABLE oauth_grants; DROP TABLE access_attempts;
DROP TABLE access_tokens; DROP TABLE state_secret;
DROP TABLE imports;
DROP TABLE forgotten_values;
DROP TABLE superseded_records;
DROP INDEX records_known; ALTER TABLE records DROP COLUMN reach;
DELETE FROM migrations WHERE number > 9; PRAGMA user_version = 9;
"""
"""Projects, but no pins beyond a session."""
