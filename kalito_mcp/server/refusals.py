"""How a call is refused: in words that say what to do, without a library's noise, and without our internals."""

import difflib
import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from kalito_mcp.errors import ConfigurationError, KalitoError

_log: Final = logging.getLogger("kalito.server")
_SHOWN: Final = 5


def unknown_arguments(arguments: Iterable[str], known: Sequence[str]) -> str | None:
    """What is wrong with the names of the arguments; None when all are known."""
    unknown = sorted(set(arguments) - set(known))
    if not unknown:
        return None
    return "; ".join(f"unknown argument {name!r}{_did_you_mean(name, known)}" for name in unknown[:_SHOWN])


def in_words(error: ValidationError, schema: Mapping[str, Any]) -> str:
    """The validation error as one sentence a fault, at most five. `schema` is the tool's input schema."""
    faults = error.errors(include_url=False, include_context=True)
    sentences = [_fault(fault, schema) for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        sentences.append(f"and {len(faults) - _SHOWN} more")
    return "; ".join(sentences)


def refusal(error: BaseException, tool: str) -> ToolError:
    """The tool error for what a tool raised: our own errors in their words, anything else by an id that the log has."""
    if isinstance(error, KalitoError) and not isinstance(error, ConfigurationError):
        return ToolError(f"{error.code}: {error}")
    incident = secrets.token_hex(4)
    _log.error("incident %s in tool %s", incident, tool, exc_info=error)
    return ToolError(f"internal: {tool} failed inside kalito (incident {incident}, see the server's log); try again")


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the known names."""
    return _did_you_mean(name, list(known))


def _fault(fault: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    kind, message = fault["type"], str(fault["msg"])
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        parent, _, name = place.rpartition(".")
        return f"unknown key {name!r} in {parent}{_did_you_mean(name, _keys_of(schema, fault['loc']))}"
    if kind == "literal_error":
        return f"{place} must be {fault['ctx']['expected']}, not {_shown(fault['input'])}"
    message = message.removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{place} should be {message}" if message != fault["msg"] else f"{place}: {message}"


def _keys_of(schema: Mapping[str, Any], loc: Sequence[Any]) -> list[str]:
    """The keys of the object in which the fault lies: those of the argument's item, by its reference."""
    argument = schema.get("properties", {}).get(loc[0], {})
    name = argument.get("items", {}).get("$ref", "").rpartition("/")[2]
    return list(schema.get("$defs", {}).get(name, {}).get("properties", {}))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."  # noqa: PLR2004


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
