"""How much of the evidence for an answer does a search find? Real conversations, compared with bm25() of FTS5.

The data sets and the scorer are not part of this project. They are in a folder with `bench/recall.py` and `data/`: the
one that `--bench-data` or `KALITO_BENCH_DATA` names, otherwise `shared` next to the repository. Without it nothing is
measured, and a line on stderr says so. R@k is the share of a question's evidence turns among the first k, averaged over
the questions.

`--in-process` (the default) opens each conversation as a memory of its own, waits for its owed work, and searches it.
`--stdio` asks a server as an assistant would. `fts5` is a table of the stemmed texts, asked for any word of the
question except function words. `--typos 0.5` asks everything again with a mistake in half of the longer words.
`--ablate` sets each weight of the formula to 0 in turn; `change` is the effect on R@10, in points.

Latencies are of searches for `--depth` hits, and over stdio of the whole call. Messages may have 1 MiB, because some
messages of the data sets exceed the default limit.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final, Self
from unittest.mock import AsyncMock, patch

from anyio.from_thread import BlockingPortal, start_blocking_portal

from bench.conversation import as_message
from bench.report import ROOT, emit, latency, options, progress
from bench.stores import address_of
from bench.typos import misspelt
from bench.wire import clean_environment
from kalito_mcp import wiring
from kalito_mcp.config.settings import Settings, checked
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.search import SearchPage, SearchRequest
from kalito_mcp.domain.time import from_iso
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.memory import Memory
from kalito_mcp.retrieval import ranking
from kalito_mcp.retrieval.formula import WITH_VECTORS, Weights
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.runtime.database_address import DatabaseAddress
from kalito_mcp.upkeep.answer_log import UsagePolicy
from kalito_mcp.upkeep.store_layers import StoreLayer

FOLDER_VARIABLE: Final = "KALITO_BENCH_DATA"
DATA_SETS: Final = ("locomo-dev", "beam100k-dev")
_SCORER: Final = Path("bench", "recall.py")
_DATA: Final = Path("data")
_FTS5: Final = {"stop": 1}
_DEPTH: Final = 100
_BATCH: Final = 200
_QUICK_CONVERSATIONS: Final = 2
_METRICS: Final = ("R@5", "R@10")
_OVERALL: Final = "overall"
_SEED: Final = 1
_TERMS: Final = tuple(one.name for one in fields(Weights) if one.name != "full")
_LIMITS: Final = LimitsPolicy(max_text_bytes=2**20)


@dataclass(frozen=True, slots=True)
class BenchData:
    """A folder with data sets and their scorer."""

    folder: Path
    scorer: ModuleType

    @classmethod
    def load_from(cls, folder: Path) -> Self | None:
        """The data in this folder. None if it has no scorer."""
        if not (folder / _SCORER).is_file():
            return None
        spec = importlib.util.spec_from_file_location("shared_recall", folder / _SCORER)
        assert spec is not None and spec.loader is not None
        scorer = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(scorer)
        return cls(folder, scorer)

    def names(self, wanted: Sequence[str]) -> list[str]:
        """The requested data sets, or the usual ones that exist."""
        return list(wanted) or [name for name in DATA_SETS if (self.folder / _DATA / f"{name}.json").is_file()]

    def load(self, name: str, conversations: int | None) -> dict[str, Any]:
        """A data set, or its first conversations."""
        loaded: dict[str, Any] = self.scorer.load_data(name)
        return {**loaded, "conversations": loaded["conversations"][:conversations]}


def find_bench_data(parser: argparse.ArgumentParser, folder: Path | None) -> BenchData | None:
    """The data that the command line, the environment or the neighbouring folder names.

    None, after a message on stderr, if there is none. A wrong folder on the command line ends the program.
    """
    usual = os.environ.get(FOLDER_VARIABLE)
    bench_data = BenchData.load_from(folder or (Path(usual) if usual else ROOT.parent / "shared"))
    if bench_data is None and folder is not None:
        parser.error(f"--bench-data has no {_SCORER.as_posix()}; name the folder that contains bench/ and data/")
    if bench_data is None:
        progress(f"no conversations to search: name their folder with --bench-data or {FOLDER_VARIABLE}")
    return bench_data


def bench_data_options(doc: str | None) -> argparse.ArgumentParser:
    """The command line of a benchmark that uses these data sets."""
    parser = options(doc)
    parser.add_argument("--bench-data", type=Path, metavar="FOLDER", help="the folder with bench/recall.py and data/")
    parser.add_argument("--data", nargs="+", default=[], metavar="NAME", help=f"(default {' '.join(DATA_SETS)})")
    parser.add_argument("--conversations", type=int, help="only the first of each data set (default all, quick 2)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the section `search`")
    return parser


def conversation_limit(given: argparse.Namespace) -> int | None:
    """The number of conversations of each data set. None means all."""
    count: int | None = given.conversations
    return count or (_QUICK_CONVERSATIONS if given.quick else None)


def pairs(given: Sequence[str], parser: argparse.ArgumentParser) -> dict[str, str]:
    """`key=value` pairs as a mapping."""
    for one in given:
        if "=" not in one:
            parser.error(f"{one!r} is no setting; write key=value")
    return dict(one.split("=", 1) for one in given)


class Memories:
    """One database a conversation. It is filled when it is first opened and reused by the next configuration."""

    def __init__(self, folder: Path, portal: BlockingPortal) -> None:
        self._folder = folder
        self._portal = portal
        self._filled = set[DatabaseAddress]()

    @contextmanager
    def opened(
        self, turns: Sequence[Mapping[str, Any]], search: SearchPolicy, weights: Weights | None = None
    ) -> Iterator[Memory]:
        """The conversation's memory with this search policy, and with these weights if they are given."""
        name = hashlib.blake2b(json.dumps(turns).encode(), digest_size=8).hexdigest()
        database = self._portal.call(address_of, self._folder / f"{name}.db")
        if database not in self._filled:
            self._portal.call(_fill, database, turns)
            self._filled.add(database)
        # The hits of one question must not rank higher for the next one.
        settings = replace(Settings(), database=database, search=search, usage=UsagePolicy(enabled=False))
        with ExitStack() as stack:
            if weights is not None:
                # There is no setting for the weights: they are measured, not chosen.
                stack.enter_context(patch.object(ranking, "WITH_VECTORS", weights))
            # The fence of a text has as many tokens in each run then, and a text that just fits always does.
            stack.enter_context(patch.object(StoreLayer, "secret", AsyncMock(return_value=bytes(16))))
            yield stack.enter_context(self._portal.wrap_async_context_manager(wiring.open_memory(None, settings)))

    def search(self, memory: Memory, text: str, k: int) -> tuple[SearchPage, float]:
        """The hits, and the seconds of the search."""
        return self._portal.call(_timed, memory, SearchRequest(text, k=k))


