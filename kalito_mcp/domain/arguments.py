"""Checks what a call is given against the types in its signature. Pure.

The public classes are decorated with `checks_arguments`, so every value that comes into the memory passes here. A wrong
type is an InvalidInput. A string may stand for a member of an enumeration. "" counts as None where None is allowed.
Half of a surrogate pair, which no file can keep, becomes U+FFFD.
"""

import inspect
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

from kalito_mcp.domain.wording import listed_choices, shown
from kalito_mcp.errors import InvalidInput

MOST_LEVELS: Final = 220
"""How deep JSON may be nested. What writes the answers stops at 255 levels, and an answer adds some around a record."""

_LARGEST: Final = 2**63 - 1
"""What a database keeps as an integer."""
_LONE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_PLAIN: Final[Mapping[Any, str]] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}

_NEVER_EMPTY: Final = ("owner", "limits.")
"""Whose rights are meant: an empty name there is a mistake, and never stands for everybody's."""

Check = Callable[[Any, str], Any]
"""Returns the value, or what it stands for. The second argument is its place, for a refusal."""
_Class = TypeVar("_Class", bound=type)


def checks_arguments(cls: _Class) -> _Class:
    """A class decorator: every public method of the class refuses arguments of other types than its signature names."""
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(cls, name, _checking(method))
    return cls


def mended(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair; the same object if it has no such half."""
    return text if text.isascii() or _LONE.search(text) is None else _LONE.sub(_REPLACEMENT, text)


def mended_json(value: Any, place: str = "the call", level: int = 0) -> Any:
    """JSON whose strings are all mended; the same object if nothing was to mend.

    Raises:
        InvalidInput: it is nested more than 220 levels deep.
    """
    if isinstance(value, str):
        return mended(value) if type(value) is str else value
    if not isinstance(value, list | tuple | dict):
        return value
    if level >= MOST_LEVELS:
        raise InvalidInput(f"{place} is nested more than {MOST_LEVELS} levels deep; send it plainer")
    if isinstance(value, dict):
        kept = {mended_json(name, place): mended_json(one, place, level + 1) for name, one in value.items()}
        is_same = all(one is two for one, two in zip(value, kept, strict=False)) and len(kept) == len(value)
        return value if is_same and all(one is kept[name] for name, one in value.items()) else kept
    items = [mended_json(one, place, level + 1) for one in value]
    return value if all(one is two for one, two in zip(value, items, strict=True)) else items


def _checking(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        kept, keywords = _checked(method, given, named)
        return method(self, *kept, **keywords)

    @wraps(method)
    async def await_call(self: Any, *given: Any, **named: Any) -> Any:
        kept, keywords = _checked(method, given, named)
        return await method(self, *kept, **keywords)

    return await_call if inspect.iscoroutinefunction(method) else call


def _checked(
    method: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    names, checks = _signature(method)
    kept = [checks[name](value, name) if name in checks else value for name, value in zip(names, given, strict=False)]
    keywords = {name: checks[name](value, name) if name in checks else value for name, value in named.items()}
    return [*kept, *given[len(names) :]], keywords


@cache
def _signature(method: Callable[..., Any]) -> tuple[Sequence[str], Mapping[str, Check]]:
    """The names of the arguments that may be given by place, and the check of each argument."""
    _, *parameters = inspect.signature(method).parameters.values()
    names = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    checks = {one.name: _check_of(one.annotation) for one in parameters if one.kind is not one.VAR_KEYWORD}
    return names, {name: check for name, check in checks.items() if check is not None}


@cache
def _check_of(kind: Any) -> Check | None:
    """The check of a type; None for one whose values are not looked at: a function, a protocol, a name in quotes."""
    origin, arguments = get_origin(kind), get_args(kind)
    check: Check | None = None
    if origin in (Union, UnionType):
        check = _one_of(arguments)
    elif origin is Literal:
        check = _choice(arguments)
    elif kind in _PLAIN:
        check = _plain(kind)
    elif kind in (Any, object):
        check = mended_json
    elif isinstance(origin, type):
        check = _mapping if issubclass(origin, Mapping) else _collection(origin, arguments)
    elif isinstance(kind, type) and not getattr(kind, "_is_protocol", False):
        check = _enumeration(kind) if issubclass(kind, Enum) else _instance(kind)
    return check


def _refused(place: str, wanted: str, value: Any) -> InvalidInput:
    return InvalidInput(f"{place} must be {wanted}, not {shown(value)}")


def _plain(kind: type) -> Check:
    accepted = (int, float) if kind is float else kind

    def check(value: Any, place: str) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise _refused(place, _PLAIN[kind], value)
        if isinstance(value, str):
            return mended(value) if type(value) is str else value
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise _refused(place, "a number of at most 18 digits", value)
        return value

    return check


def _choice(values: Sequence[Any]) -> Check:
    def check(value: Any, place: str) -> Any:
        if value not in values:
            raise _refused(place, listed_choices(values), value)
        return value

    return check


def _enumeration(kind: type[Enum]) -> Check:
    choice = _choice([one.value for one in kind])
    return lambda value, place: value if isinstance(value, kind) else kind(choice(value, place))


def _mapping(value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise _refused(place, "a mapping of names to values", value)
    return mended_json(value, place)


def _collection(origin: type, arguments: Sequence[Any]) -> Check | None:
    if not issubclass(origin, Iterable):
        return None
    check_item = _check_of(arguments[0])

    def check(value: Any, place: str) -> Any:
        accepted = Iterable if origin is Iterable else Set if issubclass(origin, Set) else Collection
        if not isinstance(value, accepted) or isinstance(value, str | bytes | Mapping):
            raise _refused(place, "a set" if accepted is Set else "a list", value)
        if check_item is None or accepted is Iterable:
            return value
        items = [check_item(one, f"{place}[{number}]") for number, one in enumerate(value)]
        if all(one is two for one, two in zip(value, items, strict=True)):
            return value
        return frozenset(items) if accepted is Set else items

    return check


def _one_of(kinds: Sequence[Any]) -> Check | None:
    is_optional = NoneType in kinds
    checks = [_check_of(kind) for kind in kinds if kind is not NoneType]
    known = [check for check in checks if check is not None]
    if len(known) < len(checks):
        return None

    def check(value: Any, place: str) -> Any:
        if is_optional and (value is None or (value == "" and not place.startswith(_NEVER_EMPTY))):
            return None
        for one in known[:-1]:
            try:
                return one(value, place)
            except InvalidInput:
                continue
        return known[-1](value, place)

    return check


def _instance(kind: type[Any]) -> Check:
    def check(value: Any, place: str) -> Any:
        if not isinstance(value, kind):
            raise _refused(place, f"a {kind.__name__}", value)
        if not is_dataclass(kind):
            return value
        changed = {}
        for name, check_field in _fields(kind):
            given = getattr(value, name)
            if (kept := check_field(given, f"{place}.{name}")) is not given:
                changed[name] = kept
        return replace(value, **changed) if changed else value

    return check


@cache
def _fields(kind: type[Any]) -> Sequence[tuple[str, Check]]:
    checks = [(one.name, _check_of(cast(Hashable, one.type))) for one in fields(kind) if one.init]
    return [(name, check) for name, check in checks if check is not None]
