"""Play conversations turn by turn to a real server over stdio, as a host would, and check its guarantees.

`--data FILE` names conversations as JSON: {"conversations": [{"id", "turns": [{"session", "speaker", "text", "ts"}]}]}.
Without it they are synthetic. Each conversation is an agent, and each of its sessions is a session. With
`--as-one-session` the whole conversation is one session.

After every tenth turn two contexts are built: one of 3,000 tokens with that turn as its query, and one of 800. Both are
counted again here. Neither may be too large, and both must end with the newest messages. At the end every session is
finalized. Its summaries must then cover each message exactly once.
"""

import json
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client

from bench.corpus import Corpus
from bench.report import emit, latency, options, progress
from bench.wire import clean_environment, memory_command, sdk_transport
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.time import to_iso
from kalito_mcp.inference.tokens import token_counter

WIDE, NARROW = 3000, 800
_EVERY: Final = 10
_ALWAYS_RECENT: Final = 3
_QUERY_CHARS: Final = 4000
_ROLES: Final = ("user", "assistant")
_SELECT_SUMMARIES: Final = """
SELECT s.id, s.message_count, r.level, r.seq, r.end_seq FROM sessions s
LEFT JOIN records r ON r.session_key = s.key AND r.type = 'summary'
ORDER BY s.id, r.level, r.seq
"""


@dataclass(slots=True)
class Played:
    """What was played, and what was wrong."""

    counter_setting: Any
    turns: int = 0
    text_bytes: int = 0
    conversation_tokens: int = 0
    record_s: list[float] = field(default_factory=list[float])
    context_s: dict[int, list[float]] = field(default_factory=lambda: {WIDE: [], NARROW: []})
    context_tokens: dict[int, list[int]] = field(default_factory=lambda: {WIDE: [], NARROW: []})
    whole_tokens: list[int] = field(default_factory=list[int])
    """The length of the session at each context, in tokens."""
    violations: list[str] = field(default_factory=list[str])


class Player:
    """Plays conversations to one connected server."""

    def __init__(self, client: Client, played: Played) -> None:
        self._client = client
        self._played = played
        self._counter = token_counter(
            played.counter_setting.counter, safety_factor=played.counter_setting.safety_factor
        )
        self._newest: dict[str, list[str]] = {}
        self._tokens: dict[str, int] = {}

    async def play(self, conversation: Mapping[str, Any], *, is_one_session: bool) -> None:
        """Play one conversation to its end."""
        agent, speakers = str(conversation["id"]), dict[str, str]()
        for place, turn in enumerate(conversation["turns"]):
            session = agent if is_one_session else f"{agent}/{turn['session']}"
            await self._record(agent, session, as_message(turn, place, speakers))
            if place % _EVERY == _EVERY - 1:
                await self._context(session, WIDE, turn["text"][:_QUERY_CHARS])
                await self._context(session, NARROW, None)

    async def finalize(self) -> None:
        """Close every session that was played."""
        for session in self._newest:
            result = await self._call("finalize_session", {"session_id": session})
            if result["state"] != "FINALIZED":
                self._played.violations.append(f"{session} is {result['state']} after finalize_session")

    async def _record(self, agent: str, session: str, message: dict[str, Any]) -> None:
        started = time.perf_counter()
        result = await self._call("record_messages", {"session_id": session, "agent_id": agent, "messages": [message]})
        self._played.record_s.append(time.perf_counter() - started)
        self._newest.setdefault(session, []).extend(result["message_ids"])
        tokens = self._counter.count(message["text"])
        self._tokens[session] = self._tokens.get(session, 0) + tokens
        self._played.turns += 1
        self._played.text_bytes += len(message["text"].encode())
        self._played.conversation_tokens += tokens

    async def _context(self, session: str, budget: int, query: str | None) -> None:
        asked = {"session_id": session, "max_tokens": budget} | ({"query": query} if query else {})
        started = time.perf_counter()
        parts = await self._call("build_context", asked | {"format": "structured"})
        self._played.context_s[budget].append(time.perf_counter() - started)
        self._played.context_tokens[budget].append(parts["total_tokens"])
        if budget == WIDE:
            self._played.whole_tokens.append(self._tokens[session])
        text = await self._text("build_context", asked)
        for name, tokens in (("says", parts["total_tokens"]), ("has", self._counter.count(text))):
            if tokens > budget:
                self._played.violations.append(f"{session}: a context of {budget} tokens {name} {tokens}")
        shown = [message["record_id"] for message in parts["recent_messages"]]
        newest = self._newest[session]
        if shown[-_ALWAYS_RECENT:] != newest[-_ALWAYS_RECENT:] or shown != newest[-len(shown) :]:
            self._played.violations.append(f"{session}: recent {shown} do not end with the newest {newest[-3:]}")

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self._client.call_tool(tool, arguments)
        if result.is_error:
            raise RuntimeError(f"{tool}: {getattr(result.content[0], 'text', '')}")
        return dict(result.structured_content or {})

    async def _text(self, tool: str, arguments: dict[str, Any]) -> str:
        result = await self._client.call_tool(tool, arguments)
        return "\n".join(str(getattr(block, "text", "")) for block in result.content)


