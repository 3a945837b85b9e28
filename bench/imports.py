"""The import of 100,000 turns: transcripts of Claude Code and Codex, half of each, in 200 conversations.

The texts are made up, or with `--bench-data` those of the data sets of `bench.recall`, over and over. `reader` reads
them without a memory: processor time, and the peak of the process. `import` is `kalito-mcp import` as a process of its
own, with a home folder that has only these transcripts; `again` the same once more, which must change nothing.

Then the same import is killed with SIGKILL at random moments, twenty times, on one database, and at last runs to its
end. Sessions, projects, messages, their order, keys and times, and what is noted of the files, must have the same
digest as without a kill, and the deep inspection must find nothing. Otherwise it is a violation.
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import START_MS, Corpus
from bench.recall import bench_data_options, conversation_limit, find_bench_data
from bench.report import ROOT, emit, progress
from bench.wire import clean_environment, memory_command
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.time import to_iso
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.sources import SOURCES
from kalito_mcp.storage.sqlite.inspection import inspect

TARGETS: Final = {"reader_cpu_s": 10.0, "rss_mb": 200.0, "violations": 0}
_TURNS_A_SESSION: Final = 500
_PROJECTS: Final = 7
_KILLS, _QUICK_KILLS = 20, 3
_LOOK_S: Final = 0.05
_READ: Final = "--read"
_SELECT_ALL: Final = """
SELECT s.id, p.id, r.seq, r.role, r.text, r.client_key, r.created_at, r.purged_at IS NULL FROM records r
JOIN sessions s ON s.key = r.session_key LEFT JOIN projects p ON p.key = s.project_key
WHERE r.type = 'message' ORDER BY s.id, r.seq
"""
_SELECT_FILES: Final = "SELECT source, place, size, read_to, fingerprint FROM imports ORDER BY source, place"


def write_transcripts(home: Path, texts: Iterator[str], turns: int) -> float:
    """Transcripts in a home folder. Returns their megabytes."""
    size = 0
    for session, first in enumerate(range(0, turns, _TURNS_A_SESSION)):
        session_id = f"{session:08x}-0000-4000-8000-000000000000"
        folder = f"/home/ann/project{session % _PROJECTS}"
        said = [
            (place, ("user", "assistant")[place % 2], next(texts), to_iso(START_MS + place * 60_000))
            for place in range(first, min(first + _TURNS_A_SESSION, turns))
        ]
        if session % 2:
            path = (
                home / ".codex" / "sessions" / "2026" / "03" / "01" / f"rollout-2026-03-01T10-00-00-{session_id}.jsonl"
            )
            records = _codex(session_id, folder, said)
        else:
            path = home / ".claude" / "projects" / folder.replace("/", "-") / f"{session_id}.jsonl"
            records = _claude(session_id, folder, said)
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = "".join(f"{json.dumps(record)}\n" for record in records)
        path.write_text(raw, encoding="utf-8")
        size += len(raw)
    return size / 1e6


def _claude(session_id: str, folder: str, said: Sequence[tuple[int, str, str, str]]) -> Iterator[dict[str, Any]]:
    before = None
    for place, role, text, at in said:
        uuid = f"{place:08x}-1111-4000-8000-000000000000"
        content = text if role == "user" else [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
        common = {"uuid": uuid, "parentUuid": before, "sessionId": session_id, "cwd": folder, "timestamp": at}
        yield {"type": role, "isSidechain": False, **common, "message": {"role": role, "content": content}}
        before = uuid


def _codex(session_id: str, folder: str, said: Sequence[tuple[int, str, str, str]]) -> Iterator[dict[str, Any]]:
    yield {"timestamp": said[0][3], "type": "session_meta", "payload": {"id": session_id, "cwd": folder}}
    for _, role, text, at in said:
        kind = "input_text" if role == "user" else "output_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        yield {"timestamp": at, "type": "response_item", "payload": payload}
        event = f"{'user' if role == 'user' else 'agent'}_message"
        yield {"timestamp": at, "type": "event_msg", "payload": {"type": event, "message": text}}


def read(home: Path) -> dict[str, Any]:
    """What the readers take for all files, in this process."""

    async def run() -> int:
        importer = Importer(None)
        for name in ("claude-code", "codex"):
            await importer.run(found_in(SOURCES[name], SOURCES[name].within(home)))
        return importer.report.messages

    started, started_cpu = time.perf_counter(), time.process_time()
    messages = anyio.run(run)
    cpu_s = time.process_time() - started_cpu
    return {"turns": messages, "cpu_s": cpu_s, "wall_s": time.perf_counter() - started, "rss_mb": peak_of(os.getpid())}


class Import:
    """`kalito-mcp import` as a process."""

    def __init__(self, home: Path, database: Path) -> None:
        self._command = [*memory_command(database)[:3], "import", "--database", str(database)]
        self._environment = clean_environment(database.parent) | {"HOME": str(home), "PYTHONPATH": str(ROOT)}

    def start(self) -> "subprocess.Popen[bytes]":
        """Start it. Nobody reads what it says."""
        return subprocess.Popen(
            self._command, env=self._environment, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def run(self) -> dict[str, float]:
        """Run it to its end."""
        started = time.perf_counter()
        child = self.start()
        peak_mb = 0.0
        while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
            peak_mb = peak_of(child.pid) or peak_mb
            time.sleep(_LOOK_S)
        _, status, usage = ended
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"the import ended with {child.returncode}")
        cpu_s = usage.ru_utime + usage.ru_stime
        return {"wall_s": time.perf_counter() - started, "cpu_s": cpu_s, "rss_mb": peak_mb}


def peak_of(process_id: int) -> float:
    """The peak of a process's resident memory so far. Its usage has that of the process that started it, too. 0 if the
    system does not say."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0.0)


