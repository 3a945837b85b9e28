"""Statements with named parameters, as PostgreSQL takes them. Pure.

A statement names its parameters, `:session`, as in the SQLite store; PostgreSQL numbers them. A name has one type in
all statements, so that a NULL has a type, too.
"""

import re
from functools import cache
from typing import Final

_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z][a-z0-9_]*)")

TYPES: Final = {
    **dict.fromkeys(("owner", "agent_key", "session_key", "project_key", "graph_key", "index_key", "key"), "bigint"),
    **dict.fromkeys(("number", "seq", "end_seq", "limit", "before_key", "after_key", "now_ms", "at_ms"), "bigint"),
    **dict.fromkeys(("agent", "session", "project", "limit_agent", "limit_project", "type", "id"), "text"),
    **dict.fromkeys(("prefix", "state", "stage", "before", "name", "source"), "text"),
    **dict.fromkeys(("said_at", "threshold", "max_summaries"), "bigint"),
    **dict.fromkeys(("keys", "numbers"), "bigint[]"),
    **dict.fromkeys(("ids", "types", "terms"), "text[]"),
    "holder": "uuid",
}
"""The types of names that many statements use. PostgreSQL infers those of others, or the statement casts them."""


@cache
def positional(statement: str) -> tuple[str, tuple[str, ...]]:
    """The statement with numbered parameters, and their names in order."""
    names: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        name = found[1]
        number = names.setdefault(name, len(names) + 1)
        return f"${number}::{TYPES[name]}" if name in TYPES else f"${number}"

    return _PARAMETER.sub(numbered, statement), tuple(names)
