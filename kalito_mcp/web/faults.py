"""Error texts for callers: validation errors without a library's noise, and an id for each internal failure."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from kalito_mcp.domain.wording import shown
from kalito_mcp.errors import ConfigurationError, KalitoError, StorageError
from kalito_mcp.memory.verbs.shapes import REFUSED
from kalito_mcp.runtime.acting import acting
from kalito_mcp.web.arguments import where_it_belongs

_log: Final = logging.getLogger("kalito.server")
_SHOWN: Final = 5
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing; send it",
    "string_too_short": "is empty; send some text",
    "string_too_long": "is longer than {max_length} characters; shorten it",
    "string_pattern_mismatch": "contains only white space; send some text",
    "string_unicode": "contains an unpaired surrogate; send valid Unicode",
    "too_short": "is empty; send at least {min_length}",
    "too_long": "has {actual_length} items; send at most {max_length} in one call",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}
_BOUNDS: Final[Mapping[str, str]] = {
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
"""Our words by pydantic's type of error; any other type keeps pydantic's words."""


def in_words(error: ValidationError, schema: Mapping[str, Any]) -> str:
    """The validation error as one sentence a fault, at most five sentences. `schema` is the input's, inlined."""
    faults = error.errors(include_url=False, include_context=True)
    sentences = [_fault(fault, schema) for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        sentences.append(f"and {len(faults) - _SHOWN} more")
    return "; ".join(sentences)


def incident(error: BaseException, what: str) -> str:
    """Log a failure of ours under a new id, and say so. `what` names the call."""
    number = secrets.token_hex(4)
    _log.error("incident %s in %s", number, what, exc_info=error)
    return f"{what} failed inside kalito (incident {number}, see the server's log); try again"


def describe_error(error: KalitoError, what: str) -> str:
    """The text of one of our errors, for the caller. Database and settings errors name files, so a caller over HTTP
    gets the id of their log entry instead."""
    if acting() is None or not isinstance(error, StorageError | ConfigurationError):
        return str(error)
    number = secrets.token_hex(4)
    _log.error("incident %s in %s: %s", number, what, error)
    return f"the memory cannot do this now (incident {number}); the reason is in the server's log"


def _fault(fault: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    kind, given, limits = fault["type"], fault["input"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        parent, _, name = place.rpartition(".")
        inside = f" in {parent}" if parent else ""
        return f"unknown key {shown(name)}{inside}{where_it_belongs(name, _schema_at(schema, fault['loc'][:-1]))}"
    if kind == REFUSED:
        return str(fault["msg"])
    if kind in _WORDS:
        return f"{place or 'the body'} {_WORDS[kind].format(**limits)}"
    if kind in _BOUNDS:
        return f"{place} {_BOUNDS[kind].format(**limits)}, not {shown(given)}"
    return f"{place} should be {str(fault['msg']).removeprefix('Input should be ').removeprefix('Value error, ')}"


def _schema_at(schema: Mapping[str, Any], loc: Sequence[Any]) -> Mapping[str, Any]:
    """The part of a schema that is about this place."""
    for part in loc:
        schema = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
    return schema
