"""Views and acts: the rows of the page's table. A view is a GET that shows something; an act is a form that changes it.

An act sends the browser back to the view that it came from, which shows what was done, and how to undo it.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode

from pydantic import ConfigDict, Field

from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.memory.verbs.shapes import Input
from kalito_mcp.memory.verbs.verb import Caller

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

PERSON: Final = Editor(EditorType.HUMAN, "page")
"""Who edits here. Which principal it was, the audit log knows."""


class Fields(Input):
    """What a URL or a form says. Unknown and empty fields do not count, so that an old link still works."""

    model_config = ConfigDict(extra="ignore")


class ViewFields(Fields):
    """What every view may be asked for: the project, of whose records and personal ones it shows."""

    project: Annotated[str | None, Field(max_length=1_000)] = None


class Nothing(ViewFields):
    """No field but the project."""


Sent = TypeVar("Sent", bound=Fields)


@dataclass(frozen=True, slots=True)
class Visit(Generic[Sent]):
    """One request of a person. `memory` is theirs, narrowed to the project that they chose; None is all of it.

    `path` has the parameters of the path, and `sent` the fields of the query or of the form.
    """

    memory: "Memory"
    principal: Principal
    path: Mapping[str, str]
    sent: Sent
    project: str | None

    def may(self, needed: Permission) -> bool:
        """Whether the person may do what needs this permission."""
        return self.principal.may(needed)

    def caller(self, memory: "Memory | None" = None, *, expected_revision: int | None = None) -> Caller:
        """Who calls a verb: a person, on this memory or on another place of it."""
        return Caller(memory or self.memory, PERSON, expected_revision=expected_revision)


@dataclass(frozen=True, slots=True)
class Shown:
    """A view: its template, its title, and the values of the template."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Download:
    """A view that is a file for the browser to keep: its name, its media type, and its pieces."""

    name: str
    media: str
    pieces: AsyncGenerator[bytes]


@dataclass(frozen=True, slots=True)
class Undo:
    """What takes an act back: another act, and its fields. They are ids, numbers and names of projects, never words of
    a record, because a cookie keeps them."""

    act: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """What an act did, in a few words of ours, and what takes it back. `back` is the view to go to; None is the one
    that the person came from. `more` is a view that shows what else it concerns."""

    said: str
    undo: Undo | None = None
    back: str | None = None
    more: str | None = None


ViewHandler = Callable[[Visit[Sent]], Awaitable[Shown | Download]]
ActHandler = Callable[[Visit[Sent]], Awaitable[Done]]


@dataclass(frozen=True, slots=True)
class View(Generic[Sent]):
    """A line of the table for what is shown at a path."""

    path: str
    handler: ViewHandler[Sent]
    sent: type[Sent]
    permission: Permission = Permission.READ
    method: str = "GET"

    @property
    def name(self) -> str:
        """What the audit log calls it."""
        return f"page {self.path}"


@dataclass(frozen=True, slots=True)
class Act(Generic[Sent]):
    """A line of the table for what a form changes. `act` is its name in forms and in an `Undo`."""

    act: str
    handler: ActHandler[Sent]
    sent: type[Sent]
    permission: Permission = Permission.WRITE
    method: str = "POST"

    @property
    def path(self) -> str:
        """Where its form is sent."""
        return f"/act/{self.act}"

    @property
    def name(self) -> str:
        """What the audit log calls it."""
        return f"page {self.act}"


def link(path: str, **query: Any) -> str:
    """The URL of a view with these fields. None and empty ones are left out; lists come as several."""
    pairs = [
        (name, one)
        for name, value in query.items()
        for one in (value if isinstance(value, (list, tuple)) else [value])
        if one not in (None, "")
    ]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def record_url(record_id: str) -> str:
    """The view of a record."""
    return f"/r/{quote(record_id, safe='')}"


def session_url(session_id: str, project: str | None = None) -> str:
    """The view of a conversation."""
    return link(f"/s/{quote(session_id, safe='')}", project=project)
