"""How far the files of other programs were imported, and what of their sessions is stored."""

from collections.abc import Sequence
from typing import Protocol

from kalito_mcp.domain.imports import FileRead, SourceRead, StoredTurn
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session


class ImportReader(Protocol):
    """Reads of one consistent view."""

    async def files(self, scope: Scope, source: str) -> Sequence[FileRead]:
        """The files of a source that the owner imported, by place."""

    async def sources(self, scope: Scope) -> Sequence[SourceRead]:
        """The sources that the owner imported, the latest first."""

    async def is_kept(self, scope: Scope, source: str, place: str) -> bool:
        """Whether anything is stored of this place of the source."""

    async def turns(self, session: Session, *, after_seq: int, limit: int) -> Sequence[StoredTurn]:
        """At most `limit` messages of the session after `after_seq`, in order. Forgotten ones have their text, because
        they must be recognised. Erased ones keep their place, without a text."""

    async def holding(self, scope: Scope, client_key: str) -> Sequence[str]:
        """The ids of the owner's sessions that have a message with this client key, forgotten or not."""

    async def at_moment(self, scope: Scope, role: Role, *, since: int, until: int) -> Sequence[str]:
        """The ids of the owner's sessions in which this side said something at a moment between these, in milliseconds
        since 1970."""


class ImportWriter(ImportReader, Protocol):
    """Writes, inside one transaction."""

    async def keep(self, scope: Scope, file: FileRead, *, now_ms: int) -> None:
        """Store how far a file was read, in place of what was stored of it."""
