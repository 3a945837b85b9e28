"""Other memory servers next to this one: the same turns and questions through the same client, one after the other.

Each server of `bench/peer_servers.py` is installed from its package registry into the folder `--scratch` (a temporary
one by default; a kept one saves the next run the installation) and keeps its data there. A server that cannot be
installed, or that refuses a call, gets a row that says why. The client is the SDK's, over stdio.

For each of `--sizes` a server starts empty and gets that many turns: those of the data sets that `--bench-data` names
(see `bench/recall.py`), cut to 16,000 characters each, then synthetic ones. Without data sets all are synthetic.

- cold start: from the spawn to the first list of tools; the median of some starts.
- import: in the largest batches that the server takes, without what it owes afterwards.
- store one: single turns right after the import, while owed work goes on.
- search: questions, as they were asked, after the owed work has ended. CPU is that of the server with its children.
- found: the share of the questions with at least one turn of their evidence in the answer, in percent. `keyword` asks
  for the longest content word of the question instead, which is how a search for a substring wants to be asked.
- an answer: the length of its text; some hosts show the structured answer instead, which the JSON line has too.
- disk: all that the server wrote, after it has ended.

One JSON line for each server and size; the table goes to stderr. CPU and memory need /proc.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from bench.conversation import as_message
from bench.corpus import Corpus
from bench.growth import questions_of
from bench.peer_servers import EMPTY_CONFIGURATION, PEERS, Call, NotInstalled, Peer, Turn, is_inside_project, keys_in
from bench.peer_table import drawn, table
from bench.process_tree import children_of, cpu_s, tree_rss_mb
from bench.recall import conversation_limit, find_bench_data
from bench.report import emit, latency, options, progress
from kalito_mcp.text.analysis import STOP_WORDS

_SIZES: Final = (1_000, 5_000)
_QUICK_SIZES: Final = (300,)
_QUESTIONS: Final = 300
_QUICK_QUESTIONS: Final = 40
_STARTS: Final = 7
_SINGLES: Final = 100
_MOST_CHARS: Final = 16_000
_SESSION_TURNS: Final = 40
_WARM_UP: Final = 5
_IDLE_S: Final = 2.0
# The server is idle when it used less than two clock ticks in this time.
_QUIET_S, _QUIET_CPU_S, _OWED_LIMIT_S = 1.0, 0.02, 300.0
_CALL_LIMIT_S: Final = 300.0
_LOG: Final = "stderr.log"
_WORD: Final = re.compile(r"\w+")


class Refused(Exception):
    """The server answered a call with an error, which is the message."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the keys of its evidence."""

    text: str
    evidence: frozenset[str]

    @property
    def keyword(self) -> str:
        """The longest word that is no function word; of equals the first. The whole text if there is none."""
        words = [word for word in _WORD.findall(self.text) if word.lower() not in STOP_WORDS]
        return max(words, key=len, default=self.text)


def real_turns(conversations: Sequence[Mapping[str, Any]]) -> dict[str, Turn]:
    """The turns of the conversations by `conversation/turn`, numbered in their order."""
    turns: dict[str, Turn] = {}
    for one in conversations:
        speakers: dict[str, str] = {}
        for place, turn in enumerate(one["turns"]):
            message = as_message(turn, place, speakers)
            turns[f"{one['id']}/{turn['id']}"] = Turn(
                key=_key(len(turns)),
                conversation=str(one["id"]),
                role=message["role"],
                speaker=message.get("name", message["role"]),
                text=message["text"][:_MOST_CHARS],
                created_at=message.get("created_at"),
            )
    return turns


def synthetic_turns(first: int) -> Iterator[Turn]:
    """Turns without end, numbered from `first`."""
    corpus = Corpus()
    place = first
    while True:
        role = ("user", "assistant")[place % 2]
        yield Turn(_key(place), f"made-{place // _SESSION_TURNS}", role, role, corpus.text())
        place += 1


def synthetic_questions(turns: Sequence[Turn], count: int) -> list[Question]:
    """Questions by the two longest words of a turn."""
    asked = random.Random(5).sample(turns, min(count, len(turns)))
    words = [sorted(dict.fromkeys(_WORD.findall(turn.text)), key=len)[-2:] for turn in asked]
    return [
        Question(f"What was that about {' and '.join(pair)}?", frozenset({turn.key}))
        for turn, pair in zip(asked, words, strict=True)
    ]


def _key(place: int) -> str:
    return f"turn-{place:06}"


