"""Puts what sources have into a memory: each message once, in its session and its project.

What is stored already is recognised, as `stored` says. Files that did not change since the last import are not read; of
files that only grow, what is new. Stop it anywhere: the next run goes on, because a file counts as read only after its
messages are on disk.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

from anyio.lowlevel import checkpoint

from kalito_mcp.capture.capturer import in_project_of_folder
from kalito_mcp.capture.conversations import continued
from kalito_mcp.domain.imports import IMPORTED_BY, FileRead
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.validation import checked_text
from kalito_mcp.errors import ClientKeyReused, Conflict, InvalidInput, NotFound, SessionFinalized, StorageError
from kalito_mcp.exchange.completing import complete, stored_key
from kalito_mcp.exchange.conversation import MOST_BYTES, Conversation, Note, Reading, Source, Turn
from kalito_mcp.exchange.copies import Copies
from kalito_mcp.exchange.stored import Stored, parts_of
from kalito_mcp.memory import Memory
from kalito_mcp.projects import is_folder, spelled
from kalito_mcp.safety.redaction import usable_handle
from kalito_mcp.text.host_blocks import heard

_log: Final = logging.getLogger("kalito.import")
MOST_TURNS: Final = 1_000
_MOST_CHARACTERS: Final = 4_000_000
"""Of one batch, so that long messages take no more memory."""
_END_BYTES: Final = 512
_MOST_MODEL: Final = 150


@dataclass(slots=True)
class Report:
    """The report of an import, or of a dry run."""

    files: int = 0
    unchanged_files: int = 0
    found: int = 0
    """Everything read in the files, stored or not: messages, notes, and beginnings that were read before."""
    sessions: int = 0
    """With new messages."""
    messages: int = 0
    notes: int = 0
    documents: int = 0
    present: int = 0
    """Messages that were stored before."""
    completed: int = 0
    """Of these, those of which the source has more now."""
    continued_sessions: int = 0
    """Of these sessions, those whose messages belong to one that was closed here, and that they continue."""
    gone_sessions: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    """Files that could not be read, or not to their end."""
    skipped: Counter[str] = field(default_factory=Counter[str])


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a source."""

    source: Source
    path: Path
    size: int
    modified_ns: int
    is_outside: bool = False
    """Whether it is a link to a file outside of the folder in which it was found."""

    @property
    def modified_ms(self) -> int:
        """When it was changed, in milliseconds since 1970."""
        return self.modified_ns // 1_000_000


Progress = Callable[[int, int], None]
"""Called with the bytes that are done and the messages that were stored."""


def found_in(
    source: Source, paths: Iterable[Path], *, folder: Path | None = None, home: Path | None = None
) -> list[Found]:
    """The files with their sizes, the least recently changed first. What cannot be looked at is left out.

    `folder` is the one that a person named, `home` where a person's programs keep their files. In a folder, nothing may
    lead out of it: it can be somebody else's repository. At home a person may have linked a whole folder elsewhere.
    """
    found: list[Found] = []
    for path in paths:
        try:
            looked = path.stat()
            if not path.is_file():
                continue
            # The latest writes to an SQLite database are in its log.
            log = path.with_name(f"{path.name}-wal")
            logged = log.stat() if log.is_file() else None
        except OSError:
            continue
        size = looked.st_size + (logged.st_size if logged else 0)
        modified_ns = max(looked.st_mtime_ns, logged.st_mtime_ns if logged else 0)
        is_outside = (folder is not None and not _is_in(path, folder)) or (
            home is not None and not _is_in(path, home) and not _is_in(path, path.parent)
        )
        found.append(Found(source, path, size, modified_ns, is_outside))
    return sorted(found, key=lambda one: (one.modified_ns, str(one.path)))


def _is_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


