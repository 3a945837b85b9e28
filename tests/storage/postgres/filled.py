"""Databases with many rows, written by the superuser, whom no policy binds."""

from typing import Final

import asyncpg

from tests.postgres import SUPERUSER, new_database, shared_server

PROTECTED: Final = """
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relrowsecurity ORDER BY relname
"""
FILL: Final = """
SET kalito.revision = '1';
INSERT INTO owners (name, owes) SELECT 'owner ' || o, true FROM generate_series(1, $owners) o;
INSERT INTO agents (owner_key, key, id, record_count) SELECT key, key, 'default', $records FROM owners;
INSERT INTO projects (owner_key, key, id) SELECT key, key, 'project' FROM owners;
INSERT INTO sessions (owner_key, key, id, agent_key, project_key, message_count, newest_message_at, created_at,
    updated_at, state)
SELECT o.key, s, 'session ' || s, o.key, o.key, $records / 10, s, s, s, 'FINALIZED'
FROM owners o, generate_series(1, 10) s;
UPDATE sessions SET state = 'OPEN' WHERE key <= 5;
INSERT INTO records (owner_key, key, agent_key, session_key, type, id, seq, end_seq, level, is_covered, role, name,
    text, importance, tokens, created_at, client_key, attributes, hash, tags, source, document_id, project_key, reach,
    deleted_at, caused_by)
SELECT o.key, r, o.key, CASE WHEN kind IN ('message', 'pin', 'summary') THEN r % 10 + 1 END, kind,
    CASE WHEN kind <> 'message' THEN kind || ' ' || r END,
    CASE WHEN kind IN ('message', 'summary', 'document') THEN r END, CASE WHEN kind = 'summary' THEN r END,
    CASE WHEN kind = 'summary' THEN 0 END, CASE WHEN kind = 'summary' THEN 0 END,
    CASE WHEN kind = 'message' THEN 'user' END, 'name of ' || o.name, 'words of ' || o.name || ' number ' || r,
    0.5, 10, r, 'key ' || r, '{"source_message_id": "msg_1", "kind": "open"}', 'x', NULL,
    CASE WHEN kind = 'document' THEN 'source ' || r END, CASE WHEN kind = 'document' THEN 'document ' || r END,
    o.key, CASE WHEN kind = 'pin' AND r % 20 = 1 THEN 'project' END, CASE WHEN r % 50 = 7 THEN r END,
    CASE WHEN r % 40 = 3 THEN r - 1 END
FROM owners o, generate_series(1, $records) r,
    LATERAL (SELECT CASE r % 10 WHEN 1 THEN 'pin' WHEN 2 THEN 'summary' WHEN 3 THEN 'document' WHEN 4 THEN 'task'
        WHEN 5 THEN 'thought' ELSE 'message' END) k (kind);
INSERT INTO removed_records (owner_key, agent_key, removed_at_revision, record_key)
SELECT key, key, 1, g FROM owners, generate_series(1, $records / 10) g;
INSERT INTO memory_edits (owner_key, record_key, version, edit_type, editor_type, changes, edited_at, hash)
SELECT owner_key, key, 2, 'update', 'human', '{"text": "earlier words of ' || owner_key || '"}', 1, 'x' FROM records
WHERE key % 3 = 0;
INSERT INTO record_usage (owner_key, record_key, usage_count, last_used) SELECT owner_key, key, 1, 1 FROM records
WHERE key % 2 = 0;
INSERT INTO feedback (owner_key, record_key, label, count, last_at) SELECT owner_key, key, 'up', 1, 1 FROM records
WHERE type = 'message' AND key % 2 = 0;
INSERT INTO superseded_records (owner_key, by_key, record_key) SELECT owner_key, key, key - 1 FROM records
WHERE key % 10 = 0;
INSERT INTO tombstones (owner_key, record_id, text_hash, type, created_at, purged_at)
SELECT key, 'erased ' || g, md5(g::text), 'pin', 1, 1 FROM owners, generate_series(1, $records / 10) g;
INSERT INTO forgotten_values (owner_key, value_hash, agent_key, project_key, forgotten_at, is_erased)
SELECT key, md5(g::text), key, key, 1, 0 FROM owners, generate_series(1, $records / 10) g;
INSERT INTO graphs (owner_key, key, agent_key, session_key) SELECT key, 1, key, NULL FROM owners;
INSERT INTO graphs (owner_key, key, agent_key, session_key) SELECT owner_key, 1 + key, agent_key, key FROM sessions;
INSERT INTO graph_nodes (owner_key, key, graph_key, id, type, text, repeat, feedback, is_pinned, created_at,
    last_access, revision, hash)
SELECT owner_key, g * 100 + key, key, 'node ' || g, 'query', 'asked by ' || owner_key, 0, 0, 0, 1, 1, 1, 'x'
FROM graphs, generate_series(1, $records / 20) g;
INSERT INTO graph_edges (owner_key, from_key, type, to_key, graph_key, weight, created_at, last_access, revision, hash)
SELECT owner_key, key, 'similar_to', key, graph_key, 1, 1, 1, 1, 'x' FROM graph_nodes;
INSERT INTO imports (owner_key, source, place, size, modified_ns, read_to, fingerprint, imported_at)
SELECT key, 'source', 'place ' || g, 1, 1, 1, 'x', 1 FROM owners, generate_series(1, $records / 10) g;
INSERT INTO given (owner_key, key, agent, kind, at, tokens, parts, left_out)
SELECT key, g, 'default', 'context', g, 1, '[]', '[]' FROM owners, generate_series(1, $records / 10) g;
INSERT INTO term_pages (owner_key, agent_key, term, first, terms, keys)
SELECT key, key, 'term' || g, 0, 'term' || g, '\\x0905' FROM owners, generate_series(1, $records) g;
INSERT INTO fresh_terms (owner_key, agent_key, record_key, terms)
SELECT key, key, g, 'x' FROM owners, generate_series(1, 100) g;
INSERT INTO record_shapes (owner_key, record_key, word_count, is_first_person)
SELECT owner_key, key, 3, 0 FROM records;
INSERT INTO vector_indexes (fingerprint, dimension, state) VALUES ('scripted', 4, 'active');
INSERT INTO record_vectors (owner_key, index_key, record_key, agent_key, session_key, code, near)
SELECT owner_key, 1, key, agent_key, session_key, '\\x01020304', '[1,2,3,4]' FROM records;
INSERT INTO vector_debts (owner_key, index_key, record_key, kind) SELECT owner_key, 1, key, 2 FROM records
WHERE key % 4 = 0;
INSERT INTO spaces (name, created_at) SELECT 'space ' || g, 1 FROM generate_series(1, $owners) g;
INSERT INTO owners (name) SELECT 'space:' || name FROM spaces;
INSERT INTO space_members (space, member, role, since)
SELECT s.name, o.name, 'writer', 1 FROM spaces s, owners o WHERE o.key <= $owners;
INSERT INTO shared_copies (space, record_id, member, source_id, shared_at)
SELECT name, 'copy ' || g || ' of ' || name, 'owner ' || (1 + g % $owners), 'pin ' || g, 1
FROM spaces, generate_series(1, $records / 3) g;
ANALYZE;
"""


async def filled_database(*, owners: int, records: int) -> str:
    """A database with this many owners and records of each; its name."""
    name = await new_database()
    admin = await asyncpg.connect(shared_server().url(name, SUPERUSER))
    await admin.execute(FILL.replace("$owners", str(owners)).replace("$records", str(records)))
    await admin.close()
    return name
