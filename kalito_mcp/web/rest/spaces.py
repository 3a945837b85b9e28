"""Endpoints of spaces: which ones somebody is in, and sharing a record there."""

from typing import Annotated, Final, Literal

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.memory.verbs.shapes import Input, Output
from kalito_mcp.web.rest.endpoint import AnyEndpoint, Call, Endpoint, InProject, Nothing, Reply, place_of
from kalito_mcp.web.rest.shapes import RecordBody, record_body


class SpaceBody(Output):
    """A space that the caller's owner is a member of. With a project, it is seen in there alone."""

    space: str
    project: str | None = None
    role: Literal["reader", "writer", "curator"]
    since: str


class Spaces(Output):
    """The spaces of the caller's owner, by name."""

    spaces: list[SpaceBody]


class InSpace(Input):
    """Where to share a record."""

    space: Annotated[
        str | None,
        Field(description="Its name; default: the only one where you may share.", min_length=1, max_length=60),
    ] = None


class SharedBody(RecordBody):
    """The copy of a record in a space."""

    source_id: str


async def list_spaces(call: Call[Nothing, Nothing]) -> Reply:
    """The spaces that the owner is a member of."""
    mine = await call.memory.spaces.mine()
    fields = ("space", "project", "role", "since")
    return Reply(Spaces(spaces=[SpaceBody(**{name: one.to_dict()[name] for name in fields}) for one in mine]))


async def share_record(call: Call[InSpace, InProject]) -> Reply:
    """Share a record."""
    caller = await call.caller()
    copy, noted = await caller.memory.spaces.share(call.path["record_id"], call.body.space, editor=caller.editor)
    shared = SharedBody(**record_body(copy).model_dump(), source_id=noted.source_id)
    return Reply(shared, location=place_of("/records", copy.id))


SPACES: Final[tuple[AnyEndpoint, ...]] = (
    Endpoint("GET", "/spaces", Permission.READ, "The spaces that you are in", list_spaces, Spaces, Nothing, Nothing),
    Endpoint(
        "POST", "/records/{record_id}/share", Permission.WRITE, "Share a record in a space", share_record, SharedBody,
        InSpace, InProject, tag="records", is_idempotent=True,
    ),
)  # fmt: skip