class Server:
    """One running server, connected."""

    def __init__(self, peer: Peer, client: Client, process_id: int | None) -> None:
        self.peer = peer
        self.process_id = process_id
        self._client = client

    def cpu_s(self) -> float:
        """Processor time of the server so far, 0 where the system does not tell."""
        return (self.process_id and cpu_s(self.process_id)) or 0.0

    def rss_mb(self) -> float | None:
        """Its memory now."""
        return tree_rss_mb(self.process_id) if self.process_id else None

    async def call(self, call: Call) -> tuple[str, str]:
        """The text and the structured content (JSON, empty if there is none) of the answer.

        Raises:
            Refused: the tool answered with an error.
        """
        tool, arguments = call
        result = await self._client.call_tool(tool, arguments)
        text = "\n".join(part.text for part in result.content if part.type == "text")
        if result.is_error:
            raise Refused(f"{tool}: {' '.join(text.split())[:200]}")
        structured = result.structured_content
        return text, json.dumps(structured, ensure_ascii=False) if structured else ""

    async def store(self, turns: Sequence[Turn]) -> int:
        """Store the turns in one call. Returns how many the server refused because it has their text: all or none.

        Raises:
            Refused: the tool answered with another error.
        """
        try:
            await self.call(self.peer.store(turns))
        except Refused as error:
            if not self.peer.already or self.peer.already not in str(error):
                raise
            return len(turns)
        return 0

    async def timed(self, call: Call) -> float:
        """The seconds of a call."""
        started = time.perf_counter()
        await self.call(call)
        return time.perf_counter() - started

    async def idle(self) -> None:
        """Wait until it does nothing more, but not for ever."""
        limit = time.monotonic() + _OWED_LIMIT_S
        before = self.cpu_s()
        while time.monotonic() < limit:
            await anyio.sleep(_QUIET_S)
            now = self.cpu_s()
            if now - before < _QUIET_CPU_S:
                return
            before = now


@asynccontextmanager
async def started(peer: Peer, command: Sequence[str], data: Path) -> AsyncIterator[Server]:
    """The server on this data folder. Its first list of tools has been answered."""
    environment = peer.environment(data)
    before = children_of(os.getpid())
    server = StdioServerParameters(command=command[0], args=list(command[1:]), env=environment, cwd=data)
    with (data.parent / _LOG).open("a", encoding="utf-8") as log:
        async with Client(stdio_client(server, errlog=log), read_timeout_seconds=_CALL_LIMIT_S) as client:
            await client.list_tools()
            yield Server(peer, client, max(children_of(os.getpid()) - before, default=None))


async def cold_starts(peer: Peer, command: Sequence[str], folder: Path, count: int) -> dict[str, Any]:
    """Medians of `count` starts on empty data, after one that is not counted: it compiles what is not compiled."""
    took: list[float] = []
    cpu: list[float] = []
    async with started(peer, command, _fresh(folder)):
        pass
    for _ in range(count):
        data = _fresh(folder)
        began = time.perf_counter()
        async with started(peer, command, data) as server:
            took.append(time.perf_counter() - began)
            cpu.append(server.cpu_s())
    return {"cold_start_s": statistics.median(took), "cold_start_cpu_s": statistics.median(cpu)}


async def filled(
    server: Server, turns: Sequence[Turn], singles: Sequence[Turn], questions: Sequence[Question]
) -> dict[str, Any]:
    """The figures of one server from its idle state to the last search."""
    store, search, duplicates = server.peer.store, server.peer.search, 0
    await anyio.sleep(_IDLE_S)
    figures: dict[str, Any] = {"rss_idle_mb": server.rss_mb()}
    cpu_at, began = server.cpu_s(), time.perf_counter()
    for _, of_one in groupby(turns, lambda turn: turn.conversation):
        rest = iter(of_one)
        while batch := list(islice(rest, server.peer.batch)):
            duplicates += await server.store(batch)
    figures["duplicates"] = duplicates
    figures["import_per_s"] = len(turns) / (time.perf_counter() - began)
    figures["store"] = latency([await server.timed(store([turn])) for turn in singles])
    await server.idle()
    figures["cpu_a_turn_ms"] = 1000 * (server.cpu_s() - cpu_at) / (len(turns) + len(singles))
    # Some servers make their index when they are first asked.
    figures["first_search_s"] = await server.timed(search(questions[0].text))
    for question in questions[:_WARM_UP]:
        await server.call(search(question.text))
    for way in ("question", "keyword"):
        figures[way] = await asked(server, questions, way)
    return figures | {"rss_full_mb": server.rss_mb()}


async def asked(server: Server, questions: Sequence[Question], way: str) -> dict[str, Any]:
    """Times, lengths and hits of the answers. `way` is `question` or `keyword`."""
    times, texts, structures, found, silent = [], [], [], 0, 0
    peer = server.peer
    cpu_at = server.cpu_s()
    for question in questions:
        call = peer.search(question.text) if way == "question" else (peer.look_up or peer.search)(question.keyword)
        began = time.perf_counter()
        text, structured = await server.call(call)
        times.append(time.perf_counter() - began)
        texts.append(len(text.encode()))
        structures.append(len(structured.encode()))
        keys = keys_in(text + structured)
        found += bool(keys & question.evidence)
        silent += not keys
    return {
        **latency(times),
        "cpu_ms": 1000 * (server.cpu_s() - cpu_at) / len(questions),
        "found": 100 * found / len(questions),
        "silent": 100 * silent / len(questions),
        "text_kb": statistics.fmean(texts) / 1000,
        "longest_text_kb": max(texts) / 1000,
        "structured_kb": statistics.fmean(structures) / 1000,
    }


