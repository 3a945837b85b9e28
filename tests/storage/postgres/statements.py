"""Every named statement of the store on PostgreSQL, and values for its parameters."""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pgvector import HalfVector

import kalito_mcp.storage.postgres as package
from kalito_mcp import storage

_IS_STATEMENT: Final = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s")
_OWNER: Final = re.compile(r"(\w+\.)?owner_key = :owner")
_SAMPLES: Final[Mapping[str, Any]] = {
    "int8": 1,
    "int4": 1,
    "int2": 1,
    "float8": 0.5,
    "float4": 0.5,
    "bool": True,
    "bytea": b"\x01" * 8,
    "halfvec": HalfVector([1, 2, 3, 4]),
}


def statements() -> dict[str, str]:
    """All statements by `module.NAME`."""
    return dict(_statements())


def _statements() -> Iterator[tuple[str, str]]:
    of_every_store = [one for one in pkgutil.iter_modules(storage.__path__, f"{storage.__name__}.") if not one.ispkg]
    for found in (*of_every_store, *pkgutil.iter_modules(package.__path__, f"{package.__name__}.")):
        loaded = importlib.import_module(found.name)
        module = found.name.rpartition(".")[2]
        for name, value in vars(loaded).items():
            if name.isupper() and not name.startswith("_"):
                for place, text in _texts(value):
                    if _IS_STATEMENT.match(text):
                        yield ".".join(filter(None, (module, name, place))), text


def _texts(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield "", value
    elif isinstance(value, tuple | list):
        yield from ((str(place), one) for place, one in enumerate(value) if isinstance(one, str))
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from ((f"{key}{place and '.'}{place}", text) for place, text in _texts(one))


def without_owner(statement: str) -> str:
    """The statement with every condition that names the owner taken out."""
    return _OWNER.sub("true", statement)


def value_for(name: str, kind: str, values: Mapping[str, Any]) -> Any:
    """A value of this type for a parameter: the one of its name, or any."""
    if name in values:
        return values[name]
    if kind.endswith("[]"):
        return [value_for("", kind[:-2], values)]
    return _SAMPLES.get(kind, "x")
