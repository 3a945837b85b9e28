"""Does a question find what answered it before? Conversations in three sessions, played to a real server over stdio.

`--data FILE` names conversations as JSON, as for `bench.conversation`. They may have "questions": [{"text", "evidence":
[turn ids]}]. Without the option they are synthetic. The turns of each conversation are divided into three sessions of
one agent. The first two are played and finalized. In the third, the questions of the first are asked again:

- `same`: word for word.
- `restated`: in another order, without function words, after another opening.
- `questions`: the data set's own questions about turns of the first session. They were not written to repeat a
  question, and only what was asked can be found. `hits` shows how much of them a search finds at all.

`found` is the share for which the past answers of search_memory contain the turn or its answer.

Some of the questions are also asked in the second session, restated, and get another answer. `down` is the share of
those whose first past answer is another one after one `down` in the third session.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client

from bench.conversation import as_message, synthetic
from bench.report import emit, options, progress
from bench.stores import address_of, served
from bench.wire import sdk_transport
from kalito_mcp.text.analysis import STOP_WORDS

_SESSIONS: Final = 3
_MIN_WORDS: Final = 6
_ASKED: Final = 40
_AGAIN: Final = 10
_OPENINGS: Final = {2: "Once more, please:", 3: "Tell me again:"}


@dataclass(slots=True)
class Asked:
    """A question of the first session: its message, and the message of its answer."""

    text: str
    message_ids: frozenset[str]


@dataclass(slots=True)
class Tally:
    """How often something was asked and found."""

    asked: int = 0
    found: int = 0
    first: int = 0
    """How often it was found, and how often first."""
    among_hits: int = 0

    def figures(self) -> dict[str, Any]:
        """The counts as shares."""
        of = max(1, self.asked)
        return {
            "asked": self.asked,
            "found": self.found / of,
            "first": self.first / of,
            "among_hits": self.among_hits / of,
        }


@dataclass(slots=True)
class Play:
    """What was played, and what was found."""

    tallies: dict[str, Tally] = field(
        default_factory=lambda: {name: Tally() for name in ("same", "restated", "questions")}
    )
    downs: int = 0
    moved: int = 0


class Server:
    """One server, called through its tools."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer."""
        result = await self._client.call_tool(tool, arguments)
        if result.is_error:
            raise RuntimeError(f"{tool}: {getattr(result.content[0], 'text', '')}")
        return dict(result.structured_content or {})

    async def past_answers(self, agent: str, text: str) -> list[dict[str, Any]]:
        """The past answers of similar questions."""
        return list((await self.call("search_memory", query=text, agent_id=agent))["past_answers"])


