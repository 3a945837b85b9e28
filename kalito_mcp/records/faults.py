"""How what was sent is refused: every fault in words that say what to send. Pure."""

import difflib
import reprlib
from collections.abc import Collection, Sequence
from typing import Any, Final

from kalito_mcp.errors import InvalidInput

_MAX_FAULTS: Final = 5
_MOST_SHOWN: Final = 10**18


def refuse(faults: Sequence[str]) -> None:
    """Raise InvalidInput with the first five faults and the number of the others; nothing where there are none."""
    told = list(faults[:_MAX_FAULTS])
    if len(faults) > _MAX_FAULTS:
        told.append(f"and {len(faults) - _MAX_FAULTS} more")
    if told:
        raise InvalidInput("; ".join(told))


def unknown_field(name: object, known: Collection[str], of: str) -> str:
    """The fault of a field that there is not: names the nearest one, or all."""
    near = difflib.get_close_matches(str(name)[:100].lower(), known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"a {of} has {', '.join(known)}"
    return f"unknown field {shown(name)}; {hint}"


def shown(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, int) and abs(value) > _MOST_SHOWN:
        return "so large a number"  # Python refuses to write one of more than 4,300 digits
    return reprlib.repr(value)