def as_message(turn: Mapping[str, Any], place: int, speakers: dict[str, str]) -> dict[str, Any]:
    """The turn as an argument of record_messages.

    The first speaker is the user; if there are more than two, they alternate.
    """
    speaker = str(turn["speaker"])
    if speaker not in speakers:
        speakers[speaker] = speaker if speaker in _ROLES else _ROLES[len(speakers) % 2]
    message = {"role": speakers[speaker], "text": turn["text"] or " ", "client_key": str(turn.get("id", place))}
    if speaker not in _ROLES:
        message["name"] = speaker
    if turn.get("ts"):
        message["created_at"] = turn["ts"]
    return message


def synthetic(conversations: int, turns: int) -> list[dict[str, Any]]:
    """`conversations` conversations of `turns` turns, in sessions of 40."""
    corpus = Corpus()
    return [
        {
            "id": f"conversation-{number}",
            "turns": [
                {
                    "id": str(place),
                    "session": str(place // 40),
                    "speaker": str(message.role),
                    "text": message.text,
                    "ts": to_iso(message.created_at or 0),
                }
                for place, message in enumerate(corpus.messages(turns))
            ],
        }
        for number in range(conversations)
    ]


def uncovered(database: Path) -> tuple[list[str], dict[str, int]]:
    """Sessions whose level-0 summaries do not cover each message once, and the number of summaries by level."""
    wrong: list[str] = []
    by_level: dict[str, int] = {}
    ends: dict[str, int] = {}
    counts: dict[str, int] = {}
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        for session, messages, level, first, last in connection.execute(_SELECT_SUMMARIES):
            counts[session] = messages
            if level is None:
                continue
            by_level[str(level)] = by_level.get(str(level), 0) + 1
            if level == 0:
                if first != ends.get(session, 0) + 1:
                    wrong.append(f"{session}: a summary begins at {first} after one that ends at {ends.get(session)}")
                ends[session] = last
    wrong += [
        f"{session}: {n} messages, summarised to {ends.get(session, 0)}"
        for session, n in counts.items()
        if ends.get(session, 0) != n
    ]
    return wrong, by_level


async def measure(folder: Path, conversations: list[dict[str, Any]], *, is_one_session: bool) -> dict[str, Any]:
    """Play them all. Returns the figures."""
    database = folder / "memory.db"
    played = Played(Settings().tokens)
    started = time.perf_counter()
    with sdk_transport(memory_command(database), clean_environment(folder)) as server:
        async with Client(server) as client:
            player = Player(client, played)
            for place, conversation in enumerate(conversations):
                progress(f"conversation: {place + 1} of {len(conversations)}, {len(conversation['turns'])} turns")
                await player.play(conversation, is_one_session=is_one_session)
            await player.finalize()
    took_s = time.perf_counter() - started
    wrong, by_level = uncovered(database)
    violations = played.violations + wrong
    return {
        "as_one_session": is_one_session,
        "conversations": len(conversations),
        "turns": played.turns,
        "contexts": sum(map(len, played.context_s.values())),
        "violations": len(violations),
        "first_violations": violations[:3],
        "summaries_by_level": by_level,
        "conversation_tokens": played.conversation_tokens,
        "context_tokens_mean": {budget: _mean(tokens) for budget, tokens in played.context_tokens.items()},
        "session_tokens_mean_at_context": _mean(played.whole_tokens),
        "context_tokens_max": {budget: max(tokens, default=0) for budget, tokens in played.context_tokens.items()},
        "session_to_context": _mean(played.whole_tokens) / max(1.0, _mean(played.context_tokens[WIDE])),
        "record": latency(played.record_s),
        "context_with_query": latency(played.context_s[WIDE]),
        "context_narrow": latency(played.context_s[NARROW]),
        "database_bytes_per_text_byte": database.stat().st_size / played.text_bytes,
        "took_s": took_s,
    }


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, help="a JSON file of conversations")
    parser.add_argument("--as-one-session", action="store_true", help="each conversation as one long session")
    given = parser.parse_args()
    if given.data is not None:
        conversations = json.loads(given.data.read_text(encoding="utf-8"))["conversations"]
    else:
        conversations = synthetic(1, 200) if given.quick else synthetic(3, 600)
    with tempfile.TemporaryDirectory() as folder:
        figures = anyio.run(lambda: measure(Path(folder), conversations, is_one_session=given.as_one_session))
    emit("conversation", figures)


if __name__ == "__main__":
    main()
