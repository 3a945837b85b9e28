"""Plays the conversation of `kalito-mcp demo` through an MCP client, turn by turn, and prints what happens.

It prints what the server answered: a fact that is not in a context is shown as missing, and every figure was measured
in this run.
"""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import click
from mcp import Client

from kalito_mcp.cli.demo import screen as draw
from kalito_mcp.cli.demo.client import Context, Served, excerpt, says
from kalito_mcp.cli.demo.conversation import (
    CONVERSATION,
    PINS,
    QUESTIONS,
    SEARCHES,
    USER_NAME,
    PlannedPin,
    PlannedSearch,
    Question,
    Turn,
)
from kalito_mcp.cli.demo.screen import Screen, ShownHit, Tone

HOW_TO_ADD: Final = "kalito-mcp install --import"

_AGENT: Final = "demo"
_SHOW_S: Final = 12.5
"""When a show with pauses should end; the pauses shrink to meet it. The limit is fifteen seconds."""
_LONGEST_PAUSE_S: Final = 0.9
_SETTLE_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.02
_QUIET_LOOKS: Final = 4
_SUMMARY_WINDOW: Final = 15
"""With this many messages without a summary, the server owes one."""
_WIDE_BUDGET: Final = 20_000
"""Room for all pins and summaries, to see what is new. Such a context is never shown."""

# Weights of pauses; an ordinary turn has 1.
_KEY_WEIGHT: Final = 3.0
_STOP_WEIGHT: Final = 6.0


class Pace:
    """Divides the remaining time among the remaining pauses by weight. `started` is monotonic."""

    def __init__(self, *, pauses: bool, started: float) -> None:
        self._pauses = pauses
        self._weight_left = _show_weight()
        self._started = started

    @property
    def elapsed_s(self) -> float:
        """Seconds since the show began."""
        return time.monotonic() - self._started

    async def rest(self, weight: float) -> None:
        """Pause to let the user read. No pause if nobody watches or the show is late."""
        if not self._pauses or self._weight_left <= 0:
            return
        share = weight * (_SHOW_S - self.elapsed_s) / self._weight_left
        self._weight_left -= weight
        await anyio.sleep(max(0.0, min(_LONGEST_PAUSE_S, share)))


@dataclass(frozen=True, slots=True)
class Stage:
    """Where and how the play is shown. `keeps` is the database that stays; None if it is temporary."""

    screen: Screen
    pace: Pace
    budget: int
    keeps: str | None


async def perform(client: Client, stage: Stage) -> None:
    """Play the whole conversation in a new session, and print it.

    Raises:
        CallRefused: the server answered a call with an error.
        MCPError, OSError: the server ended, or did not answer in time.
    """
    # A database that stays may have an earlier demonstration, whose session is closed.
    session_id = "maya-in-march" if stage.keeps is None else f"maya-in-march-{secrets.token_hex(4)}"
    show = _Show(Served(client, session_id), stage.screen, stage.pace, stage.budget)
    await show.play()
    await show.settle()
    await show.final_context()
    show.say(draw.heading(stage.screen, "Searching it"))
    for search in SEARCHES:
        await show.search(search)
    await show.closing(stage.keeps)


