"""Whatever two owners and two callers with limits do on one database, nobody reads or changes what is beyond theirs."""

import os
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from kalito_mcp.domain.context import Include
from kalito_mcp.domain.digest import Digest
from kalito_mcp.domain.erasing import ForgetRequest
from kalito_mcp.domain.records import CreatePinRequest, CreateSummaryRequest, NewMessage, RecordType, Role
from kalito_mcp.domain.scope import NO_LIMITS, PERSONAL, Limits
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.errors import KalitoError
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database

pytestmark = pytest.mark.anyio

OPERATIONS: Final = int(os.environ.get("ISOLATION_OPERATIONS", "1500"))
"""`make campaigns` does 10,000."""
SHOP: Final = "zqshop & = : % / .. '\" \U0001d4b6"
GARDEN: Final = "zqgarden & = : % / .. '\" \U0001d4b6"
CODER: Final = "coder&=:%/.."
OTHER: Final = "zqsecretagent&=:%/.."
GARDENER: Final = "wqgardener&=:%/.."
"""Has nothing but in the garden."""
REACHES: Final = (("session",), ("session", "project", "person"))
SHARED: Final = ("trip", "a&b=c:%/../'", 'x"%_*', "né\u0301 / ..")
"""Ids of sessions that everybody uses."""


class Place(NamedTuple):
    """Where a record is. No project: personal."""

    owner: str
    agent: str
    project: str | None

    @property
    def mark(self) -> str:
        """A word that is said nowhere else."""
        return "zq" + "".join(
            letter for letter in f"{self.owner}{self.agent[:5]}{(self.project or 'own')[2:6]}" if letter.isalpha()
        )


PLACES: Final = [
    *(Place(o, a, p) for o in ("ann", "friedrich") for a in (CODER, OTHER) for p in (None, SHOP, GARDEN)),
    Place("ann", GARDENER, GARDEN),
]
_RECORD_ID: Final = re.compile(r"\b(?:msg|pin|summary|task|thought|document)_[0-9a-z_.]+")


@dataclass
class Caller:
    """One who calls, with what was remembered for each place by anybody."""

    name: str
    memory: Memory
    owner: str
    limits: Limits = NO_LIMITS
    sessions: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    """What it has named that is beyond its reach: since then it may have a session of its own under that id."""

    def reaches(self, place: Place) -> bool:
        return (
            place.owner == self.owner
            and self.limits.agent in (None, place.agent)
            and (self.limits.project is None or place.project in (None, self.limits.project))
        )

    @property
    def forbidden(self) -> list[str]:
        """The words that no answer may have."""
        words = [place.mark for place in PLACES if not self.reaches(place)]
        words += [GARDEN[:8], GARDENER[:10]] if self.limits.project is not None else []
        words += [OTHER[:13], GARDENER[:10]] if self.limits.agent is not None else []
        return words


