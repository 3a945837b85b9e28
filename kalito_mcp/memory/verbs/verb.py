"""A verb, and who calls it."""

from dataclasses import dataclass

from pydantic import BaseModel

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.finalizing import Progress
from kalito_mcp.domain.memory_records import Editor
from kalito_mcp.domain.search import SeenPart
from kalito_mcp.memory.memory import Memory


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a verb, of which memory. `session` is the conversation that is recorded, summarised or closed; other
    verbs name one in what they are sent.

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
class Verb:
    """One thing that may be asked of a memory. `name` is its tool's, `summary` a line that says what it does, and
    `sent` the model of what it takes."""

    name: str
    permission: Permission
    summary: str
    sent: type[BaseModel]
