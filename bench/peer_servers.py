"""Memory servers from package registries: how each is installed, started, told a turn and asked. Installs on request.

One row of `PEERS` a server. A row names the tool calls that a host would make, taken from the server's own list of
tools. Where a server has several searches, a question goes to the one that finds most with a question, and a single
word to the one that finds most with a word. Versions are pinned, so that two runs compare the same servers.

Every turn is stored with its key (`turn-000042`) in a field of the server that its search returns. That tells which
turns are in an answer, whatever the answer looks like.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.report import ROOT

EMPTY_CONFIGURATION: Final = "empty.toml"
_INSTALL_LIMIT_S: Final = 900
_HITS: Final = 10
_UNSAFE: Final = re.compile(r"[^\w.]+")
_KEY: Final = re.compile(r"turn-\d{6}")
_EXTENSIONS: Final = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)"
_OTHERS_SETTINGS: Final = (
    "KALITO_",
    "CLAUDE",
    "MCP_",
    "MEMORY_",
    "AGENTMEMORY_",
    "STANDALONE_",
    "DATA_DIR",
    "XDG_",
    "PYTHON",
)

Call = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


class NotInstalled(Exception):
    """The server cannot be installed here. The message says why."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn under a key that is unique in a run."""

    key: str
    conversation: str
    role: str
    speaker: str
    text: str
    created_at: str | None = None

    @property
    def spoken(self) -> str:
        """The text after its speaker, for servers without a field for the speaker."""
        return f"{self.speaker}: {self.text}"


