"""The OpenAPI 3.1 document of a table, made of its models. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from kalito_mcp.memory.verbs.json_schemas import pruned
from kalito_mcp.version import __version__
from kalito_mcp.web.problems import ProblemBody
from kalito_mcp.web.rest.endpoint import AnyEndpoint, Nothing
from kalito_mcp.web.rest.requests import KEY_LENGTHS

_REFERENCE: Final = "#/components/schemas/{model}"
_ALWAYS: Final[Mapping[int, str]] = {
    401: "No valid token",
    403: "The token lacks the permission, or another page called",
    408: "The body did not arrive in time",
    421: "The server has another name",
    422: "A field is unknown, missing or wrong",
    429: "Too many requests; Retry-After says when to go on",
    500: "A failure of the memory's own; the answer has its id",
    503: "The memory cannot be read or written now",
}
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A new name for this request, such as a UUID. A repetition with the same key has no further effect "
    "and gets the same answer, which shows a record as it is by now.",
    "schema": {"type": "string", "minLength": KEY_LENGTHS[0], "maxLength": KEY_LENGTHS[1], "pattern": "^[ -~]*$"},
}
_IF_MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of the record as it was read. Refused with 412 if the record has changed since.",
    "schema": {"type": "string", "pattern": '^"[0-9]{1,18}"$', "example": '"1"'},
}
_IF_NONE_MATCH: Final = {
    "name": "If-None-Match",
    "in": "header",
    "description": "An ETag. The answer is 304 if it is still the same.",
    "schema": {"type": "string"},
}


_REPEATABLE: Final = "It may be sent again, without an Idempotency-Key: a repetition changes nothing more."


def document_of(table: Sequence[AnyEndpoint]) -> dict[str, Any]:
    """The document, JSON-ready."""
    models = dict.fromkeys(_models(table))
    references, definitions = models_json_schema(list(models), ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in table:
        paths.setdefault(f"/api{endpoint.path}", {})[endpoint.method.lower()] = _operation(endpoint, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kalito memory",
            "version": __version__,
            "description": "What is remembered, to read and to change. Every call needs a token.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": pruned(definitions.get("$defs", {})),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _models(table: Sequence[AnyEndpoint]) -> Iterable[tuple[type[BaseModel], Any]]:
    yield ProblemBody, "serialization"
    for endpoint in table:
        if endpoint.body is not Nothing:
            yield endpoint.body, "validation"
        if endpoint.answer is not None:
            yield endpoint.answer, "serialization"


def _operation(endpoint: AnyEndpoint, references: Mapping[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__.strip("_"),
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": list(_parameters(endpoint)),
        "responses": _responses(endpoint, references),
        "x-permission": str(endpoint.permission),
    }
    if endpoint.is_idempotent:
        operation["description"] = _REPEATABLE
    if endpoint.body is not Nothing:
        schema = references[endpoint.body, "validation"]
        is_required = any(one.is_required() for one in endpoint.body.model_fields.values())
        operation["requestBody"] = {"required": is_required, "content": {"application/json": {"schema": schema}}}
    return operation


def _parameters(endpoint: AnyEndpoint) -> Iterable[dict[str, Any]]:
    for part in endpoint.path.split("/"):
        if part.startswith("{"):
            schema = {"type": "string", "minLength": 1, "maxLength": 200}
            yield {"name": part[1:-1], "in": "path", "required": True, "schema": schema}
    schema = endpoint.query.model_json_schema()
    for name, field in schema["properties"].items():
        shown = pruned(field, is_short=True)
        described = {"description": shown.pop("description")} if "description" in shown else {}
        is_required = name in schema.get("required", ())
        yield {"name": name, "in": "query", "required": is_required, **described, "schema": shown}
    if endpoint.takes_key:
        yield _KEY
    if endpoint.needs_match:
        yield {**_IF_MATCH, "required": True}
    if endpoint.method == "GET" and endpoint.answer is not None:
        yield _IF_NONE_MATCH


def _responses(endpoint: AnyEndpoint, references: Mapping[Any, Any]) -> dict[str, Any]:
    if endpoint.answer is None:
        content: dict[str, Any] = {endpoint.media: {"schema": {"type": "string"}}}
    else:
        content = {endpoint.media: {"schema": references[endpoint.answer, "serialization"]}}
    answer: dict[str, Any] = {"description": endpoint.summary, "content": content}
    if endpoint.method == "GET" and endpoint.answer is not None:
        answer["headers"] = {"ETag": {"schema": {"type": "string"}}}
    elif endpoint.status == 201:  # noqa: PLR2004 - Created
        answer["headers"] = {"Location": {"schema": {"type": "string"}}}
    found = {str(endpoint.status): answer}
    if endpoint.method == "GET" and endpoint.answer is not None:
        found["304"] = {"description": "Still the same"}
    for status, description in {**_ALWAYS, **_more(endpoint)}.items():
        problem = {"application/json": {"schema": references[ProblemBody, "serialization"]}}
        found[str(status)] = {"description": description, "content": problem}
    return dict(sorted(found.items()))


def _more(endpoint: AnyEndpoint) -> Mapping[int, str]:
    """The refusals that not every endpoint has."""
    more = {404: "Not found"}
    if endpoint.method != "GET":
        more |= {
            409: "What is stored does not allow it: such as a closed conversation, or a preview whose list has changed"
            + ("; or the Idempotency-Key came with another request before" if endpoint.takes_key else ""),
            412: "The record has changed since it was read",
            413: "A text, or the whole request, is too long",
            415: "The body is not JSON",
        }
    if endpoint.needs_match:
        more[428] = "If-Match is missing, or no ETag of a record"
    return more
