"""A server and a stream of mixed calls to it: all kinds that write, and some that read.

A ledger keeps what was acknowledged. The same seed plans the same calls. Their arguments depend on what was
acknowledged before.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.corpus import Corpus
from bench.ledger import GONE, Entry, Ledger, State, Version, Violations
from bench.wire import ServerGone, WireServer, memory_command

SHARED: Final = "shared"
_BATCH: Final = (1, 6)
_PURGED: Final = (1, 3)
_SHARED_SHARE: Final = 0.4
_PAUSES_S: Final = (0.0, 0.0, 0.03)
"""The pause between calls. It lets calls also meet the memory during its own background work."""
_STATEMENT: Final = "I decided that {} goes with it."
"""A text from which the memory makes a pin by itself, also without a model."""
MIX: Final = {
    "record": 30,
    "update": 14,
    "pin": 8,
    "note": 6,
    "task": 6,
    "document": 4,
    "thought": 4,
    "forget": 8,
    "restore": 5,
    "purge": 6,
    "feedback": 6,
    "summarize": 4,
    "finalize": 3,
    "search": 4,
    "context": 4,
    "history": 6,
}
"""The relative frequency of each call."""
_NOTHING_TO_DO: Final = ("every message of session", "is not a question or answer in this graph")
"""Refusals that are correct: also of feedback on a reply whose question was erased."""


class Caller:
    """One server, started at once, and its calls. One thread drives `calls`; any thread may `kill`."""

    def __init__(
        self,
        number: int,
        seed: int,
        database: Path,
        environment: Mapping[str, str],
        log: Path,
        violations: Violations,
        *,
        mix: Mapping[str, int] = MIX,
        wrapper: tuple[str, ...] = (),
    ) -> None:
        self.number = number
        self.ledger = Ledger(f"{seed}/{number}")
        self.calls: Counter[str] = Counter()
        """The number of answered calls by kind."""
        self.call_open = threading.Event()
        """Set while a call is open."""
        self.doing: str | None = None
        """The kind of the open call, or of the call that was open when the server died."""
        self.is_ready = threading.Event()
        """Set when the server has answered."""
        self.is_gone = False
        self._random = random.Random(f"{seed}/{number}")
        self._corpus = Corpus(seed=number)
        self._mix = mix
        self._start: Callable[[], WireServer] = lambda: WireServer(
            [*wrapper, *memory_command(database)], environment, log
        )
        self.violations = violations
        self._sessions = self._documents = 0
        self._begun: set[str] = set()
        """Sessions with a message of this caller."""
        self._cut_batch: tuple[dict[str, Any], list[Entry]] | None = None
        self.is_killed = False
        self._by_kind: dict[str, Callable[[], dict[str, Any] | None]] = {
            "record": lambda: self._record(*self._batch()),
            "pin": self._pin,
            **{kind: partial(self._remember, kind) for kind in ("note", "task", "document", "thought")},
            "update": self._update,
            "forget": self._forget,
            "restore": self._restore,
            "purge": self._purge_some,
            "feedback": self._give_feedback,
            "summarize": self._summarize,
            "finalize": self._finalize_own,
            "search": self._search,
            "context": self._build_context,
            "history": self._read_back,
        }
        self.server = self._start()

    @property
    def session(self) -> str:
        """The session that only this caller writes to."""
        return f"own-{self.number}-{self._sessions}"

    @property
    def has_session(self) -> bool:
        """Whether a message was recorded in the session."""
        return self.session in self._begun

    def kill(self) -> None:
        """SIGKILL the server."""
        self.is_killed = True
        self.server.kill()

    def replace(self) -> None:
        """Clean up after a dead server and start another, without waiting for it."""
        self.server.close()
        self.call_open.clear()
        self.is_ready.clear()
        self.is_gone = self.is_killed = False
        self.server = self._start()

    def greet(self) -> None:
        """Shake hands, and make the server open the memory."""
        self.server.shake_hands()
        self.server.call("list_tasks", {})
        self.is_ready.set()

    def run(self, over: threading.Event) -> None:
        """Call until it is over, or until the server is killed."""
        try:
            if not self.is_ready.is_set():
                self.greet()
            while not over.wait(self._random.choice(_PAUSES_S)):
                self.step()
        except ServerGone:
            self.is_gone = True
            if not self.is_killed:
                self.violations.add("ended_by_itself", f"the server of caller {self.number}, in {self.doing}")
        except RuntimeError as error:
            self.violations.add("refused", f"caller {self.number}: {error}")

    def step(self) -> None:
        """Make one call. A call that was cut off comes first.

        Raises:
            ServerGone: the server died. The ledger has the call as open.
        """
        if self._cut_batch is not None:
            self._record(*self._cut_batch)
        else:
            [kind] = self._random.choices(list(self._mix), list(self._mix.values()))
            self.make(kind)

    def make(self, kind: str) -> dict[str, Any] | None:
        """Make a call of this kind. Returns its answer, or None if there was nothing to do or it was refused."""
        return self._by_kind[kind]()

    def purge(self, entries: list[Entry]) -> dict[str, Any] | None:
        """Erase these records. Returns the tool's answer."""
        for entry in entries:
            entry.ask(GONE)
        ids = [one.record_id for one in entries]
        answer = self._call("purge", "forget", {"record_ids": ids, "purge": True, "confirmed": True}, entries)
        for entry in entries if answer else ():
            entry.is_reported = bool(answer and answer["not_reached"])
            entry.acknowledge()
        return answer

    def finalize(self) -> dict[str, Any] | None:
        """Close the caller's own session and begin another. Returns the tool's answer."""
        session = self.session
        self._sessions += 1  # even without an answer: an open call leaves the session FINALIZING
        answer = self._call("finalize", "finalize_session", {"session_id": session})
        if answer:
            self.ledger.note("finalized", session)
        return answer

    def _some(self, *states: State, kind: str | None = None) -> Entry | None:
        """One of this caller's records in such a state. None if there is no such record."""
        able = [one for one in self.ledger.of_state(*states) if kind in (None, one.kind)]
        return self._random.choice(able) if able else None

    def _purge_some(self) -> dict[str, Any] | None:
        able = self.ledger.of_state(State.KEPT, State.FORGOTTEN)
        return self.purge(self._random.sample(able, min(len(able), self._random.randint(*_PURGED)))) if able else None

    def _finalize_own(self) -> dict[str, Any] | None:
        return self.finalize() if self.has_session else None

    def _batch(self) -> tuple[dict[str, Any], list[Entry]]:
        session = SHARED if self._random.random() < _SHARED_SHARE else self.session
        messages: list[dict[str, Any]] = []
        entries: list[Entry] = []
        for place in range(self._random.randint(*_BATCH)):
            entry = self.ledger.born("message")
            role = ("user", "assistant")[place % 2]
            messages.append({"role": role, "text": self._text(entry), "client_key": entry.words[0]})
            entries.append(entry)
        self.ledger.batches.append(entries)
        return {"session_id": session, "messages": messages}, entries

    def _record(self, arguments: dict[str, Any], entries: list[Entry]) -> dict[str, Any] | None:
        # A call that was cut off is repeated unchanged: nothing may be stored twice.
        there = sum(entry.now.state is not State.GONE for entry in entries)
        for entry, message in zip(entries, arguments["messages"], strict=True) if not there else ():
            entry.ask(Version(State.KEPT, message["text"], 1))
        self._cut_batch = arguments, entries
        answer = self._call("record", "record_messages", arguments, entries if not there else [])
        self._cut_batch = None
        if answer is None:
            return None
        self._begun.add(arguments["session_id"])
        if answer["duplicates"] != there:
            self.violations.add("duplicates", f"{answer['duplicates']} of {len(entries)} instead of {there}")
        for entry, record_id in zip(entries, answer["message_ids"], strict=True):
            if entry.record_id not in (None, record_id):
                self.violations.add("duplicated", f"{entry.record_id} is {record_id} when it is sent again")
            entry.acknowledge(record_id)
        return answer

    def _pin(self) -> dict[str, Any] | None:
        begun = sorted(self._begun & {SHARED, self.session})
        if not begun:
            return None
        session = self._random.choice(begun)
        entry = self.ledger.born("pin")
        text = self._text(entry)
        entry.ask(Version(State.KEPT, text, 1))
        arguments = {"session_id": session, "content": text, "client_key": entry.words[0]}
        answer = self._call("pin", "create_pin", arguments, [entry])
        if answer:
            entry.acknowledge(answer["pin"]["id"])
        return answer

    def _remember(self, kind: str) -> dict[str, Any] | None:
        entry = self.ledger.born(kind)
        text = self._text(entry)
        arguments: dict[str, Any] = {"type": kind, "text": text}
        if kind == "document":
            self._documents += 1
            arguments["fields"] = {"source": f"{self.number}-{self._documents}.md"}
        entry.ask(Version(State.KEPT, text, 1))
        answer = self._call(kind, "remember", arguments, [entry])
        if answer:
            [record_id] = answer["record_ids"]
            entry.acknowledge(record_id)
        return answer

    def _update(self) -> dict[str, Any] | None:
        if (entry := self._some(State.KEPT)) is None:
            return None
        entry.words.append(self.ledger.word())
        before, text = entry.now, self._text(entry)
        entry.ask(Version(State.KEPT, text, before.revision + 1))
        arguments = {
            "record_id": entry.record_id,
            "changes": {"text": text},
            "expected_revision": before.revision,
        }
        return self._acknowledged(entry, self._call("update", "update_memory", arguments, [entry]))

    def _forget(self) -> dict[str, Any] | None:
        if (entry := self._some(State.KEPT)) is None:
            return None
        entry.ask(Version(State.FORGOTTEN, entry.now.text, entry.now.revision + 1))
        return self._acknowledged(entry, self._call("forget", "forget", {"record_ids": [entry.record_id]}, [entry]))

    def _restore(self) -> dict[str, Any] | None:
        if (entry := self._some(State.FORGOTTEN)) is None:
            return None
        entry.ask(Version(State.KEPT, entry.now.text, entry.now.revision + 1))
        return self._acknowledged(entry, self._call("restore", "restore", {"record_id": entry.record_id}, [entry]))

    def _acknowledged(self, entry: Entry, answer: dict[str, Any] | None) -> dict[str, Any] | None:
        if answer:
            entry.acknowledge()
        return answer

    def _give_feedback(self) -> dict[str, Any] | None:
        if (entry := self._some(State.KEPT, kind="message")) is None:
            return None
        word = self.ledger.word()
        entry.words.append(word)
        label = self._random.choice(("up", "down", "retry"))
        arguments = {"target_id": entry.record_id, "label": label, "note": f"Because {word} says so."}
        answer = self._call("feedback", "record_feedback", arguments)
        if answer:
            self.ledger.note("feedback", answer["feedback_id"], entry)
        return answer

    def _summarize(self) -> dict[str, Any] | None:
        if SHARED not in self._begun:
            return None
        answer = self._call("summarize", "summarize_session", {"session_id": SHARED, "summary": self._corpus.text()})
        for summary in answer["summaries"] if answer else ():
            self.ledger.note("summary", summary["id"])
        return answer

    def _search(self) -> dict[str, Any] | None:
        return self._call("search", "search_memory", {"query": self._corpus.query(("middling", "common"))})

    def _build_context(self) -> dict[str, Any] | None:
        if SHARED not in self._begun:
            return None
        return self._call("context", "build_context", {"session_id": SHARED, "max_tokens": 2_000})

    def _read_back(self) -> dict[str, Any] | None:
        if (entry := self._some(State.KEPT)) is None:
            return None
        answer = self._call("history", "memory_history", {"record_id": entry.record_id})
        if answer:
            record = answer["record"]
            seen = Version(State.KEPT, record["text"], record["revision"])
            if seen != entry.now:
                self.violations.add("wrong_version", f"read {seen}, acknowledged {entry.now}")
        return answer

    def _text(self, entry: Entry) -> str:
        text = f"{' '.join({entry.words[0]: None, entry.words[-1]: None})} {self._corpus.text()}"
        return f"{text} {_STATEMENT.format(entry.words[-1])}" if self._random.random() < 0.2 else text

    def _call(
        self, kind: str, tool: str, arguments: Mapping[str, Any], entries: list[Entry] | None = None
    ) -> dict[str, Any] | None:
        """The structured answer. None if it was refused; then the records are unchanged."""
        self.doing = kind
        self.call_open.set()
        try:
            answer = self.server.call(tool, arguments)
        except RuntimeError as error:
            for entry in entries or ():
                entry.refuse()
            if not any(words in str(error) for words in _NOTHING_TO_DO):
                self.violations.add("refused", f"caller {self.number}: {error}")
            self.call_open.clear()
            return None
        self.call_open.clear()
        self.calls[kind] += 1
        return dict(answer.get("structuredContent", {}))