async def _fill(database: DatabaseAddress, turns: Sequence[Mapping[str, Any]]) -> None:
    sessions: dict[str, list[NewMessage]] = {}
    speakers: dict[str, str] = {}
    for place, turn in enumerate(turns):
        fields_ = as_message(turn, place, speakers)
        moment = fields_.pop("created_at", None)
        role = Role(fields_.pop("role"))
        message = NewMessage(role=role, created_at=None if moment is None else from_iso(moment), **fields_)
        sessions.setdefault(str(turn["session"]), []).append(message)
    async with wiring.open_memory(None, replace(Settings(), database=database, limits=_LIMITS)) as memory:
        for session, messages in sessions.items():
            for start in range(0, len(messages), _BATCH):
                await memory.record_messages(session, messages[start : start + _BATCH])
                await memory.settled()  # so that every run numbers messages and pins alike: numbers are in texts


async def _timed(memory: Memory, request: SearchRequest) -> tuple[SearchPage, float]:
    started = time.perf_counter()
    page = await memory.search_memory(request)
    return page, time.perf_counter() - started


@dataclass(slots=True)
class Retriever:
    """A conversation's memory with the interface of the scorer."""

    memories: Memories
    search_policy: SearchPolicy
    weights: Weights | None
    times_s: list[float]
    _stack: ExitStack = field(default_factory=ExitStack)
    _memory: Memory | None = None

    def index(self, turns: Sequence[Mapping[str, Any]]) -> None:
        """Open it."""
        opened = self.memories.opened(turns, self.search_policy, self.weights)
        self._memory = self._stack.enter_context(opened)

    def search(self, text: str, k: int, ts: str = "") -> list[str]:
        """The turns of the hits, best first. A hit that is no message has no turn."""
        assert self._memory is not None
        page, took_s = self.memories.search(self._memory, text, k)
        self.times_s.append(took_s)
        return list(dict.fromkeys(hit.client_key for hit in page.hits if hit.client_key))

    def close(self) -> None:
        """Close it."""
        self._stack.close()


