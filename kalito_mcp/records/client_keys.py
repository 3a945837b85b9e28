"""Recognises what was written before by its client_key, so that a call can be sent again. Reads only.

A key counts once for each type of record in a session, or in what an agent has outside of sessions. It stays with its
words. The key of a request is chosen for one request (see `domain.request_keys`).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.request_keys import chosen_part
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import ClientKeyReused
from kalito_mcp.ports.records import RecordReader

_REQUEST_LETTERS: Final = 16


async def known_by_key(
    records: RecordReader, place: Scope, record_type: RecordType, client_keys: Iterable[str | None]
) -> Mapping[str | None, MemoryRecord]:
    """What was written in this place with these keys, by key. Reads nothing without keys.

    Raises:
        ClientKeyReused: one was chosen for another request before.
    """
    keys = {key for key in client_keys if key is not None}
    if not keys:
        return {}
    for chosen, request in {
        (chosen, key[: len(chosen) + _REQUEST_LETTERS]) for key in keys if (chosen := chosen_part(key))
    }:
        if not all(key.startswith(request) for key in await records.client_keys(place, record_type, chosen)):
            raise ClientKeyReused(request)
    return {one.client_key: one for one in await records.of_client_keys(place, record_type, keys)}


def check_same_words(client_key: str | None, *, is_same: bool) -> None:
    """Refuse a known key that does not come with the same words. The key of a request has what was sent in it.

    Raises:
        ClientKeyReused: it is not the key of a request.
    """
    if not is_same and chosen_part(client_key) is None:
        raise ClientKeyReused(client_key or "")
