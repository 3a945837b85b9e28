"""Records that are laid into the tables of PostgreSQL, with their index, without the ports that write them."""

from collections.abc import Sequence
from typing import Any

from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.postgres.views import WriteTransactionOfPostgres
from kalito_mcp.text.analysis import index_text
from tests.scripted import START_MS

TRIP = Scope(agent=DEFAULT_AGENT, session="trip")
INSERT_MESSAGES = """
INSERT INTO records (
    owner_key, agent_key, session_key, type, seq, role, name, text, importance, tokens, created_at, hash
)
SELECT :owner, s.agent_key, s.key, 'message', s.message_count + place, 'user', :name, text, 0.5, 1, :now_ms, ''
FROM sessions s CROSS JOIN unnest(:texts::text[]) WITH ORDINALITY AS listed (text, place)
WHERE s.owner_key = :owner AND s.key = :key ORDER BY place
RETURNING key, agent_key
"""
UPDATE_COUNT = """
UPDATE sessions SET message_count = message_count + :added WHERE owner_key = :owner AND key = :key
"""
UPDATE_TEXT = "UPDATE records SET text = :text WHERE owner_key = :owner AND key = :key RETURNING agent_key"
UPDATE_DELETED_AT = """
UPDATE records SET deleted_at = :deleted_at::bigint WHERE owner_key = :owner AND key = :key
RETURNING agent_key
"""
UPDATE_COLUMNS = """
UPDATE records SET importance = :importance, tags = :tags, is_internal = :is_internal
WHERE owner_key = :owner AND key = :key
"""
DELETE_RECORD = "DELETE FROM records WHERE owner_key = :owner AND key = :key RETURNING agent_key"


class Writer:
    """Changes records of one owner in a write transaction. `texts` are those that it knows of, by key, with a name."""

    def __init__(
        self, writing: WriteTransactionOfPostgres, owner: str, texts: dict[int, tuple[str, str | None]]
    ) -> None:
        self._writing, self._owner, self._texts = writing, owner, texts

    async def say(self, *texts: str, scope: Scope = TRIP, name: str | None = None) -> list[int]:
        session = await ensure_session(self._writing.sessions, scope, now_ms=START_MS)
        parameters = {"owner": self._owner, "key": key_of(session)}
        rows = await self._all(INSERT_MESSAGES, **parameters, texts=list(texts), name=name, now_ms=START_MS)
        await self._all(UPDATE_COUNT, **parameters, added=len(texts))
        for (key, agent_key), text in zip(rows, texts, strict=True):
            self._texts[key] = (text, name)
            await self._add(agent_key, key)
        return [key for key, _ in rows]

    async def say_again(self, key: int, text: str) -> None:
        [[agent_key]] = await self._all(UPDATE_TEXT, owner=self._owner, key=key, text=text)
        await self._remove(agent_key, key)
        self._texts[key] = (text, self._texts[key][1])
        await self._add(agent_key, key)

    async def forget(self, key: int) -> None:
        [[agent_key]] = await self._all(UPDATE_DELETED_AT, owner=self._owner, key=key, deleted_at=START_MS)
        await self._remove(agent_key, key)

    async def restore(self, key: int) -> None:
        [[agent_key]] = await self._all(UPDATE_DELETED_AT, owner=self._owner, key=key, deleted_at=None)
        await self._add(agent_key, key)

    async def erase(self, *keys: int) -> None:
        for key in keys:
            [[agent_key]] = await self._all(DELETE_RECORD, owner=self._owner, key=key)
            await self._remove(agent_key, key)
            del self._texts[key]

    async def change(self, key: int, *, importance: float, tags: str | None, is_internal: int) -> None:
        parameters = {"importance": importance, "tags": tags, "is_internal": is_internal}
        await self._writing.transaction.count_changed(UPDATE_COLUMNS, owner=self._owner, key=key, **parameters)

    async def _add(self, agent_key: int, key: int) -> None:
        await self._writing.text.add(self._owner, agent_key, [(key, index_text(*self._texts[key]))])

    async def _remove(self, agent_key: int, key: int) -> None:
        await self._writing.text.remove(self._owner, agent_key, [(key, index_text(*self._texts[key]))])

    async def _all(self, statement: str, **parameters: Any) -> Sequence[Any]:
        return await self._writing.transaction.all(statement, **parameters)
