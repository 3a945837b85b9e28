"""Reads and checks a request: body, query, and the headers that make it conditional or repeatable."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.datastructures import Headers

from kalito_mcp.domain.request_keys import request_key
from kalito_mcp.domain.wording import camel_case, shown
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs.json_schemas import inlined
from kalito_mcp.memory.verbs.shapes import Input
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.safety.redaction import cleaned
from kalito_mcp.web.arguments import tidied, unknown_arguments
from kalito_mcp.web.faults import in_words
from kalito_mcp.web.problems import Problem
from kalito_mcp.web.rest.endpoint import AnyEndpoint

KEY_LENGTHS: Final = (8, 200)
"""Of an Idempotency-Key. A shorter one is easily taken twice."""
_MOST_FIELDS: Final = 100
_ETAG: Final = re.compile(r'(?:W/)?"(\d{1,18})"', re.ASCII)
_JSON: Final = re.compile(r"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.ASCII | re.IGNORECASE)
Sent = TypeVar("Sent", bound=Input)


def body_of(model: type[Sent], headers: Headers, raw: bytes) -> Sent:
    """The body of a request. An empty one is an empty object.

    Raises:
        Problem: it is not a JSON object. InvalidInput: a field is unknown, missing or wrong.
    """
    if raw and not _JSON.fullmatch(headers.get("content-type", "")):
        raise Problem(415, "unsupported_media_type", "send the body as JSON, with Content-Type: application/json")
    return _checked(model, _parsed(raw) if raw.strip() else {}, is_strict=True)


def query_of(model: type[Sent], raw: bytes) -> Sent:
    """The query of a request's URL.

    Raises:
        InvalidInput: a field is unknown, missing, wrong or given twice.
    """
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise InvalidInput("the query of the URL is not valid; encode it as UTF-8, with percent signs") from None
    return checked_pairs(model, pairs)


def checked_pairs(model: type[Sent], pairs: Sequence[tuple[str, str]]) -> Sent:
    """The fields of a query or a form. Lists may come several times.

    Raises:
        InvalidInput: a field is unknown, missing, wrong or given twice.
    """
    by_name = {alias: name for name in model.model_fields for alias in (name, camel_case(name))}
    if (fault := unknown_arguments({name: 1 for name, _ in pairs if name not in by_name}, _schema(model))) is not None:
        raise InvalidInput(fault if model.model_fields else f"{fault.partition(';')[0]}; this has none")
    lists = {name for name, one in _schema(model)["properties"].items() if _is_list(one)} if pairs else set()
    given: dict[str, Any] = {}
    for alias, value in pairs:
        name = by_name[alias]
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise InvalidInput(f"{name} is given twice; send it once")
        else:
            given[name] = value
    return _checked(model, given, is_strict=False)


def expected_revision_of(endpoint: AnyEndpoint, headers: Headers) -> int | None:
    """The revision that If-Match names.

    Raises:
        Problem: the endpoint needs it, and it is missing or does not name one revision.
    """
    sent = headers.get("if-match")
    if sent is None:
        if endpoint.needs_match:
            raise Problem(
                428, "revision_required", 'send If-Match with the ETag of the record as you have read it, such as "1"'
            )
        return None
    found = _ETAG.fullmatch(sent.strip())
    if found is None:
        raise Problem(
            428,
            "revision_required",
            f'If-Match={shown(sent)} is not the ETag of a record, such as "1"; read the record, and send its ETag',
        )
    return int(found[1])


def has_none_match(headers: Headers, etag: str) -> bool:
    """Whether If-None-Match names this ETag: the caller has the answer already."""
    sent = headers.get("if-none-match")
    if sent is None:
        return False
    return sent.strip() == "*" or etag.removeprefix("W/") in [one.strip().removeprefix("W/") for one in sent.split(",")]


async def request_key_of(endpoint: AnyEndpoint, headers: Headers, path: str, query: bytes, raw: bytes) -> str | None:
    """A key made of the Idempotency-Key and the request: its endpoint, path, query and body. None without that header,
    or if the request is safe to repeat anyway.

    Raises:
        InvalidInput: the header is too short or too long, or this request cannot be made safe to repeat.
    """
    sent = headers.get("idempotency-key")
    if sent is None or endpoint.method != "POST":
        return None
    if not endpoint.takes_key and not endpoint.is_idempotent:
        raise InvalidInput(f"{endpoint.name} cannot be repeated safely; leave Idempotency-Key out")
    least, most = KEY_LENGTHS
    if not least <= len(sent) <= most:
        raise InvalidInput(f"Idempotency-Key has {len(sent)} characters; send {least} to {most}, such as a UUID")
    if not sent.isascii() or not sent.isprintable():
        raise InvalidInput("Idempotency-Key may only have printable ASCII characters; send a UUID, for example")
    if not endpoint.takes_key:
        return None
    # Without secrets, as it is stored: a removed secret must not be guessable from a hash.
    kept, _ = await read_aside(len(raw), lambda: cleaned(_parsed(raw) if raw.strip() else {}))
    bound = json.dumps([endpoint.name, path, query.decode("latin-1"), kept], sort_keys=True)
    return request_key(sent, bound.encode())


@cache
def _schema(model: type[Input]) -> Mapping[str, Any]:
    return inlined(model.model_json_schema(by_alias=False))


def _checked(model: type[Sent], given: Any, *, is_strict: bool) -> Sent:
    if isinstance(given, dict):
        given = tidied(given, _schema(model))
    try:
        return model.model_validate(given, strict=is_strict)
    except ValidationError as error:
        raise InvalidInput(in_words(error, _schema(model))) from None


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode(), parse_constant=_refused, parse_int=_integer, object_pairs_hook=_object)
    except _Twice as error:
        raise InvalidInput(f"the body has {shown(str(error))} twice in one object; send it once") from None
    except (ValueError, RecursionError):
        raise InvalidInput("the body is not valid JSON; send a JSON object in UTF-8") from None


class _Twice(ValueError):
    """A name that an object has twice."""


def _object(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return found


def _integer(digits: str) -> int | float:
    """A number, as a fraction if it has more digits than a database keeps: those are for no field of ours."""
    return int(digits) if len(digits) <= 18 else float(digits)  # noqa: PLR2004 - as many as 64 bits always keep


def _refused(constant: str) -> NoReturn:
    raise ValueError(constant)


def _is_list(schema: Mapping[str, Any]) -> bool:
    return any(choice.get("type") == "array" for choice in schema.get("anyOf", [schema]))
