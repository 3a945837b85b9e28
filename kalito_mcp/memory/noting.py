"""Pins and notes: what an assistant or a person wants remembered in a sentence."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.digest import Digest, KeptDigest
from kalito_mcp.domain.importance import clamp_importance
from kalito_mcp.domain.kinds import LASTING
from kalito_mcp.domain.memory_records import Editor, EditorType, MemoryRecord
from kalito_mcp.domain.records import (
    NOTE,
    NOTE_SOURCE,
    PIN_IMPORTANCE,
    CreatePinRequest,
    Origin,
    Reach,
    RecordType,
    SemanticPin,
)
from kalito_mcp.domain.request_keys import key_within
from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.editing.new_record import as_record
from kalito_mcp.errors import InvalidInput
from kalito_mcp.kinds.judged import NOTED_FROM, Sentence
from kalito_mcp.memory.part import Part
from kalito_mcp.pins.pinner import checked_reach
from kalito_mcp.pins.reach import reach_of
from kalito_mcp.records.borrowed_words import sources_of_words, unconfirmed
from kalito_mcp.records.historian import with_whole_ids
from kalito_mcp.records.named import SUPERSEDES

_LONGEST_NOTE: Final = 400
"""Characters, above which a note is not taken for a fact about the person."""

_RECORD_ID: Final = re.compile(r"(?:msg_\d+|(?:pin|summary|thought|task|document)_[\w.:-]+)")
_MOST_WITH_WORDS: Final = 5
_NO_SESSION: Final = (
    "session_id is missing: without a conversation, a fact is known in its project or to the person; send "
    "scope='person' or 'project', or the session_id that record_messages returned"
)


class Noting(Part):
    """Does what `Memory.create_pin` and `Memory.remember` say."""

    async def pin(self, request: CreatePinRequest) -> SemanticPin:
        """See `Memory.create_pin`."""
        request = replace(request, replaces=await self._replaced_ids(request))
        if request.session_id is not None:
            return await self._manager.create_semantic_pin(request)
        has_project = self.place.project not in (None, PERSONAL)
        [judged] = await self._services.judge.judge([Sentence(request.content)])
        reach = checked_reach(request.scope) or reach_of(
            judged, has_project=has_project, pin_type=request.pin_type, origin=request.origin
        )
        if reach is Reach.SESSION or request.source_message_id is not None:
            raise InvalidInput(_NO_SESSION)
        score = PIN_IMPORTANCE if request.importance_score is None else clamp_importance(request.importance_score)
        fields = {"text": request.content, "scope": str(reach), "importance_score": score}
        if request.replaces:
            fields[SUPERSEDES] = list(request.replaces)
        own_words = EditorType.HUMAN if request.origin is Origin.USER else EditorType.AGENT
        editor = Editor(own_words, request.client)
        [note] = await self.remember(self.place.scope(), NOTE, fields, editor, request.client_key, request.is_confirmed)
        return self._manager.as_pin(note)

    async def keep(self, session_id: str, digest: Digest, editor: Editor) -> KeptDigest:
        """See `Memory.keep_digest`."""
        scope = await self.place.of_session(session_id)
        if digest.open is not None:
            await self._services.owed.pin(scope)
        return await self._services.digests.keep(scope, digest, editor)

    async def remember(
        self,
        scope: Scope,
        record_type: str,
        fields: Mapping[str, Any],
        editor: Editor,
        client_key: str | None,
        is_confirmed: bool,
    ) -> Sequence[MemoryRecord]:
        """See `Memory.remember`. The scope's session is looked up already."""
        fields = await with_whole_ids(self.place.store, scope.anywhere(), fields)
        has_project = scope.project not in (None, PERSONAL)
        reach = await self._reach_of_note(fields, has_project=has_project) if record_type == NOTE else None
        kind, given, origin = as_record(record_type, fields, editor, reach=reach, new_source=self._new_source)
        if kind is RecordType.DOCUMENT and origin is Origin.ASSISTANT:  # a note
            [source] = await sources_of_words(self.place.store, scope, [str(fields.get("text"))])
            if source is not None:
                if "scope" in fields and not is_confirmed:
                    raise unconfirmed(source.record_id, source.origin)
                given = given if is_confirmed else {**given, "scope": None}
                origin = source.origin
        if client_key is not None and scope.session is None:
            client_key = key_within(client_key, self.place.limits)
        remembered = await self._services.editor.remember(
            scope, kind, given, editor=editor, origin=origin, client_key=client_key
        )
        return await self.place.reached(remembered)

    async def _replaced_ids(self, request: CreatePinRequest) -> tuple[str, ...]:
        """The ids of what the pin replaces: of words, that of the record that has them.

        Raises:
            InvalidInput: nothing here has the words.
        """
        scope = await self.place.of_session(request.session_id, may_be_new=True)
        found: list[str] = []
        for named in request.replaces:
            if _RECORD_ID.fullmatch(named):
                found.append(named)
                continue
            page = await self._services.searcher.search(scope.anywhere(), SearchRequest(named, k=_MOST_WITH_WORDS))
            same = (hit.record_id for hit in page.hits if _plain(named) in _plain(hit.text))
            if (record_id := next(same, None)) is None:
                raise InvalidInput(f"replaces: nothing here says {named[:80]!r}; send its id as a search returns it")
            found.append(record_id)
        whole = await with_whole_ids(self.place.store, scope.anywhere(), {SUPERSEDES: found})
        return tuple(dict.fromkeys(whole[SUPERSEDES]))

    async def _reach_of_note(self, fields: Mapping[str, Any], *, has_project: bool) -> Reach | None:
        """PERSON if this note says something lasting of the person, in a few words; else None."""
        text = fields.get("text")
        if not isinstance(text, str) or len(text) > _LONGEST_NOTE:
            return None
        [judged] = await self._services.judge.judge([Sentence(text)])
        is_lasting = judged.kind in LASTING and judged.worth >= NOTED_FROM
        return Reach.PERSON if is_lasting and reach_of(judged, has_project=has_project) is Reach.PERSON else None

    def _new_source(self) -> str:
        return f"{NOTE_SOURCE}{self._services.ids.record_id(NOTE, self.place.clock.now_ms())}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