class World:
    """The memories, and what is in them by id: the place of each record and session."""

    def __init__(self, opened: Memory, seed: int) -> None:
        self.chance = random.Random(seed)
        self.opened = opened
        shop, coder = Limits(project=SHOP), Limits(agent=CODER)
        self.callers = [
            Caller("ann", opened.of_owner("ann"), "ann"),
            Caller("friedrich", opened.of_owner("friedrich"), "friedrich"),
            Caller("shop", opened.of_owner("ann", shop), "ann", shop),
            Caller("coder", opened.of_owner("ann", coder), "ann", coder),
        ]
        self.records: dict[str, Place] = {}
        self.erased: dict[str, Place] = {}
        self.hidden: set[str] = set()
        self.sessions: dict[tuple[str, str], Place] = {}
        self.done: dict[str, int] = {}

    async def step(self) -> None:
        """One operation of one caller, chosen by chance."""
        caller = self.chance.choice(self.callers)
        kind = self.chance.choices([self.write, self.read, self.name_foreign, self.change], [4, 5, 4, 2])[0]
        name, answer = await kind(caller)
        self.done[name] = self.done.get(name, 0) + 1
        for one in self.named():
            answer = answer.replace(one, "")  # there may be one of its own under this id, or one that begins with it
        leaked = [word for word in caller.forbidden if word in answer]
        if not name.startswith("foreign"):
            beyond = (one for one in _RECORD_ID.findall(answer) if one in self.records and one != "msg_45")
            leaked += [one for one in beyond if not caller.reaches(self.records[one])]
        assert not leaked, (caller.name, name, leaked, answer[:3000])

    def named(self) -> list[str]:
        """What anybody has named beyond its reach, as it is shown."""
        return [one for caller in self.callers for given in caller.named for one in (given, repr(given)[1:-1])]

    def place(self, caller: Caller) -> Place:
        """A place that the caller reaches."""
        return self.chance.choice([place for place in PLACES if caller.reaches(place)])

    def said(self, place: Place) -> str:
        number = self.chance.randrange(60)
        return self.chance.choice(
            [
                f"The {place.mark} kettle number {number} is ready.",
                f"Where is the {place.mark} ladder {number}?",
                f"The ladder stands behind the {place.mark} door {number}.",
            ]
        )

    async def write(self, caller: Caller) -> tuple[str, str]:  # noqa: PLR0911 - one for each kind
        place = self.place(caller)
        memory = await caller.memory.in_project(place.project or PERSONAL)
        session = self.chance.choice([*SHARED, f"{place.mark}/{self.chance.randrange(9)}&=:%.."])
        verb = self.chance.choice(["messages", "messages", "messages", "pin", "note", "task", "document", "file", "up"])
        text = self.said(place)
        try:
            if verb == "messages":
                turns = [NewMessage(Role.USER, text), NewMessage(Role.ASSISTANT, self.said(place))]
                done = await memory.record_messages(session, turns, agent_id=place.agent)
                self.sessions[caller.owner, done.session.id] = place
                self.records |= dict.fromkeys(done.message_ids, place)
                caller.sessions.add(done.session.id)
                return verb, repr(done)
            if verb == "pin":
                named = [
                    one for (owner, one), where in self.sessions.items() if owner == caller.owner and where == place
                ]
                if not named:
                    return "pin nothing", ""
                scope = self.chance.choice(REACHES[place.project is not None and place.agent != GARDENER])
                if scope == "person":
                    # It is made in a session of a project, and is of none.
                    place = Place(place.owner, place.agent, None)
                    text = self.said(place)
                session = self.chance.choice(named)
                pin = await memory.create_pin(CreatePinRequest(session, text, scope=scope))
                self.records[pin.id] = place
                return verb, repr(pin)
            if verb == "file":
                # The files of a memory are those of an agent: of the one that is meant without a name.
                if place.agent != (caller.limits.agent or CODER) or caller.limits.agent is None:
                    return "no file", ""
                kept = await memory.files.write(f"/memories/{place.mark}.md", lambda _tree, _text: text)
                self.records[kept.id] = place
                return verb, repr(kept)
            if verb == "up":
                mine = [one for one, where in self.records.items() if where == place and one.startswith("msg_")]
                if not mine:
                    return "up nothing", ""
                return verb, repr(await memory.record_feedback(self.chance.choice(mine), "up", f"good {place.mark}"))
            fields: dict[str, Any] = {"text": text}
            if verb == "document":
                fields["source"] = f"{place.mark}/{self.chance.randrange(5)}.md"
            reached = [one for one, where in self.records.items() if caller.reaches(where)]
            if reached and self.chance.random() < 0.3:
                fields["caused_by"] = self.chance.choice(reached)
            made = await memory.remember(verb, fields, agent_id=place.agent)
            self.records |= {one.id: place for one in made}
            return verb, repr(made)
        except KalitoError as error:
            return f"{verb} refused", str(error)

    async def read(self, caller: Caller) -> tuple[str, str]:
        place = self.place(caller)
        memory = caller.memory if caller.limits.project is not None else await caller.memory.in_project(None)
        if self.chance.random() < 0.5:
            memory = await caller.memory.in_project(place.project or PERSONAL)
        agent = self.chance.choice([place.agent, place.agent, None])
        foreign = self.chance.choice(PLACES).mark
        query = self.chance.choice(["kettle ladder ready", "Where is the ladder 7?", f"{foreign} kettle", "keetle"])
        session = self.chance.choice([None, *caller.sessions]) if caller.sessions else None
        every = list(Include)
        mistyped = self.chance.choice([one for _, one in self.sessions] or ["none yet"]).replace("zq", "zx", 1)
        verbs: dict[str, Callable[[], Awaitable[object]]] = {
            "search": lambda: memory.search_memory(
                SearchRequest(query, k=10, explain=True), agent_id=agent, session_id=session
            ),
            "past": lambda: memory.past_answers(query, agent_id=agent),
            "context": lambda: memory.build_context(session, 1500, agent_id=agent, query=query, include=every),
            "plain": lambda: memory.build_context(session or "new one", 900, include=every),
            "json": lambda: memory.build_context(session, 900, query=query, as_json=True),
            "inject": lambda: memory.hooks.inject(session or "new", query),
            "known": memory.hooks.inject_known,
            "given": memory.given.recent,
            "given of a record": lambda: memory.given.with_record(f"msg_{self.chance.randrange(1, 200)}"),
            "profile": lambda: memory.records.profile(agent_id=agent),
            "tasks": lambda: memory.records.tasks(agent_id=agent),
            "sessions": lambda: memory.conversations.recent(agent_id=agent),
            "completion": lambda: memory.conversations.recent(prefix="zq"),
            "projects": memory.projects.all,
            "agents": memory.conversations.agents,
            "records": lambda: memory.records.all(frozenset(RecordType) - {RecordType.MESSAGE}, agent_id=agent),
            "files": lambda: memory.files.look("/memories/x"),
            "preview": lambda: memory.records.preview_forgetting(ForgetRequest(f"{foreign} kettle"), agent_id=agent),
            "graph": lambda: memory.conversations.graph_overview(session_id=session, agent_id=agent),
            "mistyped": lambda: memory.conversations.stats(mistyped),
            "mistyped agent": lambda: memory.search_memory(SearchRequest(query), agent_id=f"w{GARDENER[2:]}"),
            "mistyped project": lambda: memory.in_project(GARDEN[:-1]),
        }
        name = self.chance.choice(list(verbs))
        given: tuple[str, ...] = (GARDEN[:-1],) if name == "mistyped project" else ()
        given = (mistyped,) if name == "mistyped" else given
        if name in ("search", "context", "past", "json", "preview", "inject", "mistyped agent"):
            given = (foreign,)
        return name, await outcome(verbs[name], *given)

    async def change(self, caller: Caller) -> tuple[str, str]:  # noqa: PLR0912 - one for each verb
        """Forget, bring back, erase or move something that the caller reaches; what is beyond does not change."""
        reached = [one for one, where in self.records.items() if caller.reaches(where)]
        if not reached:
            return "nothing to change", ""
        record_id = self.chance.choice(reached)
        place = self.records[record_id]
        memory = await caller.memory.in_project(place.project or PERSONAL)
        name = self.chance.choice(["forget", "restore", "edit", "purge", "history", "subject", "summarize", "finalize"])
        try:
            if name == "forget":
                answer: object = await memory.forget(record_id)
            elif name == "restore":
                answer = await memory.restore(record_id)
            elif name == "edit":
                now = await memory.records.get(record_id)
                changed = {"text": self.said(place)}
                answer = await memory.update_memory(record_id, changed, expected_revision=now.revision)
            elif name == "history":
                answer = (await memory.records.get(record_id), await memory.records.history(record_id))
                answer = (answer, await memory.records.derived_from(record_id))
            elif name == "purge" and self.chance.random() < 0.3:
                answer = await memory.purge([record_id])
                for one in answer.erased:
                    self.erased[one] = self.records.pop(one, place)
            elif name == "subject" and self.chance.random() < 0.2:
                request = ForgetRequest(f"{place.mark} kettle number {self.chance.randrange(60)}")
                preview = await memory.records.preview_forgetting(request, agent_id=place.agent)
                answer = preview
                if preview.token is not None:
                    answer = await memory.records.forget_previewed(request, preview.token, agent_id=place.agent)
            elif name in ("summarize", "finalize") and (theirs := self.sessions_of(caller, place)):
                session = self.chance.choice(theirs)
                if name == "summarize":
                    answer = await memory.conversations.summarize(session)
                elif self.chance.random() < 0.3:
                    answer = await memory.finalize_session(session)
                else:
                    answer = await memory.conversations.stats(session)
            else:
                return f"no {name}", ""
        except KalitoError as error:
            return f"{name} refused", str(error)
        if name in ("forget", "purge", "subject"):
            await self.check_untouched(caller)
        return name, repr(answer)

    def sessions_of(self, caller: Caller, place: Place) -> list[str]:
        return [one for (owner, one), where in self.sessions.items() if owner == caller.owner and where == place]

    async def check_untouched(self, caller: Caller) -> None:
        """What the caller does not reach is still there."""
        beyond = [one for one, where in self.records.items() if not caller.reaches(where)]
        for one in self.chance.sample(beyond, min(3, len(beyond))):
            await self.opened.of_owner(self.records[one].owner).records.get(one)

    async def name_foreign(self, caller: Caller) -> tuple[str, str]:
        """Name something beyond the caller's reach, and something that never was: the words are the same."""
        records = [one for one, where in (self.records | self.erased).items() if not caller.reaches(where)]
        sessions = [one for (_, one), where in self.sessions.items() if not caller.reaches(where)]
        sessions = [one for one in sessions if one not in self.named() and one not in SHARED]
        if not records or not sessions:
            return "nothing foreign", ""
        record_id, session = self.chance.choice(records), self.chance.choice(sessions)
        letters = "".join(self.chance.choice("bcdfghjklmnp") for _ in range(14))
        no_session = "".join(self.chance.choice("bcdfghjklmnp") if one.isalnum() else one for one in session)
        kind, _, rest = record_id.partition("_")
        no_record = (
            f"msg_{900_000 + self.chance.randrange(99_999)}" if kind == "msg" else f"{kind}_{letters}{rest[14:]}"
        )
        name = self.chance.choice([*FOREIGN_RECORD, *FOREIGN_SESSION])
        memory = caller.memory
        if name in FOREIGN_RECORD:
            verb, given = FOREIGN_RECORD[name], (record_id, no_record)
        else:
            verb, given = FOREIGN_SESSION[name], (session, no_session)
        if name in ("say", "pin in", "task in"):
            caller.named.add(session)
        if name == "context" and session:
            # What its owner has just read is in memory.
            owner = next(owner for (owner, one), where in self.sessions.items() if one == session)
            await outcome(lambda: self.opened.of_owner(owner).manager.in_project(None).build_context(session, 800))
        found, missing = [normal(await outcome(lambda one=one: verb(memory, one)), one) for one in given]
        assert found == missing, (caller.name, name, given, found, missing)
        await self.check_untouched(caller)
        return f"foreign {name}", found


