"""Fill a memory and a plain FTS5 table with the same texts, and measure the cost of each message.

The memory is filled through the storage layer. A session has windows of 15 messages with a summary after each. Both
sides write one transaction a session, to a write-ahead log that is synced at each commit. So both wait for the disk
equally often.
"""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.corpus import START_MS, Corpus
from kalito_mcp.domain.records import Role, SummaryMethod
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.conversations import MessageDraft, SummaryDraft
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.text.analysis import index_text

NEVER: Final = 10**9
STEP_MS: Final = 60_000
_WINDOWS, WINDOW, SUMMARY_TEXTS = 32, 15, 5
_MESSAGES: Final = _WINDOWS * WINDOW
RECORDS_OF_SESSION: Final = _WINDOWS * (WINDOW + 1)
_INSERT_PLAIN: Final = "INSERT INTO texts (text) VALUES (?)"


@dataclass(slots=True)
class Costs:
    """The number of messages, and the seconds to find their terms, to store and index them, and to write plain FTS5."""

    messages: int = 0
    analysis_s: float = 0.0
    insert_s: float = 0.0
    fts5_s: float = 0.0

    def per_message_us(self) -> dict[str, float]:
        """Microseconds a message. `beyond_fts5` is its extra cost over plain FTS5."""
        each = 1e6 / max(1, self.messages)
        return {
            "analysis": each * self.analysis_s,
            "insert": each * self.insert_s,
            "fts5": each * self.fts5_s,
            "beyond_fts5": each * (self.analysis_s + self.insert_s - self.fts5_s),
        }


class Filler:
    """One memory, and the plain FTS5 table if there is one."""

    def __init__(self, database: Path, plain: Path | None) -> None:
        self.database = database
        self._plain = plain
        self._corpus = Corpus()
        self.sessions = 0
        self.text_bytes = 0

    @property
    def records(self) -> int:
        """The number of records."""
        return self.sessions * RECORDS_OF_SESSION

    async def fill(self, count: int, agents: int = 1) -> Costs:
        """Add whole sessions until there are at least `count` records.

        Sessions take turns among the agents. Returns what these messages cost.
        """
        costs = Costs()
        store = await SqliteStore.open(self.database)
        try:
            with closing(sqlite3.connect(self._plain or ":memory:")) as plain:
                plain.execute("PRAGMA journal_mode = WAL")
                plain.execute("PRAGMA synchronous = FULL")
                plain.execute("CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (text)")
                while self.records < count:
                    texts, summaries = await self._session(store, agents, costs)
                    if self._plain is not None:
                        started = time.perf_counter()
                        _insert(plain, texts)
                        costs.fts5_s += time.perf_counter() - started
                        _insert(plain, summaries)
        finally:
            await store.close()
        return costs

    async def _session(self, store: SqliteStore, agents: int, costs: Costs) -> tuple[list[str], list[str]]:
        """Write one session. Returns its messages and its summaries."""
        first = self.sessions * RECORDS_OF_SESSION
        texts = list(self._corpus.texts(_MESSAGES))
        summaries = [" ".join(texts[start : start + SUMMARY_TEXTS]) for start in range(0, len(texts), WINDOW)]
        scope = Scope(agent=agent_of(self.sessions, agents), session=f"session-{self.sessions}")
        started = time.perf_counter()
        drafts = [message_draft(text, first + place) for place, text in enumerate(texts)]
        analysed = time.perf_counter()
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            await transaction.conversations.append_messages(session, drafts, now_ms=START_MS)
            await transaction.sessions.set_pinned_seq(session, NEVER)
            await transaction.sessions.set_observed_seq(session, NEVER)
        stored = time.perf_counter()
        costs.messages += len(texts)
        costs.analysis_s += analysed - started
        costs.insert_s += stored - analysed
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            for window, text in enumerate(summaries):
                await transaction.conversations.add_summaries(session, [summary_draft(text, session.id, window, first)])
        self.sessions += 1
        self.text_bytes += sum(map(len, texts)) + sum(map(len, summaries))
        return texts, summaries


def _insert(plain: sqlite3.Connection, texts: Sequence[str]) -> None:
    with plain:
        plain.executemany(_INSERT_PLAIN, ((text,) for text in texts))


def message_draft(text: str, place: int) -> MessageDraft:
    """A message of the user or the assistant, in turn."""
    return MessageDraft(
        role=(Role.USER, Role.ASSISTANT)[place % 2],
        text=text,
        name=None,
        created_at=START_MS + place * STEP_MS,
        importance=0.5,
        tokens=len(text) // 4,
        model_id=None,
        token_usage=None,
        client_key=None,
        indexed=index_text(text),
    )


def summary_draft(text: str, session: str, window: int, first: int) -> SummaryDraft:
    """The summary of one window of a session whose first message is at this place."""
    moment = START_MS + (first + (window + 1) * WINDOW) * STEP_MS
    return SummaryDraft(
        id=f"summary_{session}_{window}",
        text=text,
        level=0,
        start_seq=window * WINDOW + 1,
        end_seq=(window + 1) * WINDOW,
        start_message_id="msg_1",
        end_message_id="msg_1",
        started_at=moment,
        ended_at=moment,
        importance=0.7,
        tokens=len(text) // 4,
        method=SummaryMethod.EXTRACTIVE,
        model_id=None,
        created_at=moment,
        indexed=index_text(text),
    )


def agent_of(place: int, agents: int) -> str:
    """The agent of the session at this place. A single agent is the default one."""
    return "default" if agents == 1 else f"agent-{place % agents}"
