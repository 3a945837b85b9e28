"""A verb: one line of the table that all faces serve."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.finalizing import Progress
from kalito_mcp.domain.memory_records import Editor
from kalito_mcp.domain.search import SeenPart
from kalito_mcp.memory.memory import Memory

Sent = TypeVar("Sent", bound=BaseModel)
Got = TypeVar("Got")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and which memory and conversation it is about.

    A call with the `request_key` of an earlier one is that one sent again. `expected_revision` is what a record must
    still be at. `seen` are parts of conversations that the caller still sees, which no search returns.
    """

    memory: Memory
    editor: Editor
    session: str = ""
    request_key: str | None = None
    expected_revision: int | None = None
    seen: frozenset[SeenPart] = frozenset()
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Verb(Generic[Sent, Got]):
    """One thing that may be asked of a memory. `name` is its tool's, `summary` a line that says what it does."""

    name: str
    permission: Permission
    summary: str
    sent: type[Sent]
    run: Callable[[Caller, Sent], Awaitable[Got]]
