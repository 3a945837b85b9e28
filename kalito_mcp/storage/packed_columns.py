"""The small columns of a record, packed into one number: a row with few values is read much faster. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from kalito_mcp.domain.records import Origin, RecordType, Role, origin_of_role

TYPE_CODES: Final = {str(one): code for code, one in enumerate(RecordType)}
_ROLES: Final = {str(one): code for code, one in enumerate(Role)}
_ORIGINS: Final = {str(one): code for code, one in enumerate(Origin)}
_ORIGINS_OF_ROLES: Final = {str(role): _ORIGINS[str(origin_of_role(role))] for role in Role}
_ASSISTANT: Final = _ORIGINS[str(Origin.ASSISTANT)]
_BITS: Final = {"types": 3, "roles": 2, "origins": 3, "is_internal": 1, "is_shown": 1, "word_counts": 32}
"""Of each, lowest bits first."""


def _cases(column: str, codes: Mapping[str, int], otherwise: str) -> str:
    cases = " ".join(f"WHEN '{value}' THEN {code}" for value, code in codes.items())
    return f"CASE {column} {cases} {otherwise} END"


def packed(*, is_shown: str, word_count: str) -> str:
    """The expression of the number, for a row `r` of records; these two are expressions of numbers. A type that does
    not exist, in a damaged row, gets a number that no filter asks for."""
    expressions = {
        "types": _cases("r.type", TYPE_CODES, f"ELSE {len(RecordType)}"),
        "roles": _cases("r.role", _ROLES, f"ELSE {len(Role)}"),
        "origins": (
            f"coalesce({_cases('r.origin', _ORIGINS, '')}, {_cases('r.role', _ORIGINS_OF_ROLES, f'ELSE {_ASSISTANT}')})"
        ),
        "is_internal": "r.is_internal",
        "is_shown": is_shown,
        "word_counts": word_count,
    }
    shift, parts = 0, []
    for name, bits in _BITS.items():
        parts.append(f"({expressions[name]} << {shift})")
        shift += bits
    return " + ".join(parts)


def shifts() -> Iterator[tuple[str, int, int]]:
    """The name of each column, where its bits begin, and their mask."""
    shift = 0
    for name, bits in _BITS.items():
        yield name, shift, (1 << bits) - 1
        shift += bits
