"""The origin of a lasting fact's words. Words of a tool, a document or an import become one only with the user's yes,
even if they are passed on or slightly changed. Reads only.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import anyio.to_thread

from kalito_mcp.domain.records import Origin
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import Conflict
from kalito_mcp.ports.records import RecentWords
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.text.repetition import repeats

_MOST_CHARS: Final = 20_000
_MOST_CHARS_IN_ALL: Final = 200_000
"""How much of the latest messages is compared: some tens of milliseconds, in a thread."""


async def sources_of_words(store: Store, scope: Scope, texts: Sequence[str]) -> Sequence[RecentWords | None]:
    """For each text, the newest recent one of a tool, a document or an import that it repeats; None if it repeats none,
    or a user said it too."""

    async def read(view: ReadView) -> Sequence[RecentWords]:
        return await view.records.recent_words(scope, most_chars=_MOST_CHARS)

    lately = await store.read(read)
    borrowed = _newest([one for one in lately if one.origin is not Origin.USER])
    said = _newest([one for one in lately if one.origin is Origin.USER])
    if not borrowed:
        return [None] * len(texts)
    return await anyio.to_thread.run_sync(lambda: [_source(text, borrowed, said) for text in texts])


def unconfirmed(record_id: str, origin: Origin) -> Conflict:
    """The refusal of words that are not the user's or the assistant's own."""
    return Conflict(
        f"these are the words of {record_id}, which is not the user's own text (origin: {origin}); "
        "ask the user, then call again with confirmed=true"
    )


def _source(text: str, borrowed: Sequence[RecentWords], said: Sequence[RecentWords]) -> RecentWords | None:
    source = next((one for one in borrowed if repeats(text, one.text)), None)
    return None if source is None or any(repeats(text, one.text) for one in said) else source


def _newest(lately: Sequence[RecentWords]) -> Sequence[RecentWords]:
    """The first of them that have together about as many characters as are compared."""
    ends = accumulate(len(one.text) for one in lately)
    return [one for one, end in zip(lately, ends, strict=True) if end - len(one.text) < _MOST_CHARS_IN_ALL]
