"""The ledger of a campaign: what servers acknowledged, and whether the database still contains it.

Every record of a campaign begins with a unique word, its birth word. No edit removes it. So a row can be found by its
text even if no caller got its id, and an erased record can be searched for in the raw bytes of files.

A record may be in the state that was acknowledged last, or in one that was requested since. `Entry.allowed` returns
these states for a moment. Reading the database settles the calls that were cut off.
"""

import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.storage.sqlite.inspection import inspect

_LETTERS: Final = "bcdfghjklmnprtvwx"  # stemming cuts none of these endings
_MARK: Final = "zq"
"""Part of every word, so that searching the bytes of a file is fast.

The text index leaves out letters that a word shares with the previous one. Two words do not share the five letters
before the mark by chance.
"""
_BEFORE, _BEHIND = 5, 7
_WORD: Final = re.compile(rf"[{_LETTERS}]{{{_BEFORE}}}{_MARK}[{_LETTERS}]{{{_BEHIND}}}")
_MARKED: Final = re.compile(rf"{_MARK}[{_LETTERS}]{{{_BEHIND}}}".encode())
_SHOWN: Final = 8
_SHOWN_CHARS: Final = 400
_SELECT_ROWS: Final = """
SELECT coalesce(id, 'msg_' || key), text, revision, deleted_at IS NOT NULL, purged_at IS NOT NULL FROM records
WHERE type <> 'summary' AND coalesce(client_key, '') NOT GLOB 'auto:*'
"""
"""Pins that the memory made by itself repeat the words of a message, and no caller knows of them."""
_SELECT_FACTS: Final = """
SELECT 'summary', id FROM records WHERE type = 'summary'
UNION ALL SELECT 'feedback', id FROM graph_nodes WHERE type = 'feedback'
UNION ALL SELECT 'finalized', id FROM sessions WHERE state = 'FINALIZED'
"""


class State(StrEnum):
    """The possible states of a record."""

    GONE = "gone"
    """Erased, or never stored. Some erased records leave no row."""
    KEPT = "kept"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Version:
    """The state of a record. A record that is gone has no text and no revision."""

    state: State
    text: str = ""
    revision: int = 0


GONE: Final = Version(State.GONE)


@dataclass(slots=True)
class Step:
    """A version that a call requested, with the times of its request and its acknowledgement."""

    version: Version
    sent_at: float
    acknowledged_at: float | None = None


@dataclass(slots=True)
class Entry:
    """One record: every word it ever had, the birth word first, and every version that was requested."""

    kind: str
    words: list[str]
    record_id: str | None = None
    steps: list[Step] = field(default_factory=list[Step])
    is_reported: bool = False
    """A purge reported that it did not reach all files."""

    @property
    def now(self) -> Version:
        """The newest version."""
        return self.steps[-1].version if self.steps else GONE

    @property
    def is_erased(self) -> bool:
        """Whether it was stored and then erased."""
        return bool(self.steps) and self.now == GONE

    @property
    def is_open(self) -> bool:
        """Whether a call for it was sent and not answered."""
        return bool(self.steps) and self.steps[-1].acknowledged_at is None

    def ask(self, version: Version) -> None:
        """Note that a version is requested now."""
        self.steps.append(Step(version, time.time()))

    def acknowledge(self, record_id: str | None = None) -> None:
        """Note that the request was acknowledged now."""
        self.record_id = record_id or self.record_id
        self.steps[-1].acknowledged_at = time.time()

    def refuse(self) -> None:
        """Note that the request was refused and had no effect."""
        self.steps.pop()

    def allowed(self, at: float) -> list[Version]:
        """The versions that it may have at a moment."""
        allowed = [GONE]
        for step in self.steps:
            if step.sent_at > at:
                break
            is_certain = step.acknowledged_at is not None and step.acknowledged_at <= at
            allowed = [step.version] if is_certain else [*allowed, step.version]
        return allowed

    def settle(self, seen: Version) -> None:
        """Record the stored state as the result of an open call."""
        if not self.is_open:
            return
        if seen == self.now:
            self.steps[-1].acknowledged_at = time.time()
        else:
            self.refuse()


@dataclass(slots=True)
class Fact:
    """Another acknowledged change: a summary or a feedback by its id, or a finalized session by its name."""

    kind: str
    name: str
    acknowledged_at: float
    about: Entry | None = None
    """The record that it belongs to."""


class Violations:
    """Violations, counted by kind. None is expected."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._first: list[str] = []

    def add(self, kind: str, detail: object) -> None:
        """Count one."""
        self.counts[kind] += 1
        if len(self._first) < _SHOWN:
            self._first.append(f"{kind}: {detail}"[:_SHOWN_CHARS])

    def figures(self) -> dict[str, Any]:
        """The counts as a campaign reports them."""
        return {
            "violations": self.counts.total(),
            "violations_by_kind": dict(self.counts),
            "first_violations": self._first,
        }


class Ledger:
    """What was acknowledged to one caller. Nobody else changes its records."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.entries: list[Entry] = []
        self.batches: list[list[Entry]] = []
        """Entries of one call each, which are stored together or not at all."""
        self.facts: list[Fact] = []
        self._words = 0

    def word(self) -> str:
        """A word that was not used before."""
        self._words += 1
        digest = blake2b(f"{self._name}/{self._words}".encode(), digest_size=_BEFORE + _BEHIND).digest()
        letters = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)
        return f"{letters[:_BEFORE]}{_MARK}{letters[_BEFORE:]}"

    def born(self, kind: str) -> Entry:
        """A new record that was not requested yet."""
        entry = Entry(kind, [self.word()])
        self.entries.append(entry)
        return entry

    def of_state(self, *states: State) -> list[Entry]:
        """The records that are certainly in one of these states."""
        return [one for one in self.entries if one.steps and not one.is_open and one.now.state in states]

    def note(self, kind: str, name: str, about: Entry | None = None) -> None:
        """Note another acknowledged change."""
        self.facts.append(Fact(kind, name, time.time(), about))

    def acknowledged(self) -> int:
        """The number of acknowledged changes of records."""
        return sum(step.acknowledged_at is not None for entry in self.entries for step in entry.steps)

    def erased_words(self, at: float, *, is_all: bool = False) -> set[str]:
        """The words that no file may contain at a moment: those of acknowledged purges.

        Purges that reported unreached files only count if `is_all`.
        """
        return {
            word
            for one in self.entries
            if one.allowed(at) == [GONE] and (is_all or not one.is_reported)
            for word in one.words
        }


