"""Refuses that one choice of a request's key is used for two requests (see `domain.request_keys`)."""

from collections.abc import Iterable
from typing import Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.request_keys import chosen_part
from kalito_mcp.errors import ClientKeyReused
from kalito_mcp.storage.sqlite.queries import Queries

SELECT_OTHER_REQUEST: Final = """
SELECT client_key FROM records
WHERE session_key = :session_key AND type = :type AND client_key >= :first AND client_key < :after
    AND substr(client_key, 1, length(:request)) <> :request
UNION ALL
SELECT client_key FROM records
WHERE :session_key IS NULL AND session_key IS NULL AND agent_key = :agent_key AND type = :type
    AND client_key >= :first AND client_key < :after AND substr(client_key, 1, length(:request)) <> :request
LIMIT 1
"""
_REQUEST_LETTERS: Final = 16


class RequestKeys(Queries):
    """The keys of requests in a session, or of an agent's records without a session."""

    async def refuse_reused(
        self,
        client_keys: Iterable[str | None],
        kind: RecordType,
        *,
        session_key: int | None,
        agent_key: int | None = None,
    ) -> None:
        """Raises ClientKeyReused if one of the keys was chosen for another request before."""
        requests = {(chosen, key) for key in client_keys if key and (chosen := chosen_part(key)) is not None}
        for chosen, request in {(chosen, key[: len(chosen) + _REQUEST_LETTERS]) for chosen, key in requests}:
            if await self._all(
                SELECT_OTHER_REQUEST,
                session_key=session_key,
                agent_key=agent_key,
                type=str(kind),
                first=chosen,
                after=f"{chosen[:-1]};",  # ";" follows ":"
                request=request,
            ):
                raise ClientKeyReused(request)