@dataclass(frozen=True, slots=True)
class Peer:
    """A server. `batch` is how many turns of one conversation a call of `store` takes at most."""

    name: str
    package: str
    registry: str
    """`npm`, `pypi`, or empty if it runs from this interpreter."""
    program: str
    """Relative to the folder of the installation."""
    store: Callable[[Sequence[Turn]], Call]
    search: Callable[[str], Call]
    look_up: Callable[[str], Call] | None = None
    """Searches for one word, where the server has another tool for it."""
    batch: int = 1
    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] | None = None
    """Environment variables that name a file or folder, relative to the server's data."""
    settings: Mapping[str, str] | None = None
    already: str = ""
    """What its refusal says of a text that it has already. Such a turn counts as stored, without its own key."""
    note: str = ""

    def install(self, scratch: Path) -> list[str]:
        """The command line of the server. Installs its package under `scratch` unless it is there.

        Raises:
            NotInstalled: the installer is missing, failed, or took too long.
        """
        if not self.registry:
            return [sys.executable, *self.arguments]
        # One folder a version: a kept scratch folder must not bring another version than the row says.
        folder = scratch / self.name / _UNSAFE.sub("-", self.package)
        program = folder / self.program
        if not program.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _INSTALLERS[self.registry](folder, self.package)
        if not program.exists():
            raise NotInstalled(f"{self.package} has no {self.program}")
        return [str(program), *self.arguments]

    def environment(self, data: Path) -> dict[str, str]:
        """The environment of a server that keeps everything in the folder `data`, also what it puts at home."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OTHERS_SETTINGS)}
        # An installed package has its bytecode; this repository may not have it yet, and must not be written to.
        compiled = {"PYTHONPYCACHEPREFIX": str(data.parent / "bytecode")}
        files = {name: str(data / file) for name, file in (self.files or {}).items()}
        return {**kept, **compiled, "HOME": str(data), **files, **(self.settings or {})}


def keys_in(answer: str) -> set[str]:
    """The keys of the turns in an answer."""
    return set(_KEY.findall(answer))


def _npm(folder: Path, package: str) -> None:
    _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package], folder)


def _pypi(folder: Path, package: str) -> None:
    _run([_python_with_extensions(), "-m", "venv", "--without-pip", str(folder)], folder)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    _run([*pip, "install", "--quiet", "--no-input", package], folder)


_INSTALLERS: Final = {"npm": _npm, "pypi": _pypi}


def _python_with_extensions() -> str:
    """An interpreter whose sqlite3 loads extensions, which some servers need. This one if there is no better."""
    for program in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        if program and subprocess.run([program, "-c", _EXTENSIONS], capture_output=True, check=False).returncode == 0:
            return program
    return sys.executable


def _run(command: Sequence[str], folder: Path) -> None:
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_INSTALL_LIMIT_S
        )
    except FileNotFoundError:
        raise NotInstalled(f"there is no {name}") from None
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{name} took more than {_INSTALL_LIMIT_S} s") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if "error" in line.lower()]
        reason = (lines or done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        raise NotInstalled(f"{name}: {reason.replace(str(folder), '.')}")


def _kalito_store(turns: Sequence[Turn]) -> Call:
    messages = [
        {"role": turn.role, "text": turn.text, "client_key": turn.key}
        | ({} if turn.speaker == turn.role else {"name": turn.speaker})
        | ({"created_at": turn.created_at} if turn.created_at else {})
        for turn in turns
    ]
    return "record_messages", {"session_id": turns[0].conversation, "messages": messages}


def _entities(turns: Sequence[Turn]) -> Call:
    entities = [{"name": turn.key, "entityType": "turn", "observations": [turn.spoken]} for turn in turns]
    return "create_entities", {"entities": entities}


def _items(turns: Sequence[Turn]) -> Call:
    return "context_batch_save", {"items": [{"key": turn.key, "value": turn.spoken} for turn in turns]}


def _saved(turns: Sequence[Turn]) -> Call:
    return "memory_save", {"content": turns[0].spoken, "concepts": turns[0].key}


def _stored(turns: Sequence[Turn]) -> Call:
    [turn] = turns
    # Without a conversation it refuses what resembles an older memory.
    tagged = {"conversation_id": turn.conversation, "metadata": {"tags": [turn.key]}}
    return "memory_store", {"content": turn.spoken, **tagged}


KALITO: Final = Peer(
    name="kalito-mcp",
    package="kalito-mcp",
    registry="",
    program="",
    arguments=("-m", "kalito_mcp", "serve"),
    files={"KALITO_DATABASE": "memory.db", "KALITO_CONFIG": EMPTY_CONFIGURATION},
    store=_kalito_store,
    search=lambda query: ("search_memory", {"query": query, "k": _HITS}),
    batch=1_000,
)
PEERS: Final = (
    KALITO,
    Peer(
        name="server-memory",
        package="@modelcontextprotocol/server-memory@2026.8.31",
        registry="npm",
        program="node_modules/.bin/mcp-server-memory",
        files={"MEMORY_FILE_PATH": "memory.jsonl"},
        store=_entities,
        search=lambda query: ("search_nodes", {"query": query}),
        batch=1_000,
        note="one entity a turn; its search looks for the whole query as one substring and has no limit",
    ),
    Peer(
        name="memory-keeper",
        package="mcp-memory-keeper@0.14.1",
        registry="npm",
        program="node_modules/.bin/mcp-memory-keeper",
        files={"DATA_DIR": "."},
        store=_items,
        search=lambda query: ("context_semantic_search", {"query": query, "topK": _HITS}),
        look_up=lambda word: ("context_search_all", {"query": word, "limit": _HITS}),
        batch=100,
        note="its search compares hashed character trigrams; of each hit it returns 200 characters",
    ),
    Peer(
        name="agentmemory",
        package="@agentmemory/mcp@0.9.29",
        registry="npm",
        program="node_modules/.bin/agentmemory-mcp",
        # Otherwise it looks for a running agentmemory on its usual port, and the turns would go into that one.
        settings={"AGENTMEMORY_URL": "http://127.0.0.1:9"},
        store=_saved,
        search=lambda query: ("memory_smart_search", {"query": query, "limit": _HITS}),
        note="standalone, without its separate engine; its search wants every word of the query",
    ),
    Peer(
        name="memory-service",
        package="mcp-memory-service==12.2.0",
        registry="pypi",
        program="bin/memory",
        arguments=("server",),
        files={"MCP_MEMORY_BASE_DIR": ".", "MCP_MEMORY_SQLITE_PATH": "memory.db"},
        store=_stored,
        search=lambda query: ("memory_search", {"query": query, "limit": _HITS, "mode": "hybrid"}),
        look_up=lambda word: ("memory_search", {"query": word, "limit": _HITS, "mode": "exact"}),
        already="Duplicate content detected",
        note="as its package installs, which is without an embedding model: it falls back to hashed words",
    ),
)


def is_inside_project(folder: Path) -> bool:
    """Whether the folder is in this repository."""
    return folder.resolve().is_relative_to(ROOT)
