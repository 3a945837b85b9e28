"""The demonstration's client: it starts a server process, times its tools and reads its answers.

Importing the MCP SDK takes a second, so the command imports this module once something is on the screen. A field that
the server does not send is read as absent, never as an error.
"""

import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, TextIO

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from kalito_mcp.cli.demo.screen import Shares, bar_cells, one_line

_CALL_TIMEOUT_S: Final = 20.0
_LEAD_IN: Final = 60
"""Characters of a sentence that an excerpt shows before the fact."""


class CallRefused(Exception):
    """The server answered a call with an error."""


@asynccontextmanager
async def connected(database: str, folder: Path, log: TextIO) -> AsyncGenerator[Client]:
    """A client of a new server process, which logs to `log` and ends with the block.

    The server gets a configuration in `folder` and no KALITO_* variable: the user's may name models, and the
    demonstration calls none. It searches by words, because vectors are made in the background, and it does not wait.
    """
    config = folder / "demo.toml"
    config.write_text('[models]\nembedder = "none"\n', encoding="utf-8")
    paths = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kalito_mcp", "serve", "--database", database],
        env={"PYTHONUTF8": "1", "KALITO_CONFIG": str(config), **paths},
    )
    async with Client(stdio_client(server, errlog=log), read_timeout_seconds=_CALL_TIMEOUT_S) as client:
        yield client


@dataclass(frozen=True, slots=True)
class Context:
    """One structured answer of `build_context`."""

    parts: dict[str, Any]

    def records(self, part: str) -> list[dict[str, Any]]:
        """The records of one part, in order."""
        return list(self.parts.get(part) or [])

    @property
    def tokens(self) -> int:
        """Tokens of the context as text, as the server counted them."""
        return int(self.parts.get("total_tokens") or 0)

    def shares(self, budget: int) -> Shares:
        """The tokens by part. The server reports only their sum, divided here by the lengths of the texts."""
        lengths = [
            sum(len(str(record.get(key) or "")) for record in self.records(part))
            for part, key in (
                ("recent_messages", "text"),
                ("semantic_pins", "content"),
                ("summaries", "summary"),
                ("relevant_messages", "text"),
            )
        ]
        recent, pins, summaries, found, _ = bar_cells(lengths, sum(lengths), self.tokens)
        return Shares(recent, pins, summaries, found, self.tokens, budget)

    def evidence_of(self, fact: str, ellipsis: str) -> tuple[str, str] | None:
        """The part that contains the fact, in words, and the sentence there; None if no part does."""
        for part, key, words in (
            ("semantic_pins", "content", "as a pin"),
            ("relevant_messages", "text", "found by the question's words"),
            ("summaries", "summary", "in a summary"),
            ("recent_messages", "text", "among the recent messages"),
        ):
            for record in self.records(part):
                if says(str(record.get(key) or ""), fact):
                    return words, excerpt(str(record.get(key)), fact, ellipsis)
        return None


class Served:
    """One session of the server, every round trip timed."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self.session_id = session_id
        self.took_ms: dict[str, list[float]] = {}

    async def call(self, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """The tool's text and its structured content.

        Raises:
            CallRefused: the server refused; the message is the server's.
        """
        started = time.perf_counter()
        result = await self._client.call_tool(tool, {"session_id": self.session_id, **arguments})
        self.took_ms.setdefault(tool, []).append((time.perf_counter() - started) * 1000)
        text = "\n".join(str(getattr(block, "text", "")) for block in result.content)
        if result.is_error:
            raise CallRefused(f"it refused {tool}: {text}")
        return text, dict(result.structured_content or {})

    async def context(self, max_tokens: int, **arguments: Any) -> Context:
        """A context with its parts."""
        _, parts = await self.call("build_context", max_tokens=max_tokens, format="structured", **arguments)
        return Context(parts)

    async def stats(self) -> dict[str, Any]:
        """The session's stats resource, never from the cache."""
        uri = f"memory://sessions/{self.session_id}/stats"
        result = await self._client.read_resource(uri, cache_mode="bypass")
        return dict(json.loads(str(getattr(result.contents[0], "text", "{}"))))

    def typical_ms(self, tool: str) -> float:
        """The median round trip of a tool."""
        return median(self.took_ms.get(tool) or [0.0])


def says(text: str, fact: str) -> bool:
    """Whether the text contains the fact, in any spacing and case."""
    return one_line(fact).lower() in one_line(text).lower()


def excerpt(text: str, fact: str, ellipsis: str) -> str:
    """The text on one line, from the sentence with the fact on. A long sentence starts some words before the fact. All
    of the text if it does not contain the fact."""
    line = one_line(text)
    at = line.lower().find(one_line(fact).lower())
    begins = max((line.rfind(end, 0, max(at, 0)) + len(end) for end in (". ", "! ", "? ", ": ")), default=0)
    if at - begins > _LEAD_IN:
        begins = line.rfind(" ", 0, at - _LEAD_IN // 2) + 1
    return f"{ellipsis} {line[begins:]}" if at > 0 and begins > 1 else line