@dataclass(frozen=True, slots=True)
class Stored:
    """The campaign's records as a database contains them."""

    by_word: Mapping[str, Sequence[tuple[str, Version]]]
    by_id: Mapping[str, Version]
    facts: frozenset[tuple[str, str]]

    def of(self, entry: Entry) -> Version:
        """The record of an entry, found by its id, or by its birth word if no caller got the id."""
        if entry.record_id is not None:
            return self.by_id.get(entry.record_id, GONE)
        return next((version for _, version in self.by_word.get(entry.words[0], ())), GONE)


def read(database: Path) -> Stored:
    """Read the database on a connection that cannot write.

    Raises:
        sqlite3.Error: the database cannot be read.
    """
    by_word: dict[str, list[tuple[str, Version]]] = {}
    by_id: dict[str, Version] = {}
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        for record_id, text, revision, is_forgotten, is_erased in connection.execute(_SELECT_ROWS):
            state = State.FORGOTTEN if is_forgotten else State.KEPT
            version = GONE if is_erased else Version(state, text, revision)
            by_id[record_id] = version
            if born := _WORD.match(text):
                by_word.setdefault(born[0], []).append((record_id, version))
        facts = frozenset((kind, name) for kind, name in connection.execute(_SELECT_FACTS))
    return Stored(by_word, by_id, facts)


def compare(stored: Stored, ledgers: Sequence[Ledger], at: float, violations: Violations, when: str) -> int:
    """Look for everything that was acknowledged by a moment. Returns how many records and other changes that were."""
    known = {entry.words[0] for ledger in ledgers for entry in ledger.entries}
    checked = 0
    for word in stored.by_word.keys() - known:
        violations.add("never_sent", f"{when}: {stored.by_word[word]}")
    for ledger in ledgers:
        for entry in ledger.entries:
            checked += 1
            if len(stored.by_word.get(entry.words[0], ())) > 1:
                violations.add("duplicated", f"{when}: {stored.by_word[entry.words[0]]}")
            seen, allowed = stored.of(entry), entry.allowed(at)
            if seen not in allowed:
                kind = "lost" if seen == GONE else "wrong_version"
                violations.add(kind, f"{when}: {entry.kind} {entry.record_id} is {seen}, not {allowed}")
        for batch in ledger.batches:
            is_as_sent = all(len(one.steps) <= 1 for one in batch)
            if is_as_sent and len({stored.of(one) == GONE for one in batch}) > 1:
                violations.add("half_a_batch", f"{when}: {[stored.of(one).state for one in batch]}")
        for fact in ledger.facts:
            # An edit, a forget or a purge also removes the feedback of the record.
            is_due = fact.about is None or len(fact.about.steps) == 1
            checked += is_due
            if fact.acknowledged_at <= at and is_due and (fact.kind, fact.name) not in stored.facts:
                violations.add("lost", f"{when}: {fact.kind} {fact.name}")
    return checked


def settle(stored: Stored, ledgers: Iterable[Ledger]) -> list[Entry]:
    """Settle the open calls. Returns the records that one of them erased."""
    open_entries = [entry for ledger in ledgers for entry in ledger.entries if entry.is_open]
    for entry in open_entries:
        for record_id, _ in stored.by_word.get(entry.words[0], ()):
            entry.record_id = record_id
        entry.settle(stored.of(entry))
    return [entry for entry in open_entries if entry.is_erased]


def copied(database: Path, copy: Path) -> Path:
    """A copy made by SQLite's backup. It does not change while live servers finish owed work."""
    copy.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
    return copy


def inspect_deeply(database: Path, violations: Violations, when: str) -> None:
    """Count every failed check of `doctor --deep`."""
    for finding in inspect(database, is_deep=True):
        if finding.verdict is Verdict.FAILED:
            violations.add("doctor", f"{when}: {finding.check}: {finding.detail}")


def holding(folder: Path, words: Iterable[str]) -> dict[str, str]:
    """The files below the folder whose bytes contain one of the words, each with one such word."""
    sought = {word[_BEFORE:].encode(): word for word in words}
    return dict(_held(folder, sought)) if sought else {}


def _held(folder: Path, sought: Mapping[bytes, str]) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        try:
            raw = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            continue  # a folder, or a file that was removed meanwhile
        for found in _MARKED.findall(raw):
            if (word := sought.get(found)) is not None:
                yield str(path.relative_to(folder)), word
                break
