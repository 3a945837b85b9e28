"""Refusals of wrong fields: each fault says what to send instead. Pure."""

from collections.abc import Collection, Sequence
from typing import Final

from kalito_mcp.domain.wording import did_you_mean, shown
from kalito_mcp.errors import InvalidInput

_MAX_FAULTS: Final = 5


def refuse(faults: Sequence[str]) -> None:
    """Raise InvalidInput with the first five faults and the number of the others. No faults: do nothing."""
    listed = list(faults[:_MAX_FAULTS])
    if len(faults) > _MAX_FAULTS:
        listed.append(f"and {len(faults) - _MAX_FAULTS} more")
    if listed:
        raise InvalidInput("; ".join(listed))


def unknown_field(name: object, known: Collection[str]) -> str:
    """The fault of a field that does not exist. It names the nearest known field, or all of them."""
    return f"unknown field {shown(name)}{did_you_mean(str(name)[:100].lower(), list(known))}"