@dataclass(slots=True)
class _Show:
    """A running demonstration: what was shown so far, for the notices and the closing figures."""

    served: Served
    screen: Screen
    pace: Pace
    budget: int
    number_of: dict[str, int] = field(default_factory=dict[str, int])
    known: set[str] = field(default_factory=set[str])
    counts: tuple[int, int] = (0, 0)
    contexts: list[Context] = field(default_factory=list[Context])
    pins_by_hand: int = 0
    answered: list[int] = field(default_factory=list[int])
    characters_per_token: float = 4.0

    def say(self, lines: Sequence[str]) -> None:
        """Print the lines."""
        for line in lines:
            click.echo(draw.writable(self.screen, line), color=self.screen.colour)

    async def play(self) -> None:
        """Play the conversation day by day. Each day ends with the context at that time."""
        pins = {pin.turn: pin for pin in PINS}
        questions = {question.turn: question for question in QUESTIONS}
        for before, turn in zip((None, *CONVERSATION), CONVERSATION, strict=False):
            if before is None or before.at.date() != turn.at.date():
                if before is not None:
                    await self.bar()
                self.say(draw.heading(self.screen, _day(turn)))
            await self.turn(turn)
            if turn.number in pins:
                await self.pin(pins[turn.number])
            if turn.number in questions:
                await self.question(turn, questions[turn.number])
            await self.news()

    async def turn(self, turn: Turn) -> None:
        """Record and show one message."""
        is_user = turn.role == "user"
        message = {"role": turn.role, "text": turn.text, "created_at": turn.at.isoformat()}
        if is_user:
            message["name"] = USER_NAME
        _, receipt = await self.served.call("record_messages", agent_id=_AGENT, messages=[message])
        for record_id in receipt.get("message_ids") or []:
            self.number_of[str(record_id)] = turn.number
        self.say(
            draw.bubble(
                self.screen,
                turn.number,
                USER_NAME if is_user else turn.role,
                turn.text,
                is_user=is_user,
                max_lines=2 if turn.is_key else 1,
            )
        )
        await self.pace.rest(_turn_weight(turn))

    async def pin(self, pin: PlannedPin) -> None:
        """Create and show one of Maya's pins."""
        record_id = next((id_ for id_, number in self.number_of.items() if number == pin.turn), None)
        _, made = await self.served.call(
            "create_pin", content=pin.content, source_message_id=record_id, importance_score=pin.importance
        )
        self.known.add(str((made.get("pin") or {}).get("id")))
        self.pins_by_hand += 1
        self.counts = (self.counts[0], self.counts[1] + 1)
        self.say(draw.notice(self.screen, self.screen.glyphs.pin, f"{USER_NAME} pins this:", pin.content, Tone.PIN))
        await self.pace.rest(_STOP_WEIGHT)

    async def news(self) -> int:
        """Show what the server has made since the last look. Returns how many messages have no summary yet."""
        stats = await self.served.stats()
        counts = (int(stats.get("total_summaries") or 0), int(stats.get("total_pins") or 0))
        owed = int(stats.get("total_messages") or 0) - int(stats.get("summarized_messages") or 0)
        if counts == self.counts:
            return owed
        self.counts = counts
        seen = await self.served.context(_WIDE_BUDGET)
        glyphs = self.screen.glyphs
        for pin in seen.records("semantic_pins"):
            if self._is_new(pin):
                title = "noticed and pinned automatically:"
                self.say(draw.notice(self.screen, glyphs.auto_pin, title, str(pin.get("content")), Tone.PIN))
                await self.pace.rest(_STOP_WEIGHT)
        for summary in seen.records("summaries"):
            if self._is_new(summary):
                kind = "summaries merged, of" if summary.get("level") else "summary of"
                title = f"{kind} messages {summary.get('first_message')} to {summary.get('last_message')}:"
                text = str(summary.get("summary"))
                self.say(draw.notice(self.screen, glyphs.summary, title, text, Tone.SUMMARY, max_lines=3))
                await self.pace.rest(_STOP_WEIGHT)
        return owed

    def _is_new(self, record: dict[str, Any]) -> bool:
        record_id = str(record.get("id"))
        if record_id in self.known:
            return False
        self.known.add(record_id)
        return True

    async def bar(self) -> None:
        """Show the present context as a bar."""
        await self.settle()
        self.contexts.append(await self.served.context(self.budget))
        self.say(["", *draw.budget_bar(self.screen, self.contexts[-1].shares(self.budget))])
        await self.pace.rest(_STOP_WEIGHT)

    async def question(self, turn: Turn, question: Question) -> None:
        """Show what the assistant gets before it answers the question just recorded."""
        await self.settle()
        context = await self.served.context(self.budget, query=turn.text, also=list(question.also), pending_input=True)
        self.contexts.append(context)
        evidence = context.evidence_of(question.fact, self.screen.glyphs.ellipsis)
        distance = question.turn - question.answered_by
        glyphs = self.screen.glyphs
        if evidence is None:
            title = f"said {distance} messages back; not in this context"
            self.say(draw.notice(self.screen, glyphs.no, title, "", Tone.BAD))
        else:
            place, sentence = evidence
            title = f"said {distance} messages back; here {place}:"
            self.say(draw.notice(self.screen, glyphs.yes, title, sentence, Tone.FOUND))
            self.answered.append(distance)
        self.say(draw.budget_bar(self.screen, context.shares(self.budget)))
        await self.pace.rest(_STOP_WEIGHT)

    async def settle(self) -> None:
        """Wait until the server has made what it owes, as between two evenings; at most three seconds."""
        with anyio.move_on_after(_SETTLE_S):
            quiet = 0
            while quiet < _QUIET_LOOKS:
                before = self.counts
                await anyio.sleep(_LOOK_EVERY_S)
                owed = await self.news()
                quiet = quiet + 1 if self.counts == before and owed < _SUMMARY_WINDOW else 0

    async def final_context(self) -> None:
        """Show everything that the assistant would get now, word for word."""
        self.say(draw.heading(self.screen, "What the assistant would get now, word for word"))
        query = CONVERSATION[-2].text
        context = await self.served.context(self.budget, query=query)
        text, _ = await self.served.call("build_context", max_tokens=self.budget, query=query)
        self.contexts.append(context)
        self.characters_per_token = len(text) / max(1, context.tokens)
        facts = [question.fact for question in QUESTIONS]
        title = f"{context.tokens:,} of {self.budget:,} tokens"
        self.say(["", *draw.framed(self.screen, title, text, marks=facts)])
        self.say(draw.budget_bar(self.screen, context.shares(self.budget)))
        await self.pace.rest(2 * _STOP_WEIGHT)

    async def search(self, search: PlannedSearch) -> None:
        """Show one search with its best three hits."""
        _, found = await self.served.call("search_memory", agent_id=_AGENT, query=search.query, k=3, types=["message"])
        turns = {turn.number: turn for turn in CONVERSATION}
        glyphs = self.screen.glyphs
        hits: list[ShownHit] = []
        for hit in found.get("hits") or []:
            number = self.number_of.get(str(hit.get("record_id")), 0)
            text = str(hit.get("text") or "")
            who = str(hit.get("name") or hit.get("role") or hit.get("type") or "")
            day = _day(turns[number]) if number in turns else ""
            score = float(hit.get("score") or 0)
            is_expected = says(text, search.fact)
            hits.append(ShownHit(number, who, day, excerpt(text, search.fact, glyphs.ellipsis), score, is_expected))
        if any(hit.is_expected for hit in hits):
            self.answered.append(len(CONVERSATION) - search.turn)
        self.say(draw.hit_list(self.screen, search.query, hits, self.served.took_ms["search_memory"][-1]))
        await self.pace.rest(_STOP_WEIGHT)

    async def closing(self, database: str | None) -> None:
        """Close the session, and show the figures of this run."""
        _, end = await self.served.call("finalize_session")
        stats = await self.served.stats()
        screen, last = self.screen, self.contexts[-1]
        summaries, pins = int(stats.get("total_summaries") or 0), int(stats.get("total_pins") or 0)
        said = sum(len(turn.text) for turn in CONVERSATION)
        # Only the server counts tokens; its count of the last context gives their mean length.
        in_full = 10 * round(said / self.characters_per_token / 10)
        peak = max(context.tokens for context in self.contexts)
        total = len(QUESTIONS) + len(SEARCHES)
        ms = self.served.typical_ms
        rows = [
            (f"{len(CONVERSATION)}", f"messages on {_days()} days, about {in_full:,} tokens in full"),
            (f"{last.tokens:,}", f"tokens in the last context; at most {peak:,} in any, of {self.budget:,} asked for"),
            (f"{summaries}", "summaries, made during the conversation and at its end, without a model"),
            (f"{pins}", f"pins: {self.pins_by_hand} by {USER_NAME}, {pins - self.pins_by_hand} made by the server"),
            (f"{len(self.answered)} of {total}", "questions and searches answered from memory, "
             f"the farthest {max(self.answered, default=0)} messages back"),
            (f"{ms('record_messages'):.1f} ms", "to record a message on disk, as a round trip"),
            (f"{ms('build_context'):.1f} ms", f"to build a context; {ms('search_memory'):.1f} ms to search"),
        ]  # fmt: skip
        kept = "The database is deleted." if database is None else f"The database is kept: {database}"
        state = str(end.get("state") or stats.get("state") or "closed").lower()
        self.say(draw.heading(screen, f"What you have just seen, in {self.pace.elapsed_s:.1f} s"))
        self.say(["", *draw.figures_table(screen, rows), ""])
        self.say(draw.prose(screen, f"The session is {state}. No model was asked, no network used. {kept}"))
        self.say(
            [
                "",
                *draw.prose(
                    screen, "Give your assistants this memory, with what they have kept of earlier conversations:"
                ),
            ]
        )
        self.say([*draw.prose(screen, f"  {HOW_TO_ADD}", Tone.STRONG), ""])


def _day(turn: Turn) -> str:
    return f"{turn.at:%A} {turn.at.day} {turn.at:%B}"


def _days() -> int:
    return len({turn.at.date() for turn in CONVERSATION})


def _turn_weight(turn: Turn) -> float:
    return _KEY_WEIGHT if turn.is_key else 1.0


def _show_weight() -> float:
    """The weight of all pauses of a usual show: turns, a bar a day, planned stops, and some for what arrives."""
    arrivals = len(CONVERSATION) // 8
    stops = _days() + len(PINS) + len(QUESTIONS) + len(SEARCHES) + 2 + arrivals
    return sum(map(_turn_weight, CONVERSATION)) + _STOP_WEIGHT * stops
