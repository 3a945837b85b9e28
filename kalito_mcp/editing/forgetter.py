"""Finds everything that speaks of a subject or has an identifier, and forgets or erases it after a preview.

It reads all records of the scope rather than searching them: none may be missed. Nothing of a preview is kept: its
token is a keyed hash of its list.
"""

from base64 import b32encode
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

import anyio.to_thread

from kalito_mcp.domain.erasing import ForgetPreview, ForgetRequest, FoundRecord, PurgeReport
from kalito_mcp.domain.memory_records import Editor, MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.editing.editor import RecordEditor
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.records import ScanCursor, ScannedRecord
from kalito_mcp.ports.store import Store
from kalito_mcp.text.identifiers import identifier_key, identifier_keys, is_written_in, may_contain
from kalito_mcp.text.plurals import plural
from kalito_mcp.text.repetition import key_of_identifier
from kalito_mcp.text.subject import parse_subject

_PAGE: Final = 2_000
_MOST: Final = 500
_FEW: Final = 20
_EXCERPT_CHARS: Final = 80
_TOKEN_BYTES: Final = 5
_MIN_IDENTIFIER: Final = 3

Matcher = Callable[[str], bool]


class Forgetter:
    """Forgets by what a record is about."""

    def __init__(self, store: Store, editor: RecordEditor, eraser: Eraser, clock: Clock) -> None:
        self._store = store
        self._editor = editor
        self._eraser = eraser
        self._clock = clock

    async def preview(self, scope: Scope, request: ForgetRequest) -> ForgetPreview:
        """See `Memory.preview_forgetting`."""
        return await self._preview(await self._find(scope, request), request)

    async def forget(
        self, scope: Scope, request: ForgetRequest, token: str, *, editor: Editor
    ) -> Sequence[MemoryRecord]:
        """See `Memory.forget_previewed`."""
        ids = await self._confirmed(scope, request, token)
        await self._bar_identifier(scope, request)
        anywhere = scope.anywhere()
        return [one for record_id in ids for one in await self._editor.forget(anywhere, record_id, editor=editor)]

    async def purge(self, scope: Scope, request: ForgetRequest, token: str) -> PurgeReport:
        """See `Memory.purge_previewed`."""
        ids = await self._confirmed(scope, request, token)
        await self._bar_identifier(scope, request)
        return await self._eraser.purge(scope.anywhere(), ids)

    async def _confirmed(self, scope: Scope, request: ForgetRequest, token: str) -> list[str]:
        preview = await self.preview(scope, request)
        if preview.token is None or preview.token != token.strip().lower():
            raise Conflict(
                "this token is for an older list; nothing was changed. If you already sent it, it is done; otherwise "
                "ask for a new preview"
            )
        return [one.id for one in preview.records]

    async def _bar_identifier(self, scope: Scope, request: ForgetRequest) -> None:
        if request.identifier is not None:
            keys, now_ms = {key_of_identifier(request.identifier)}, self._clock.now_ms()
            await self._store.write(
                lambda transaction: transaction.records.forget_values(
                    scope, keys, now_ms=now_ms, is_erased=request.is_purge
                )
            )

    async def _find(self, scope: Scope, request: ForgetRequest) -> Sequence[ScannedRecord]:
        """Every record that matches, oldest first, without summaries that are rewritten with their messages.

        Each page is read in a view of its own, because a view has to be short.
        What is recorded meanwhile is found too. What changes on a page after it was read gives the list another token.
        """
        is_match = _matcher(request)
        found: list[ScannedRecord] = []
        count, after = 0, None
        while page := await self._page(scope, after, has_forgotten=request.is_purge):
            found += await anyio.to_thread.run_sync(_matching, page, is_match)
            count, after = count + len(page), page[-1].cursor
        is_all_of_it = len(found) == count >= _FEW
        if len(found) > _MOST or is_all_of_it:
            raise InvalidInput(
                f"that matches {plural(len(found), 'record')} of {count:,}; nothing was changed. Narrow it: name more "
                "of it in about, or send record_ids"
            )
        said = {(one.session_id, one.seq) for one in found if one.type is RecordType.MESSAGE}
        return [one for one in found if not _is_rewritten(one, said)]

    async def _page(self, scope: Scope, after: ScanCursor | None, *, has_forgotten: bool) -> Sequence[ScannedRecord]:
        return await self._store.read(
            lambda view: view.records.scan(scope, after=after, limit=_PAGE, has_forgotten=has_forgotten)
        )

    async def _preview(self, found: Sequence[ScannedRecord], request: ForgetRequest) -> ForgetPreview:
        if not found:
            return ForgetPreview((), None)
        listed = "\n".join(["purge" if request.is_purge else "forget", *(f"{one.id}@{one.revision}" for one in found)])
        digest = blake2b(listed.encode(), key=await self._store.secret(), digest_size=_TOKEN_BYTES).digest()
        shown = tuple(FoundRecord(one.id, " ".join(one.text.split())[:_EXCERPT_CHARS]) for one in found)
        return ForgetPreview(shown, b32encode(digest).decode().lower())


def _matcher(request: ForgetRequest) -> Matcher:
    """Whether a text is meant.

    Raises:
        InvalidInput: neither a subject nor an identifier is given, or the one given is not valid.
    """
    matchers: list[Matcher] = []
    if request.about is not None:
        subject = parse_subject(request.about)
        if subject.is_empty:
            raise InvalidInput(
                f"about={request.about[:80]!r} names no subject; nothing was changed. Name a person, a thing or a topic"
            )
        matchers.append(subject.is_in)
    if request.identifier is not None:
        key, written = identifier_key(request.identifier), request.identifier.strip()
        is_known = key in identifier_keys(written)
        if len(key) < _MIN_IDENTIFIER or not (is_known or len(written.split()) == 1):
            raise InvalidInput(
                f"identifier={request.identifier[:80]!r} is not one; nothing was changed. Send one number, key, email, "
                f"path or word of at least {_MIN_IDENTIFIER} characters, or about for a subject"
            )
        if is_known:
            matchers.append(lambda text: may_contain(text, key) and key in identifier_keys(text))
        else:
            matchers.append(lambda text: is_written_in(written, text))
    if not matchers:
        raise InvalidInput("send about or identifier")
    return lambda text: any(is_match(text) for is_match in matchers)


def _matching(page: Sequence[ScannedRecord], is_match: Matcher) -> list[ScannedRecord]:
    found = []
    for one in page:
        said = one.text if one.name is None else f"{one.name}: {one.text}"
        if any(is_match(words) for words in (said, one.tags, one.earlier_texts) if words):
            found.append(one)
    return found


def _is_rewritten(one: ScannedRecord, said: set[tuple[str | None, int | None]]) -> bool:
    if one.type is not RecordType.SUMMARY or one.seq is None or one.end_seq is None:
        return False
    return any(session == one.session_id and one.seq <= (seq or 0) <= one.end_seq for session, seq in said)