Verb = Callable[[Memory, str], Awaitable[object]]
FOREIGN_RECORD: Final[dict[str, Verb]] = {
    "record": lambda memory, one: memory.records.get(one),
    "records": lambda memory, one: memory.records.get_all(one),
    "derived": lambda memory, one: memory.records.derived_from(one),
    "history": lambda memory, one: memory.records.history(one),
    "version": lambda memory, one: memory.records.version(one, 1),
    "as of": lambda memory, one: memory.records.as_of(one, 1),
    "diff": lambda memory, one: memory.records.diff(one, 1, 1),
    "update": lambda memory, one: memory.update_memory(one, {"text": "stolen"}, expected_revision=1),
    "forget": lambda memory, one: memory.forget(one),
    "restore": lambda memory, one: memory.restore(one),
    "revert": lambda memory, one: memory.records.revert(one, 1),
    "purge": lambda memory, one: memory.purge([one]),
    "move": lambda memory, one: memory.records.move(one, None),
    "feedback": lambda memory, one: memory.record_feedback(one, "down", "stolen"),
    "cause": lambda memory, one: memory.remember("note", {"text": "Caused by it.", "caused_by": one}),
    "importance": lambda memory, one: memory.manager.update_message_importance(one, 0.9),
}
FOREIGN_SESSION: Final[dict[str, Verb]] = {
    "say": lambda memory, one: memory.record_messages(one, [NewMessage(Role.USER, "Hello there.")]),
    "pin in": lambda memory, one: memory.create_pin(CreatePinRequest(one, "Hello there.", scope="session")),
    "task in": lambda memory, one: memory.remember("task", {"text": "Say hello."}, session_id=one),
    "stats": lambda memory, one: memory.conversations.stats(one),
    "session": lambda memory, one: memory.conversations.get(one),
    "context": lambda memory, one: memory.build_context(one, 800),
    "asking": lambda memory, one: memory.build_context(one, 9_000, query="kettle 999"),
    "summarize": lambda memory, one: memory.conversations.summarize(one),
    "adopt": lambda memory, one: memory.conversations.adopt_summary(one, "They spoke of kettles."),
    "keep": lambda memory, one: memory.keep_digest(one, Digest(open=("They need a kettle.",))),
    "range": lambda memory, one: memory.create_summary(CreateSummaryRequest(one, "msg_1", "msg_2", summary="x")),
    "finalize": lambda memory, one: memory.finalize_session(one),
    "graph": lambda memory, one: memory.conversations.graph_overview(session_id=one),
    "search in": lambda memory, one: memory.search_memory(SearchRequest("kettle"), session_id=one),
    "past in": lambda memory, one: memory.past_answers("Where is the ladder 7?", session_id=one),
    "transcript": lambda memory, one: memory.conversations.transcript(one),
    "records of": lambda memory, one: memory.records.all(frozenset(), session_id=one),
    "move session": lambda memory, one: memory.conversations.move(one, None),
    "model": lambda memory, one: memory.manager.get_session_model(one),
    "score": lambda memory, one: memory.manager.score_session_messages(one),
    "relevant": lambda memory, one: memory.manager.find_relevant_messages(one, "kettle"),
}


