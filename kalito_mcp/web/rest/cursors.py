"""Cursors: where the next page begins, for the query that returned it. Pure."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs.shapes import Input
from kalito_mcp.web.rest.endpoint import Call

_LARGEST: Final = 1 << 62
_SIZE: Final = 6
_NOT_BOUND: Final = frozenset({"cursor", "limit", "k"})
"""Fields that may differ from page to page: the cursor itself, and the size of a page."""
_REFUSED: Final = "cursor belongs to another query; send next_cursor of the page before, with the same query"


def cursor_of(call: Call[Any, Any], request: Input, *place: int | str) -> str:
    """The cursor for what follows this place in the answer to `request`."""
    text = json.dumps([_fingerprint(call, request), *place], ensure_ascii=False, separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def place_in(call: Call[Any, Any], request: Input, cursor: str, *kinds: type[int] | type[str]) -> Sequence[Any]:
    """The place that a cursor has, of these types.

    Raises:
        InvalidInput: it is not a cursor, or it belongs to another query.
    """
    place: list[Any]
    try:
        fingerprint, *place = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(_REFUSED) from None
    is_whole = [type(one) for one in place] == list(kinds)
    if fingerprint != _fingerprint(call, request) or not is_whole:
        raise InvalidInput(_REFUSED)
    if any(isinstance(one, int) and not 0 <= one < _LARGEST for one in place):
        raise InvalidInput(_REFUSED)
    return place


def _fingerprint(call: Call[Any, Any], request: Input) -> str:
    """What a cursor is bound to: the owner of the memory, and the whole query except the page size."""
    bound = request.model_dump(mode="json", exclude=set(_NOT_BOUND))
    whole = [call.principal.owner, type(request).__name__, dict(call.path), bound]
    return blake2b(json.dumps(whole, sort_keys=True).encode(), digest_size=_SIZE).hexdigest()
