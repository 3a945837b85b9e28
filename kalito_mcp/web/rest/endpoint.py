"""An endpoint: one row of the table that routes, permissions, the OpenAPI document and the tests are made from. It has
no behaviour of its own.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, Field

from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.memory.verbs.shapes import Input
from kalito_mcp.memory.verbs.verb import Caller, Verb

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

Exporter = Callable[["Memory", Selection], AsyncGenerator[bytes]]
"""The lines of an archive, some hundred at a time."""
REST: Final = Editor(EditorType.AGENT, "rest")
"""Who edits. Which principal it was, the audit log knows."""


class Nothing(Input):
    """No field."""


class InProject(Input):
    """Which project a call is about."""

    project: Annotated[
        str | None,
        Field(
            description="A project's folder or name: what is of it, and what is personal. `personal`: only the "
            "latter. Default, or `*`: all.",
            min_length=1,
            max_length=1_000,
        ),
    ] = None


Body = TypeVar("Body", bound=Input)
Query = TypeVar("Query", bound=Input)


@dataclass(frozen=True, slots=True)
class Call(Generic[Body, Query]):
    """One request. `memory` is that of its principal, narrowed to its project.

    `path` has the parameters of the path. `expected_revision` is what If-Match names, and `request_key` stands for the
    Idempotency-Key together with the request.
    """

    memory: "Memory"
    principal: Principal
    path: Mapping[str, str]
    body: Body
    query: Query
    expected_revision: int | None
    request_key: str | None
    exporter: Exporter
    is_placed: bool
    """Whether the request named a project."""

    async def memory_of(self, session_id: str | None) -> "Memory":
        """The memory for the project of a session, unless the request named another, or no session."""
        return self.memory if self.is_placed or session_id is None else await self.memory.in_project_of(session_id)

    async def caller(self, session_id: str | None = None) -> Caller:
        """Who calls a verb, of the memory for the project of a session unless the request named another."""
        memory = await self.memory_of(session_id)
        return Caller(memory, REST, session_id or "", self.request_key, self.expected_revision)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its content, or a stream of bytes. `revision` becomes its ETag, and `location` its Location."""

    content: BaseModel | None = None
    revision: int | None = None
    location: str | None = None
    stream: AsyncGenerator[bytes] | None = None


Handler = Callable[[Call[Body, Query]], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[Body, Query]):
    """One line of the table. `path` is below /api; `{names}` in it are parameters.

    `answer` is the model of the answer, or None for a stream of `media`. `needs_match` refuses a request without
    If-Match. With `takes_key` an Idempotency-Key makes a repetition safe. Without it, `is_idempotent` says whether a
    repetition changes nothing more anyway; a key is then ignored.
    """

    method: str
    path: str
    permission: Permission
    summary: str
    handler: Handler[Body, Query]
    answer: type[BaseModel] | None
    body: type[Body]
    query: type[Query]
    status: int = 200
    tag: str = "memory"
    media: str = "application/json"
    needs_match: bool = False
    takes_key: bool = False
    is_idempotent: bool = False

    @property
    def name(self) -> str:
        """What the audit log calls it: `GET /api/records/{record_id}`."""
        return f"{self.method} /api{self.path}"


AnyEndpoint = Endpoint[Any, Any]


def serves(
    verb: Verb,
    method: str,
    path: str,
    handler: Handler[Any, Any],
    answer: type[BaseModel],
    *,
    summary: str | None = None,
    body: type[Input] | None = None,
    query: type[Input] = InProject,
    **more: Any,
) -> AnyEndpoint:
    """The endpoint of a verb, whose permission it needs. Its summary and its model, as the body, are the defaults."""
    return Endpoint(
        method,
        path,
        verb.permission,
        summary or verb.summary,
        handler,
        answer,
        verb.sent if body is None else body,
        query,
        **more,
    )


def reads(
    path: str,
    summary: str,
    handler: Handler[Any, Any],
    answer: type[BaseModel],
    query: type[Input] = InProject,
    *,
    tag: str = "memory",
) -> AnyEndpoint:
    """The endpoint of something that no verb shows."""
    return Endpoint("GET", path, Permission.READ, summary, handler, answer, Nothing, query, tag=tag)


def place_of(path: str, name: str) -> str:
    """The URL of one thing, relative to the server."""
    return f"/api{path}/{quote(name, safe='')}"