class Importer:
    """Imports files into a memory; without a memory it only counts what they have."""

    def __init__(
        self, memory: Memory | None, *, since: int | None = None, progress: Progress = lambda done, messages: None
    ) -> None:
        self.report = Report()
        self.memory = memory
        self._since = since
        self._progress = progress
        self._done = 0
        self._in_project: dict[str | None, Memory] = {}
        self._named: dict[str, list[str]] | None = None

    async def run(self, files: Sequence[Found]) -> Report:
        """Import the files, all of one source. What cannot be read is counted, and never stops the rest. Raises
        Conflict, before it reads the next file, if the memory is paused."""
        known = {} if self.memory is None or not files else await self.memory.imports.files_read(files[0].source.name)
        for file in files:
            await checkpoint()  # where Ctrl-C ends what only counts
            if self.memory is not None:
                self.memory.place.check_remembered()
            await self._take_file(file, known.get(str(file.path.absolute())))
            self._done += file.size
            self._progress(self._done, self.report.messages)
        return self.report

    async def _take_file(self, file: Found, before: FileRead | None) -> None:
        self.report.files += 1
        if file.is_outside:
            self.report.skipped["link that leads out of the folder"] += 1
            return
        if before is not None and (before.size, before.modified_ns) == (file.size, file.modified_ns):
            self.report.unchanged_files += 1
            return
        reading = Reading(file.path)
        begun: object = None
        try:
            begun = _identity(file.path, file.size)
            if file.source.is_appended and before is not None and before.read_to <= file.size:
                is_same = _fingerprint(file.path, before.read_to) == before.fingerprint
                reading.start = before.read_to if is_same else 0
                self.report.found += reading.start > 0
            is_complete = True
            for one in file.source.read(reading):
                is_whole = await (
                    self._take_note(one, file) if isinstance(one, Note) else self._take(one, file, reading)
                )
                is_complete = is_complete and is_whole
                self._progress(self._done, self.report.messages)
        except StorageError:
            raise  # it is the memory that fails, and so it would for each file
        except Exception:  # whatever a file brings, the others are read
            _log.info("%s could not be read", file.path, exc_info=True)
            self.report.unreadable.append(str(file.path))
            is_complete = False
        self.report.skipped.update(reading.skipped)
        if self.memory is not None and is_complete and reading.is_whole:
            await self._keep(file, reading, begun)

    async def _keep(self, file: Found, reading: Reading, begun: object) -> None:
        """Store how far a file was read; not if it was replaced or cut short meanwhile, so that it is read again."""
        assert self.memory is not None  # noqa: S101 - a count has no memory
        try:
            fingerprint = _fingerprint(file.path, reading.read_to)
            is_same = _identity(file.path, file.size) == begun and file.path.stat().st_size >= reading.read_to
        except OSError:
            return
        if is_same:
            place = str(file.path.absolute())
            await self.memory.imports.keep_file_read(
                FileRead(file.source.name, place, file.size, file.modified_ns, reading.read_to, fingerprint)
            )

    async def _take(self, conversation: Conversation, file: Found, reading: Reading) -> bool:
        """Import a conversation. False if something of it may be imported later, by another call."""
        conversation.session_id = usable_handle(conversation.session_id, file.source.name)
        stored = await self._stored(conversation, file.source)
        if stored is None:
            return True
        is_whole = True
        new_count = 0
        batch: list[NewMessage] = []
        size = 0
        copies = None if self.memory is None else Copies(self.memory, stored, file.source.name)
        turns = self._counted(conversation)
        async for turn in copies.without(turns) if copies else _one_by_one(turns):
            at = turn.at if turn.at is not None else file.modified_ms
            if self._since is not None and at < self._since:
                reading.skipped["older than --since"] += 1
                is_whole = False
                continue
            for part in self._parts(turn):
                key = await stored_key(stored, part, file.source.name)
                message = self._message(part, at, key, stored)
                if message is not None:
                    batch.append(message)
                    size += len(message.text)
                elif not file.source.is_appended:
                    self.report.completed += await complete(stored, part, key)
            if len(batch) >= MOST_TURNS or size >= _MOST_CHARACTERS:
                new_count += await self._record(conversation, batch, stored)
                self._progress(self._done + min(reading.read_to, file.size) - reading.start, self.report.messages)
                batch, size = [], 0
        if batch:
            new_count += await self._record(conversation, batch, stored)
        if copies and copies.count:
            reading.skipped["copy of a message of another session"] += copies.count
        self.report.sessions += new_count > 0
        self.report.continued_sessions += new_count > 0 and stored.is_continued
        return is_whole and not stored.is_refused

    async def _stored(self, conversation: Conversation, source: Source) -> Stored | None:
        """The stored part of a conversation; None if it is left alone."""
        if self.memory is None:
            return Stored(None)
        parts = await parts_of(self.memory, conversation.session_id)
        if not parts:
            return Stored(await self._memory_of(conversation.folder or await self._folder_named(conversation.project)))
        session = parts[0]
        if parts[-1].state is not SessionState.OPEN:
            # As what hooks report goes on.
            conversation.session_id = continued(session.id, len(parts) + 1)
        else:
            conversation.session_id = parts[-1].id
        messages = sum(part.message_count for part in parts)
        if messages and sum(part.hidden_count for part in parts) >= messages:
            self.report.gone_sessions += 1
            return None
        stored = await Stored.of(await self.memory.in_project_of(session.id), parts, f"{source.name}:")
        if stored.is_continued and stored.erased_count:
            # Of what a hook had recorded, nothing is left by which the source's message is recognised as erased.
            self.report.gone_sessions += 1
            return None
        return stored

    async def _memory_of(self, folder: str | None) -> Memory:
        """The memory of the project that a folder belongs to, even one of another machine; of none without a folder, or
        if it is not a whole path."""
        assert self.memory is not None  # noqa: S101 - a count has no memory
        if folder not in self._in_project:
            is_whole = folder is not None and is_folder(spelled(folder))
            found = in_project_of_folder(self.memory, folder) if is_whole else self.memory.in_project(None)
            self._in_project[folder] = await found
        return self._in_project[folder]

    async def _folder_named(self, name: str | None) -> str | None:
        """The folder of the only project that has a folder of this name, if there is one."""
        assert self.memory is not None  # noqa: S101 - a count has no memory
        if name is None:
            return None
        if self._named is None:
            self._named = {}
            for project, _ in await self.memory.projects.all():
                if Path(project).is_absolute():
                    self._named.setdefault(Path(project).name, []).append(project)
        found = self._named.get(name, [])
        return found[0] if len(found) == 1 else None

    async def _place_of(self, note: Note) -> tuple[Memory, str]:
        """The memory that a note belongs to, and its text. One whose project is not known is personal, and says its
        name. A note that was imported before stays where it is."""
        assert self.memory is not None  # noqa: S101 - a count has no memory
        if note.project is None:
            return await self._memory_of(note.folder), note.text
        known = await self.memory.imports.project_of_document(note.name) or await self._folder_named(note.project)
        if known in (None, PERSONAL):
            return await self._memory_of(None), f"{note.project}: {note.text}"
        return await self.memory.in_project(known), note.text

    def _parts(self, turn: Turn) -> list[Turn]:
        """The turn; of a user's turn, what is ascribed to nobody and then the user's words, as far as it has them."""
        try:
            checked_text(turn.text, "text", max_bytes=MOST_BYTES)
        except InvalidInput:
            self.report.skipped["message that is empty or too long"] += 1
            return []
        if turn.role is not Role.USER:
            return [turn]
        words, unascribed = heard(turn.text, is_typed=turn.is_typed)
        parts: list[Turn] = []
        if unascribed:
            also = turn.also and f"{turn.also}:unascribed"
            parts = [replace(turn, role=Role.SYSTEM, text=unascribed, key=f"{turn.key}:unascribed", also=also)]
        if words:
            parts.append(replace(turn, text=words))
        elif not unascribed:
            self.report.skipped["text of the host"] += 1
        return parts

    def _message(self, turn: Turn, at: int, key: str, stored: Stored) -> NewMessage | None:
        """The turn as it is recorded; None if it is stored already."""
        text = stored.new_of(turn, key)
        if not text:
            self.report.present += 1
            return None
        model = turn.model if turn.model and len(turn.model) <= _MOST_MODEL and turn.model.isprintable() else None
        return NewMessage(turn.role, text, created_at=at, client_key=key, model_id=model)

    def _counted(self, conversation: Conversation) -> Iterator[Turn]:
        """The turns. One that does not say when was said with the one before it; the first, when it all began."""
        at = conversation.started_at
        for turn in conversation.turns:
            self.report.found += 1
            at = at if turn.at is None else turn.at
            turn.at = at
            yield turn

    async def _record(self, conversation: Conversation, batch: Sequence[NewMessage], stored: Stored) -> int:
        """Record the messages, and return how many were new. Those that are refused are counted."""
        if stored.memory is None:
            self.report.messages += len(batch)
            return len(batch)
        try:
            recorded = await stored.memory.record_messages(conversation.session_id, batch, client=IMPORTED_BY)
        except SessionFinalized:
            self.report.skipped["message of a session that was closed meanwhile"] += len(batch)
            stored.is_refused = True  # the next run continues it
            return 0
        except (InvalidInput, ClientKeyReused):
            if len(batch) == 1:
                self.report.skipped["message that cannot be stored"] += 1
                return 0
            half = len(batch) // 2
            return sum([await self._record(conversation, part, stored) for part in (batch[:half], batch[half:])])
        except Conflict:
            self.report.skipped["message in a project where nothing is remembered"] += len(batch)
            stored.is_refused = True
            return 0
        self.report.messages += recorded.new_count
        self.report.present += len(batch) - recorded.new_count - recorded.erased_count - recorded.left_out_count
        if gone := recorded.erased_count + recorded.left_out_count:
            self.report.skipped["message that was erased here"] += gone
        return recorded.new_count

    async def _take_note(self, note: Note, file: Found) -> bool:
        """Keep a text as a document, in place of an earlier one of the same name. False if it is refused here."""
        self.report.found += 1
        if self.memory is None:
            self._count(note)
            return True
        if not note.text.strip():
            return True
        memory, text = await self._place_of(note)
        fields = {"text": text, "source": note.name, **({"title": note.title} if note.title else {})}
        try:
            created_at = file.modified_ms if note.at is None else note.at
            await memory.imports.import_document(fields, origin=note.origin, created_at=created_at)
        except (InvalidInput, NotFound):
            self.report.skipped["text that cannot be stored"] += 1
        except Conflict:
            self.report.skipped["text that was erased or is ignored here"] += 1
            return False
        else:
            self._count(note)
        return True

    def _count(self, note: Note) -> None:
        if note.is_document:
            self.report.documents += 1
        else:
            self.report.notes += 1


async def _one_by_one(turns: Iterable[Turn]) -> AsyncIterator[Turn]:
    for turn in turns:
        yield turn


def _identity(path: Path, size: int) -> tuple[int, str]:
    """The identity of a file that only grows. `size` is its length when it was first read."""
    return path.stat().st_ino, _fingerprint(path, min(_END_BYTES, size))


def _fingerprint(path: Path, read_to: int) -> str:
    """A hash of the beginning of a file and of the end of what was read of it."""
    with path.open("rb") as file:
        begin = file.read(min(_END_BYTES, read_to))
        file.seek(max(0, read_to - _END_BYTES))
        return blake2b(begin + file.read(min(_END_BYTES, read_to)), digest_size=16).hexdigest()