async def outcome(verb: Callable[[], Awaitable[object]], *given: str) -> str:
    """What a call returned or raised, without what it was given."""
    try:
        found = repr(await verb())
    except KalitoError as error:
        found = f"{type(error).__name__}: {error}"
    for one in given:
        found = found.replace(repr(one)[1:-1], "").replace(one, "")
    return found


def normal(answer: str, given: str) -> str:
    """The answer without the id that was named, and without numbers."""
    # Ids are shown in quotes of several kinds, and escaped by them.
    plain = str.maketrans({"\\": "", '"': "'"})
    answer = answer.replace("such as msg_45", "").translate(plain).replace(given.translate(plain), "ID")
    answer = re.sub(r"(?:pin|task|document)_\w+", "RECORD", answer)
    return re.sub(r"(?<=kalito-memory )[0-9a-f]+|\d+", "#", answer)


async def play(tmp_path: Path, steps: int, seed: int) -> World:
    async with open_memory(lay_empty_database(tmp_path / "memory.db")) as opened:
        world = World(opened, seed)
        for number in range(steps):
            await world.step()
            if number % 40 == 0:
                await opened.settled()
        return world


@pytest.mark.parametrize("seed", [1, 2])
async def test_nobody_reaches_beyond_in_some_operations(tmp_path: Path, seed: int) -> None:
    await play(tmp_path, 250, seed)


@pytest.mark.campaign
@pytest.mark.timeout(900)
async def test_nobody_reaches_beyond_in_many_operations(tmp_path: Path) -> None:
    world = await play(tmp_path, OPERATIONS, 17)
    done = {name.removeprefix("foreign ") for name in world.done}
    assert done >= FOREIGN_RECORD.keys() | FOREIGN_SESSION.keys(), "each verb named what is beyond"
