"""How a refusal is worded: it says what to do, without a library's noise and without our internals."""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST
from pydantic import ValidationError

from kalito_mcp.domain.wording import did_you_mean, shown
from kalito_mcp.errors import (
    AccessDenied,
    ConfigurationError,
    Conflict,
    InvalidInput,
    KalitoError,
    NotFound,
    StorageError,
)

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


def unknown_arguments(arguments: Iterable[str], known: Sequence[str]) -> str | None:
    """What is wrong with the names of the arguments; None if all are known."""
    unknown = sorted(set(arguments) - set(known))
    if not unknown:
        return None
    return "; ".join(f"unknown argument {shown(name)}{did_you_mean(name, known)}" for name in unknown[:_SHOWN])


def in_words(error: ValidationError, schema: Mapping[str, Any]) -> str:
    """The validation error as one sentence a fault, at most five sentences. `schema` is the tool's input schema."""
    faults = error.errors(include_url=False, include_context=True)
    sentences = [_fault(fault, schema) for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        sentences.append(f"and {len(faults) - _SHOWN} more")
    return "; ".join(sentences)


def refusal(error: BaseException, tool: str) -> ToolError:
    """The ToolError for what a tool raised. Our own errors keep their words; any other is logged under an id."""
    if isinstance(error, KalitoError):
        return ToolError(f"{error.code}: {error}")
    return ToolError(f"internal: {_incident(error, tool)}")


@contextmanager
def protocol_errors(what: str) -> Iterator[None]:
    """Raise errors of the block as protocol errors, for calls without a result that could carry them. `what` names
    the call."""
    try:
        yield
    except (MCPError, ResourceError):
        raise
    except (InvalidInput, NotFound, Conflict) as error:
        raise MCPError(code=INVALID_PARAMS, message=str(error)) from error
    except AccessDenied as error:
        raise MCPError(code=INVALID_REQUEST, message=f"{error.code}: {error}") from error
    except (StorageError, ConfigurationError) as error:
        raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error
    except Exception as error:
        raise MCPError(code=INTERNAL_ERROR, message=_incident(error, what)) from error


def unknown(kind: str, name: str, known: Iterable[str]) -> MCPError:
    """The protocol error for a tool or prompt that does not exist; names the most similar name, or all."""
    return MCPError(code=INVALID_PARAMS, message=f"unknown {kind} {shown(name)}{did_you_mean(name, list(known))}")


def _fault(fault: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    kind, given, limits = fault["type"], fault["input"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        parent, _, name = place.rpartition(".")
        return f"unknown key {shown(name)} in {parent}{did_you_mean(name, _keys_of(schema, fault['loc']))}"
    if kind in _WORDS:
        return f"{place} {_WORDS[kind].format(**limits)}"
    if kind in _BOUNDS:
        return f"{place} {_BOUNDS[kind].format(**limits)}, not {shown(given)}"
    return f"{place} should be {str(fault['msg']).removeprefix('Input should be ').removeprefix('Value error, ')}"


def _keys_of(schema: Mapping[str, Any], loc: Sequence[Any]) -> list[str]:
    """The keys of the object that has the fault: an item of the argument, found by its reference."""
    argument = schema.get("properties", {}).get(loc[0], {})
    name = argument.get("items", {}).get("$ref", "").rpartition("/")[2]
    return list(schema.get("$defs", {}).get(name, {}).get("properties", {}))


def _incident(error: BaseException, what: str) -> str:
    incident = secrets.token_hex(4)
    _log.error("incident %s in %s", incident, what, exc_info=error)
    return f"{what} failed inside kalito (incident {incident}, see the server's log); try again"