def digest(database: Path) -> str:
    """Of all that was imported."""
    found = blake2b(digest_size=16)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        for statement in (_SELECT_ALL, _SELECT_FILES):
            for row in connection.execute(statement):
                found.update(repr(row).encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def messages(database: Path) -> int:
    """How many there are; 0 while there is no database."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM records WHERE type = 'message'").fetchone()[0])
    except sqlite3.Error:
        return 0


def faults(database: Path) -> list[str]:
    """What a deep inspection finds."""
    return [f"{one.check}: {one.detail}" for one in inspect(database, is_deep=True) if one.verdict is Verdict.FAILED]


def killed(home: Path, database: Path, kills: int, whole_s: float, seed: int) -> dict[str, Any]:
    """Kill the import at random moments, and let it run to its end. How many messages there were after each kill."""
    chance = random.Random(seed)
    importing = Import(home, database)
    there: list[int] = []
    cut = 0
    for _ in range(kills):
        child = importing.start()
        time.sleep(chance.uniform(0, 2 + 2 * whole_s / kills))
        cut += child.poll() is None
        child.kill()
        child.wait()
        there.append(messages(database))
    return {"kills": kills, "cut": cut, "messages_after_each": there, "last": importing.run()}


def measure(folder: Path, texts: Iterator[str], turns: int, kills: int, seed: int) -> dict[str, Any]:
    """All figures."""
    home = folder / "home"
    megabytes = write_transcripts(home, texts, turns)
    progress(f"imports: {turns} turns are written, {megabytes:.0f} MB")
    command = [sys.executable, "-m", "bench.imports", _READ, str(home)]
    reader = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    progress(f"imports: reader {reader}")
    database = folder / "whole.db"
    whole = Import(home, database).run()
    expected, count = digest(database), messages(database)
    progress(f"imports: whole {whole}")
    again = Import(home, database).run()
    violations = []
    if count != turns:
        violations.append(f"imported {count} of {turns} turns")
    if digest(database) != expected:
        violations.append("the second import changed something")
    cut_database = folder / "cut.db"
    cut = killed(home, cut_database, kills, whole["wall_s"], seed)
    progress(f"imports: killed {cut}")
    if digest(cut_database) != expected:
        violations.append(f"killed imports have another digest, and {messages(cut_database)} messages")
    progress(f"imports: after the kills {violations or 'the same digest'}")
    violations += [f"inspection: {one}" for path in (database, cut_database) for one in faults(path)]
    return {
        "turns": turns,
        "megabytes": megabytes,
        "reader": reader,
        "import": {**whole, "turns_per_s": turns / whole["wall_s"], "database_mb": database.stat().st_size / 1e6},
        "again": again,
        "killed": cut,
        "violations": len(violations),
        "first_violations": violations[:5],
        "targets": TARGETS,
    }


def main() -> int:
    """Run the benchmark. The exit code is 1 if it found a violation."""
    parser = bench_data_options(__doc__)
    parser.add_argument("--turns", type=int, help="default 100,000, quick 4,000")
    parser.add_argument("--kills", type=int, help=f"default {_KILLS}, quick {_QUICK_KILLS}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(_READ, type=Path, metavar="HOME", help="only read the transcripts in this home folder")
    given = parser.parse_args()
    if given.read:
        print(json.dumps(read(given.read)))
        return 0
    turns = given.turns or (4_000 if given.quick else 100_000)
    texts: Iterator[str] = Corpus().texts(turns)
    if given.bench_data is not None and (found := find_bench_data(parser, given.bench_data)) is not None:
        said = [
            turn["text"]
            for name in found.names(given.data)
            for conversation in found.load(name, conversation_limit(given))["conversations"]
            for turn in conversation["turns"]
            if turn["text"].strip()
        ]
        texts = islice(cycle(said), turns)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(
            Path(folder), texts, turns, given.kills or (_QUICK_KILLS if given.quick else _KILLS), given.seed
        )
    emit("imports", figures)
    return 1 if figures["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