async def play(server: Server, conversation: Mapping[str, Any], played: Play) -> None:
    """Play three sessions of one agent."""
    agent, turns = str(conversation["id"]), list(conversation["turns"])
    ids: dict[str, str] = {}
    size = -(-len(turns) // _SESSIONS)
    speakers: dict[str, str] = {}
    messages = [as_message(turn, place, speakers) for place, turn in enumerate(turns)]
    for number in range(_SESSIONS):
        session = f"{agent}/{number + 1}"
        part = messages[number * size : (number + 1) * size]
        if number == 1:
            part = part + asked_again(messages[:size])
        recorded = await server.call("record_messages", session_id=session, agent_id=agent, messages=part)
        ids |= dict(zip((one["client_key"] for one in part), recorded["message_ids"], strict=True))
        if number < _SESSIONS - 1:
            await server.call("finalize_session", session_id=session)
    asked = asked_in(messages[:size], ids)[:_ASKED]
    for one in asked:
        await tally(server, agent, one.text, one.message_ids, played.tallies["same"])
        await tally(server, agent, restated(one.text), one.message_ids, played.tallies["restated"])
    first_session = {one["client_key"] for one in messages[:size]}
    for question in conversation.get("questions", ()):
        evidence = set(question["evidence"])
        if evidence and evidence <= first_session:
            wanted = frozenset(ids[turn] for turn in evidence)
            await tally(server, agent, question["text"], wanted, played.tallies["questions"])
    for one in asked[:_AGAIN]:
        await put_down(server, agent, restated(one.text, at=3), played)


def asked_in(messages: Sequence[Mapping[str, Any]], ids: Mapping[str, str]) -> list[Asked]:
    """The user's questions with at least six words that were answered at once."""
    return [
        Asked(one["text"], frozenset({ids[one["client_key"]], ids[after["client_key"]]}))
        for one, after in pairwise(messages)
        if one["role"] == "user" and after["role"] == "assistant" and is_question(one["text"])
    ]


def asked_again(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The first questions of these, restated, each with another answer."""
    again: list[dict[str, Any]] = []
    for place, one in enumerate(messages):
        if one["role"] == "user" and is_question(one["text"]) and len(again) < 2 * _AGAIN:
            text = restated(one["text"])
            again.append({"role": "user", "text": text, "client_key": f"again-{place}"})
            again.append({"role": "assistant", "text": f"Another answer: {place}.", "client_key": f"other-{place}"})
    return again


def is_question(text: str) -> bool:
    """Whether the text has a question mark and at least six words."""
    return "?" in text and len(text.split()) >= _MIN_WORDS


def restated(text: str, at: int = 2) -> str:
    """The same question in other words: its content words, rotated by a half (or a third)."""
    words = [word.strip(".,;:!?\"'") for word in text.split()]
    kept = [word for word in words if word and word.lower() not in STOP_WORDS]
    cut = len(kept) // at
    return " ".join([_OPENINGS[at], *kept[cut:], *kept[:cut]]) + "?"


async def tally(server: Server, agent: str, text: str, wanted: frozenset[str], counted: Tally) -> None:
    """Ask, and count where the wanted answer was."""
    answer = await server.call("search_memory", query=text[:4000], agent_id=agent)
    places = [
        place
        for place, past in enumerate(answer["past_answers"])
        if wanted & {*past["message_ids"], *(one for given in past["answers"] for one in given["message_ids"])}
    ]
    counted.asked += 1
    counted.found += bool(places)
    counted.first += bool(places) and places[0] == 0
    counted.among_hits += any(hit["record_id"] in wanted for hit in answer["hits"])


async def put_down(server: Server, agent: str, text: str, played: Play) -> None:
    """Dislike the first of several past answers, and check whether another one comes first then."""
    before = await server.past_answers(agent, text)
    if len(before) < 2 and len(before[0]["answers"] if before else ()) < 2:
        return
    played.downs += 1
    first = before[0]["answers"][0]
    await server.call("record_feedback", target_id=first["message_ids"][0], label="down", note="wrong", agent_id=agent)
    after = await server.past_answers(agent, text)
    played.moved += after[0]["answers"][0]["text"] != first["text"]


async def measure(folder: Path, conversations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Play them to one server."""
    played = Play()
    command, environment = served(await address_of(folder / "memory.db"), folder)
    with sdk_transport(command, environment) as transport:
        async with Client(transport) as client:
            server = Server(client)
            for place, conversation in enumerate(conversations):
                progress(f"recollection: {place + 1} of {len(conversations)}")
                await play(server, conversation, played)
    return {
        "conversations": len(conversations),
        **{name: counted.figures() for name, counted in played.tallies.items()},
        "down": {"given": played.downs, "moved": played.moved / max(1, played.downs)},
    }


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, help="a JSON file of conversations")
    given = parser.parse_args()
    if given.data is None:
        conversations = synthetic(1 if given.quick else 3, 240)
        for conversation in conversations:
            for turn in conversation["turns"][::4]:
                turn["text"] = turn["text"].rstrip(".") + "?"
    else:
        conversations = json.loads(given.data.read_text(encoding="utf-8"))["conversations"]
    with tempfile.TemporaryDirectory() as folder:
        emit("recollection", anyio.run(measure, Path(folder), conversations))


if __name__ == "__main__":
    main()
