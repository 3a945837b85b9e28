"""All endpoints. A route that is not in this table does not exist."""

from typing import Final

from pydantic import ConfigDict

from kalito_mcp.domain.access import Permission
from kalito_mcp.web.rest.endpoint import AnyEndpoint, Call, Endpoint, Nothing, Output, Reply
from kalito_mcp.web.rest.openapi import document_of
from kalito_mcp.web.rest.specified import SPECIFIED


class OpenApiDocument(Output):
    """An OpenAPI 3.1 document."""

    model_config = ConfigDict(extra="allow", frozen=True)

    openapi: str


async def _document(_call: Call[Nothing, Nothing]) -> Reply:
    return Reply(OpenApiDocument(**document_of(TABLE)))


TABLE: Final[tuple[AnyEndpoint, ...]] = (
    *SPECIFIED,
    Endpoint(
        "GET",
        "/openapi.json",
        Permission.READ,
        "This description of all endpoints",
        _document,
        OpenApiDocument,
        Nothing,
        Nothing,
        tag="about",
    ),
)