def _fresh(folder: Path) -> Path:
    """The data folder in `folder`, with nothing but an empty configuration for this project's server."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    (data / EMPTY_CONFIGURATION).touch()
    return data


@dataclass(frozen=True, slots=True)
class Contest:
    """What every server gets. `turns` are those of the data sets, `found_in` their questions."""

    turns: Sequence[Turn]
    found_in: Sequence[Question]
    most_questions: int

    def of_size(self, size: int) -> tuple[list[Turn], list[Turn], list[Question]]:
        """The turns to import, those to store one by one, and the questions about the imported ones."""
        made = synthetic_turns(len(self.turns))
        turns = [*self.turns[:size], *islice(made, max(0, size - len(self.turns)))]
        keys = {turn.key for turn in turns}
        fitting = [question for question in self.found_in if question.evidence <= keys]
        if not self.turns:
            return turns, list(islice(made, _SINGLES)), synthetic_questions(turns, self.most_questions)
        questions = random.Random(5).sample(fitting, min(self.most_questions, len(fitting)))
        return turns, list(islice(made, _SINGLES)), questions

    async def of_peer(self, peer: Peer, scratch: Path, size: int, starts: int) -> dict[str, Any]:
        """The row of a server. One that fails has `why` instead of figures."""
        turns, singles, questions = self.of_size(size)
        row = {"name": peer.name, "package": peer.package, "note": peer.note, "turns": size, "asked": len(questions)}
        folder = scratch / peer.name
        try:
            command = peer.install(scratch)
            figures = await cold_starts(peer, command, folder, starts)
            async with started(peer, command, data := _fresh(folder)) as server:
                figures |= await filled(server, turns, singles, questions)
        except NotInstalled as error:
            return row | {"why": f"not installed: {error}"}
        except Exception as error:
            return row | {"why": f"stopped: {_first(error)}"}
        written = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
        text = sum(len(turn.spoken.encode()) for turn in (*turns, *singles))
        return row | figures | {"disk_mb": written / 1e6, "disk_ratio": written / text}


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def contest_of(given: argparse.Namespace, parser: argparse.ArgumentParser) -> Contest:
    """The turns and questions of the data sets, or none, which makes all synthetic."""
    most = given.questions or (_QUICK_QUESTIONS if given.quick else _QUESTIONS)
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        progress("peers: all turns are synthetic")
        return Contest((), (), most)
    conversations = [
        one
        for name in bench_data.names(given.data)
        for one in bench_data.load(name, conversation_limit(given))["conversations"]
    ]
    turns = real_turns(conversations)
    questions = [
        Question(one["text"], frozenset(turns[place].key for place in one["evidence"] if place in turns))
        for one in questions_of(bench_data, conversations)
    ]
    return Contest(list(turns.values()), questions, most)


def run(given: argparse.Namespace, contest: Contest, scratch: Path) -> list[dict[str, Any]]:
    """All rows. Each is printed when it is there."""
    rows = []
    sizes = given.sizes or (_QUICK_SIZES if given.quick else _SIZES)
    for size in sizes:
        for peer in [peer for peer in PEERS if not given.only or peer.name in given.only]:
            progress(f"peers: {peer.name}, {size} turns")
            row = anyio.run(contest.of_peer, peer, scratch, size, given.starts)
            emit("peers", row)
            rows.append(row)
        progress("\n".join(["", f"{size} turns", "", *table([row for row in rows if row["turns"] == size]), ""]))
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--bench-data", type=Path, metavar="FOLDER", help="the folder with bench/recall.py and data/")
    parser.add_argument("--data", nargs="+", default=[], metavar="NAME", help="data sets (default all of the usual)")
    parser.add_argument("--conversations", type=int, help="only the first of each data set (default all, quick 2)")
    parser.add_argument("--scratch", type=Path, metavar="FOLDER", help="install and run there (default temporary)")
    parser.add_argument("--sizes", type=int, nargs="+", help=f"turns (default {_SIZES}, quick {_QUICK_SIZES})")
    parser.add_argument("--questions", type=int, help=f"at most (default {_QUESTIONS}, quick {_QUICK_QUESTIONS})")
    parser.add_argument("--starts", type=int, default=_STARTS, help=f"cold starts of each (default {_STARTS})")
    parser.add_argument("--only", nargs="+", choices=[peer.name for peer in PEERS], help="these servers (default all)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the costs against the size as an SVG")
    given = parser.parse_args()
    contest = contest_of(given, parser)
    if given.scratch and is_inside_project(given.scratch):
        parser.error("--scratch is inside the project; name a folder elsewhere")
    with tempfile.TemporaryDirectory() as temporary:
        rows = run(given, contest, (given.scratch or Path(temporary)).resolve())
    if given.plot:
        given.plot.write_text(drawn(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
