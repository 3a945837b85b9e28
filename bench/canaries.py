"""The campaign of canaries: several processes write to one database and erase at random, and look into the bytes.

Each process records, edits, pins, thinks and forgets, in texts of one word to some kilobytes, so that SQLite moves rows
between pages all the time. Every version of every record has a word of its own. Whenever a purge has answered that it
reached every file, none of the words that the process has erased so far may be in any file, while the others go on
writing. `found_before` counts the purges whose words were in a file before: 0 would mean that the campaign tests
nothing. At the end all is looked at again, also by `doctor --deep`.
"""

import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio
from anyio import to_process

from bench.ledger import Violations, holding, inspect_deeply
from bench.report import emit, options
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, RecordType, Role
from kalito_mcp.errors import KalitoError
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

# As the words of `bench.ledger`, which finds them.
_LETTERS: Final = "bcdfghjklmnprtvwx"
_BEFORE, _MARK, _BEHIND = 5, "zq", 7
_WORDS: Final = (1, 2, 5, 10, 30, 60, 150, 400)
"""The lengths of texts."""

_MIX: Final = ("record",) * 5 + ("pin", "thought", "edit", "edit", "edit", "forget", "purge")
_START_S: Final = 60.0


class _Writer:
    """One process. `words` has the words of each record that it stored, `erased` those that must be in no file."""

    def __init__(self, memory: Memory, folder: Path, number: int, seed: int) -> None:
        self._memory = memory
        self._folder = folder
        self._number = number
        self._word_count = 0
        self._session = f"session-{number}"
        self._random = random.Random(1000 * seed + number)
        self._words: dict[str, set[str]] = {}
        self._forgotten: set[str] = set()
        self.erased: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []

    async def step(self) -> None:
        """Do one thing at random."""
        kind = self._random.choice(_MIX)
        steps: dict[str, Callable[[], Awaitable[None]]] = {
            "record": self._record,
            "pin": self._pin,
            "thought": self._thought,
        }
        if self._words.keys() - self._forgotten:
            steps |= {"edit": self._edit, "forget": self._forget, "purge": self._purge}
        self.counts[kind] += 1
        try:
            await steps.get(kind, self._record)()
        except KalitoError as error:
            self.violations.append(f"{kind}: {error.code}: {error}")

    async def _record(self) -> None:
        texts = [self._text() for _ in range(self._random.randint(1, 4))]
        messages = [NewMessage(Role.USER, " ".join(words)) for words in texts]
        recorded = await self._memory.record_messages(self._session, messages)
        self._words |= dict(zip(recorded.message_ids, map(set, texts), strict=True))

    async def _pin(self) -> None:
        words = self._text()[:60]
        pin = await self._memory.create_pin(CreatePinRequest(self._session, " ".join(words)))
        self._words[pin.id] = set(words)

    async def _thought(self) -> None:
        words = self._text()
        content = {"text": " ".join(words), "tags": [words[0]]}
        [thought] = await self._memory.remember(RecordType.THOUGHT, content, session_id=self._session)
        self._words[thought.id] = set(words)

    async def _edit(self) -> None:
        record_id = self._any(is_shown=True)
        record = await self._memory.records.get(record_id)
        words = self._text()
        self._words[record_id] |= set(words)
        await self._memory.update_memory(record_id, {"text": " ".join(words)}, expected_revision=record.revision)

    async def _forget(self) -> None:
        record_id = self._any(is_shown=True)
        await self._memory.forget(record_id)
        self._forgotten.add(record_id)

    async def _purge(self) -> None:
        chosen = {self._any() for _ in range(self._random.randint(1, 3))}
        words = set[str]().union(*(self._words.pop(one) for one in chosen))
        self.counts["found_before"] += bool(await self._look(words))
        report = await self._memory.purge(sorted(chosen))
        if report.remaining:
            self.counts["not reached"] += 1
            self._words |= dict.fromkeys(chosen, words)
            return
        self.erased |= words
        if held := await self._look(self.erased):
            self.violations.append(f"word_left: {held}")

    async def _look(self, words: set[str]) -> dict[str, str]:
        """The files with one of the words. Read by another process: closing the file here would drop SQLite's locks."""
        return await to_process.run_sync(holding, self._folder, words)

    def _any(self, *, is_shown: bool = False) -> str:
        return self._random.choice([one for one in self._words if not (is_shown and one in self._forgotten)])

    def _text(self) -> list[str]:
        return [self._word() for _ in range(self._random.choice(_WORDS))]

    def _word(self) -> str:
        """A new word. What follows the mark, by which it is found, is the process's number and that of the word."""
        self._word_count += 1
        number, digits = self._word_count, [_LETTERS[self._number]]
        for _ in range(_BEHIND - 1):
            number, digit = divmod(number, len(_LETTERS))
            digits.append(_LETTERS[digit])
        return "".join([*self._random.choices(_LETTERS, k=_BEFORE), _MARK, *digits])


def work(folder: str, number: int, steps: int, seed: int, start: threading.Barrier) -> dict[str, Any]:
    """Run one process's share. It begins when all processes are ready."""
    return anyio.run(_work, Path(folder), number, steps, seed, start)


async def _work(folder: Path, number: int, steps: int, seed: int, start: threading.Barrier) -> dict[str, Any]:
    start.wait(_START_S)
    async with open_memory(folder / "memory.db") as memory:
        writer = _Writer(memory, folder, number, seed)
        for _ in range(steps):
            await writer.step()
        await memory.settled()
    return {"erased": writer.erased, "counts": writer.counts, "violations": writer.violations}


def campaign(*, processes: int, steps: int, seed: int = 1) -> dict[str, Any]:
    """Run the campaign. Returns the figures."""
    violations, counts, erased = Violations(), Counter[str](), set[str]()
    started = time.perf_counter()
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, spawn.Manager() as manager, spawn.Pool(processes) as pool:
        start = manager.Barrier(processes)
        answers = [pool.apply_async(work, (folder, number, steps, seed, start)) for number in range(processes)]
        for found in [answer.get() for answer in answers]:
            counts += found["counts"]
            erased |= found["erased"]
            for one in found["violations"]:
                violations.add(one.partition(":")[0], one)
        if held := holding(Path(folder), erased):
            violations.add("word_left at the end", held)
        inspect_deeply(Path(folder) / "memory.db", violations, "at the end")
        size = (Path(folder) / "memory.db").stat().st_size
    return {
        "seed": seed,
        "processes": processes,
        **counts,
        "erased_words": len(erased),
        "mb": size / 1e6,
        **violations.figures(),
        "took_s": time.perf_counter() - started,
    }


def main() -> int:
    """Run the campaign. The exit code is 1 if it found a violation."""
    parser = options(__doc__)
    parser.add_argument("--steps", type=int, help="of each process; default 600, quick 60")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    steps = given.steps or (60 if given.quick else 600)
    figures = campaign(processes=given.processes, steps=steps, seed=given.seed)
    emit("canaries", figures)
    return 1 if figures["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
