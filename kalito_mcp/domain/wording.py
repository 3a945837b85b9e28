"""How several places show a value or a name: cut short, corrected, in camel case, in a list. Pure."""

import reprlib
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

_LARGEST_SHOWN: Final = 10**18
_MOST_LISTED: Final = 30


def shown(value: Any) -> str:
    """The value, shortened to a few characters."""
    if isinstance(value, int) and abs(value) > _LARGEST_SHOWN:
        return "a very large number"  # Python refuses to convert more than 4,300 digits to text
    return reprlib.repr(value)


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """`; did you mean 'x'?` with the most similar known name, or `; use one of ...` with all of them, up to thirty.
    A beginning that all names share, such as KALITO_, makes none similar."""
    import difflib  # noqa: PLC0415 - only for a refusal

    letters = zip(name, *known, strict=False)
    shared = name[: sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, letters))]
    near = difflib.get_close_matches(name[len(shared) :], [one[len(shared) :] for one in known], n=1, cutoff=0.6)
    if near:
        return f"; did you mean {shared + near[0]!r}?"
    return (
        f"; use one of {', '.join(known)}" if len(known) <= _MOST_LISTED else f"; none of the {len(known)} is like it"
    )


def camel_case(name: str) -> str:
    """`importance_score` as `importanceScore`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def listed_choices(values: Sequence[Any]) -> str:
    """`'user', 'assistant' or 'system'`."""
    *others, last = [repr(value) for value in values]
    return f"{', '.join(others)} or {last}" if others else last
