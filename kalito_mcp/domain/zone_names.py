"""Names of time zones: the setting `memory.zone`, and what the operating system is set to. `zoneinfo` is imported only
where a zone is named."""

import re
from dataclasses import dataclass
from datetime import UTC, timedelta, timezone
from typing import Final

from kalito_mcp.domain.validation import Policy
from kalito_mcp.domain.wording import shown
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.errors import InvalidInput

SYSTEM: Final = "system"
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?)(?::?([0-5]\d))?", re.ASCII | re.IGNORECASE)
_MOST_HOURS: Final = 24
_MOST_SUGGESTED: Final = 3
_LEAST_SIMILAR: Final = 0.6


@dataclass(frozen=True, slots=True)
class TimePolicy(Policy):
    """The zone whose days a search and a context mean. `zone` is `system`, `UTC`, a name such as `Europe/Berlin`, or an
    offset such as `+02:00`."""

    zone: str = SYSTEM

    def __post_init__(self) -> None:
        """Raises InvalidInput for an unknown zone; the message has the names that are most similar."""
        Policy.__post_init__(self)
        if self.zone != SYSTEM:
            zone_named(self.zone)

    def zone_of_user(self, variable: str | None) -> Zone:
        """The zone that is set, or else the operating system's. `variable` is the value of TZ."""
        return system_zone(variable) if self.zone == SYSTEM else zone_named(self.zone)


def zone_named(name: str) -> Zone:
    """The zone of that name or offset.

    Raises:
        InvalidInput: there is no such zone, or this machine knows no zones by name.
    """
    if name.strip().upper() in {"UTC", "Z"}:
        return UTC_ZONE
    if (offset := _OFFSET.fullmatch(name.strip())) is not None:
        sign, hours, minutes = offset.groups()
        if int(hours) < _MOST_HOURS:
            ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
            return Zone(timezone(-ahead if sign == "-" else ahead))
    found = _known(name.strip())
    if found is None:
        raise InvalidInput(f"zone={shown(name)} is not a time zone; {_suggestion(name.strip())}")
    return found


def system_zone(variable: str | None) -> Zone:
    """The zone that the operating system is set to. `variable` is the value of TZ, which wins if it is set.

    A name that is not in the database of zones is left to the operating system, which may read it as a rule.
    """
    name = (variable or "").removeprefix(":")
    if variable is not None and name.upper() in {"", "UTC", "UTC0", "GMT"}:
        return Zone(UTC)
    return (name and _known(name)) or Zone(None)


def _known(name: str) -> Zone | None:
    """The zone from the database of zones; None if it has no such name."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most starts need no zone by name

    try:
        return Zone(ZoneInfo(name))
    except (KeyError, ValueError, OSError):  # a missing name, one that is no name, one that is a folder
        return None


def _suggestion(name: str) -> str:
    import difflib  # noqa: PLC0415 - only for a refusal
    from zoneinfo import available_timezones  # noqa: PLC0415 - most starts need no zone by name

    known = sorted(available_timezones())
    if not known:
        return "this machine has no database of zones: install the package tzdata, or write an offset such as +02:00"
    # People write the city alone, or as it is spelled.
    by_name: dict[str, str] = {}
    for one in known:
        by_name.setdefault(_folded(one.rpartition("/")[2]), one)
    by_name |= {_folded(one): one for one in known}
    near = difflib.get_close_matches(_folded(name), by_name, n=2 * _MOST_SUGGESTED, cutoff=_LEAST_SIMILAR)
    listed = list(dict.fromkeys(by_name[one] for one in near))[:_MOST_SUGGESTED]
    if not listed:
        return "write a name such as Europe/Berlin, an offset such as +02:00, UTC or system"
    return f"did you mean {' or '.join(map(repr, listed))}?"


def _folded(name: str) -> str:
    return name.casefold().replace(" ", "_")
