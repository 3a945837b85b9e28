"""All endpoints. A route that is not in this table does not exist."""

from typing import Final

from pydantic import ConfigDict

from kalito_mcp.memory.verbs.shapes import Output
from kalito_mcp.web.rest.audit import AUDIT
from kalito_mcp.web.rest.contexts import CONTEXTS
from kalito_mcp.web.rest.endpoint import AnyEndpoint, Call, Nothing, Reply, reads
from kalito_mcp.web.rest.forgetting import FORGETTING
from kalito_mcp.web.rest.found import FOUND
from kalito_mcp.web.rest.openapi import document_of
from kalito_mcp.web.rest.records import RECORDS
from kalito_mcp.web.rest.sessions import SESSIONS
from kalito_mcp.web.rest.spaces import SPACES
from kalito_mcp.web.rest.specified import SPECIFIED
from kalito_mcp.web.rest.tokens import TOKENS
from kalito_mcp.web.rest.whole import WHOLE


class OpenApiDocument(Output):
    """An OpenAPI 3.1 document."""

    model_config = ConfigDict(extra="allow", frozen=True)

    openapi: str


async def _document(_call: Call[Nothing, Nothing]) -> Reply:
    return Reply(OpenApiDocument(**document_of(TABLE)))


TABLE: Final[tuple[AnyEndpoint, ...]] = (
    *SPECIFIED,
    *SESSIONS,
    *CONTEXTS,
    *RECORDS,
    *FORGETTING,
    *FOUND,
    *SPACES,
    *WHOLE,
    *TOKENS,
    *AUDIT,
    reads("/openapi.json", "This description of all endpoints", _document, OpenApiDocument, Nothing, tag="about"),
)