class Campaign:
    """Runs of the questions of one folder. Entering the block makes room for the memories."""

    def __init__(self, bench_data: BenchData, *, depth: int, is_by_category: bool) -> None:
        self._bench_data = bench_data
        self._depth = depth
        self._is_by_category = is_by_category
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._environment = clean_environment(folder)
        self._memories = Memories(folder, self._stack.enter_context(start_blocking_portal()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def in_process(
        self, asked: Mapping[str, Any], search: SearchPolicy, weights: Weights | None = None
    ) -> dict[str, Any]:
        """The result of memories in this process."""
        times_s: list[float] = []
        result = self._bench_data.scorer.run(
            asked, partial(Retriever, self._memories, search, weights, times_s), {}, depth=self._depth
        )
        return self._figures(result) | {name: latency(times_s)[name] for name in ("p50_ms", "p95_ms")}

    def over_stdio(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a server. Only its own settings reach it."""
        set_ = {"KALITO_MEMORY_MAX_TEXT_BYTES": str(_LIMITS.max_text_bytes)}
        command = shlex.join([sys.executable, "-m", "kalito_mcp", "serve"])
        with patch.dict(os.environ, {**self._environment, **set_}, clear=True):
            return self._other(asked, "memory_server", {"command": command})

    def fts5(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The result of plain FTS5."""
        return self._other(asked, "fts5", _FTS5)

    def _other(self, asked: Mapping[str, Any], name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        build = self._bench_data.scorer.load_retriever(name).build
        result = self._bench_data.scorer.run(asked, build, dict(parameters), depth=self._depth)
        return self._figures(result) | {"p50_ms": result["query_ms_p50"], "p95_ms": result["query_ms_p95"]}

    def _figures(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """In percent, as the table shows it."""
        of = result["by_category"]
        # The scorer's halves are of the whole data set. Here they are of the loaded part.
        shown = [name for name in of if self._is_by_category and not name.startswith(_OVERALL)] + [_OVERALL]
        table = {name: {"n": of[name]["n"]} | {one: 100 * of[name][one] for one in _METRICS} for name in shown}
        figures = dict(table.pop(_OVERALL))
        return figures | ({"by_category": table} if table else {})


def mistyped(asked: Mapping[str, Any], share: float) -> dict[str, Any]:
    """The data set with typing mistakes in its questions."""
    return {
        **asked,
        "conversations": [
            {
                **one,
                "questions": [
                    {**question, "text": misspelt(question["text"], share, _SEED)} for question in one["questions"]
                ],
            }
            for one in asked["conversations"]
        ],
    }


def ablated(weights: Weights) -> Iterator[tuple[str, Weights]]:
    """The weights with one of them set to 0, for each that is not 0."""
    for term in _TERMS:
        if getattr(weights, term):
            without: dict[str, float] = {term: 0.0}
            yield term, replace(weights, **without)


def weights_with(changed: Mapping[str, float], parser: argparse.ArgumentParser) -> Weights:
    """The shipped weights, with these replaced."""
    if unknown := changed.keys() - set(_TERMS):
        parser.error(f"no weight is called {', '.join(sorted(unknown))}; there are {', '.join(_TERMS)}")
    return replace(WITH_VECTORS, **changed)


def measure(
    campaign: Campaign,
    asked: Mapping[str, Any],
    given: argparse.Namespace,
    set_: Mapping[str, str],
    weights: Weights | None,
) -> dict[str, Any]:
    """The figures of one data set."""
    search = checked(SearchPolicy, set_, "search.{}".format)
    versions = {"": asked} | ({"typos": mistyped(asked, given.typos)} if given.typos else {})
    figures: dict[str, Any] = {}
    for version, questions in versions.items():
        ours = campaign.over_stdio(questions) if given.stdio else campaign.in_process(questions, search, weights)
        figures[_joined("kalito", version)] = ours
        figures[_joined("fts5", version)] = campaign.fts5(questions)
        for name, without in ablated(weights or WITH_VECTORS) if given.ablate else ():
            found = campaign.in_process(questions, search, without)
            figures[_joined(f"without {name}", version)] = found | {"change": found["R@10"] - ours["R@10"]}
    if given.typos:
        for name in ("kalito", "fts5"):
            figures[f"{name} lost to typos"] = {
                one: figures[name][one] - figures[_joined(name, "typos")][one] for one in _METRICS
            }
    return figures


def _joined(name: str, version: str) -> str:
    return f"{name}, {version}" if version else name


def table(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The figures as lines of text."""
    columns = ("n", *_METRICS, "change", "p50_ms", "p95_ms")
    yield f"{'':32}" + "".join(f"{column:>9}" for column in columns)
    for name, row in figures.items():
        for label, one in {name: row, **{f"  {part}": of for part, of in row.get("by_category", {}).items()}}.items():
            cells = (f"{one[column]:>9.1f}" if column in one else f"{'':9}" for column in columns[1:])
            yield f"{label:32}{one.get('n', ''):>9}" + "".join(cells)


def main() -> None:
    """Run the benchmark."""
    parser = bench_data_options(__doc__)
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--in-process", action="store_true", help="search memories in this process (default)")
    way.add_argument("--stdio", action="store_true", help="ask a server, through the scorer's own client")
    parser.add_argument(
        "--typos", type=float, default=0.0, metavar="SHARE", help="share of the longer words that get one mistake each"
    )
    parser.add_argument("--per-category", action="store_true", help="also the figures of each kind of question")
    parser.add_argument("--depth", type=int, default=_DEPTH, help=f"hits a search (default {_DEPTH})")
    parser.add_argument("--weight", nargs="+", default=[], metavar="NAME=VALUE", help="weights of the formula")
    parser.add_argument("--ablate", action="store_true", help="set each weight to 0 in turn")
    given = parser.parse_args()
    if given.stdio and (given.ablate or given.weight):
        parser.error("weights are set in process only; leave --stdio out")
    set_ = pairs(given.set, parser)
    changed = {name: float(value) for name, value in pairs(given.weight, parser).items()}
    weights = weights_with(changed, parser) if changed else None
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        return
    figures: dict[str, Any] = {"set": set_, "weights": changed, "typos": given.typos, "stdio": given.stdio, "data": {}}
    with Campaign(bench_data, depth=given.depth, is_by_category=given.per_category) as campaign:
        for name in bench_data.names(given.data):
            asked = bench_data.load(name, conversation_limit(given))
            figures["data"][name] = measure(campaign, asked, given, set_, weights)
            progress("\n".join([f"recall: {name}", *table(figures["data"][name])]))
    emit("recall", figures)


if __name__ == "__main__":
    main()
