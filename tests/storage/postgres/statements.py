"""Every named statement of the store on PostgreSQL, and values for its parameters."""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from typing import Any

import kalito_mcp.storage.postgres as package
from kalito_mcp.storage.postgres.named_sql import positional

_IS_STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s")
_OWNER = re.compile(r"(\w+\.)?owner_key = :owner")


def statements() -> dict[str, str]:
    """All statements by `module.NAME`. Those of the start, and of migrations, are not among them: they have `$1`."""
    return dict(_statements())


def _statements() -> Iterator[tuple[str, str]]:
    for module in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        for name, value in vars(loaded).items():
            of_a_name: Mapping[Any, Any] = value if isinstance(value, Mapping) else {"": value}
            for key, one in of_a_name.items():
                if name.isupper() and not name.startswith("_"):
                    for place, text in enumerate(one if isinstance(one, tuple | list) else [one]):
                        if isinstance(text, str) and _IS_STATEMENT.match(text):
                            yield ".".join(filter(None, (module.name, name, str(key), str(place or "")))), text


def without_owner(statement: str) -> str:
    """The statement with every condition that names the owner taken out."""
    return _OWNER.sub("true", statement)


def numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """As PostgreSQL takes it, with the names of the parameters in order."""
    return positional(statement)


def value_for(name: str, kind: str, values: Mapping[str, Any]) -> Any:
    """A value of this type for a parameter: the one of its name, or any."""
    if name in values:
        return values[name]
    if kind.endswith("[]"):
        return [value_for("", kind[:-2], values)]
    if kind in ("int8", "int4", "int2"):
        return 1
    if kind in ("float8", "float4", "numeric"):
        return 0.5
    if kind == "bool":
        return True
    if kind == "bytea":
        return b"\x01" * 8
    if kind in ("halfvec", "vector"):
        return values["query"]
    return "x"
