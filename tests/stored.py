"""The contents of a database in a comparable form, and a conversation to fill one with."""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from kalito_mcp import NewMessage, Role
from kalito_mcp.graph.store import GraphStore

TABLES: Final = ("agents", "sessions", "records", "graphs", "graph_nodes", "graph_edges")
_PASSING: Final = {"revision", "removed_revision", "hash"}
_DRAWN: Final = re.compile(r"\b(?:pin|summary)_\d+_\w+")
TOPICS: Final = ("the boiler", "Anna Keller's visa", "the Oslo flight", "invoice 2026-17", "the garden fence")


def tables(database: Path, *, is_exact: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table.

    Unless `is_exact`, without revisions and hashes, and with random ids replaced by their record's text.
    """
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        found = {
            name: [
                {key: row[key] for key in row.keys() if is_exact or key not in _PASSING}  # noqa: SIM118 - a Row is no dict
                for row in connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3")
            ]
            for name in TABLES
        }
    if not is_exact:
        texts = {row["id"]: f"<{row['type']}: {row['text']}>" for row in found["records"]}
        for row in (row for rows in found.values() for row in rows):
            for key, value in row.items():
                if isinstance(value, str):
                    row[key] = _DRAWN.sub(lambda match: texts.get(match[0], match[0]), value)
    return found


def talk(turns: int, *, first: int = 0) -> list[NewMessage]:
    """Questions, many of them similar, each with its answer."""
    messages: list[NewMessage] = []
    for turn in range(first, first + turns):
        topic = TOPICS[turn % len(TOPICS)]
        messages.append(NewMessage(Role.USER, f"Could you tell me what the status of {topic} is today, no. {turn}?"))
        messages.append(NewMessage(Role.ASSISTANT, f"Report {turn} on {topic}: all is as planned, and Mr Weber knows."))
    return messages


def said(*texts: str) -> list[NewMessage]:
    """Messages of the user and the assistant in turn."""
    roles = (Role.USER, Role.ASSISTANT)
    return [NewMessage(roles[place % 2], text) for place, text in enumerate(texts)]


def content(graph: GraphStore) -> dict[str, Any]:
    """A graph's nodes, edges and last sleep in a comparable order."""
    snapshot = graph.to_snapshot()["graph"]
    return {
        "nodes": sorted(snapshot["nodes"], key=lambda node: str(node["id"])),
        "edges": sorted(snapshot["edges"], key=lambda edge: str(edge["id"])),
        "slept_at": graph.slept_at,
    }


def texts_of(graph: GraphStore, node_type: str) -> Sequence[str]:
    """The texts of the nodes of a type, sorted."""
    return sorted(node.text or "" for node in graph.nodes() if node.type == node_type)
