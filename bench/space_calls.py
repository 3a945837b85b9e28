"""What fifty people do at random with their memories and ten spaces, from a seed: calls, and what each touches."""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bench.ledger import Ledger
from bench.space_model import Kept, SpaceModel
from bench.space_workers import CANARY, Call
from kalito_mcp.domain.records import Reach
from kalito_mcp.domain.scope import NO_LIMITS, PERSONAL, Limits
from kalito_mcp.domain.spaces import Role, space_owner

PROJECTS: Final = ("github.com/acme/payments", "github.com/acme/website", "github.com/acme/printers")
_OF_PROJECT: Final = 0.4
AGENT: Final = "coder"
_LEAST_OWN: Final = 4
_MOST_OWN: Final = 14
"""Records of a person that are not erased. With fewer they pin, with more they erase."""
_MOST_SHARED: Final = 40
_NOT_SHARED: Final = 0.5
"""How many corrections are of anything, not of what the user shared; and of these, how many are of the copy."""
_REMOVED: Final = 0.05
"""How many races may remove the space."""
_ROLES: Final = (Role.READER, Role.WRITER, Role.WRITER, Role.CURATOR)
_LIMITS: Final = (*[NO_LIMITS] * 8, Limits(agent=AGENT), *(Limits(project=one) for one in PROJECTS[:2]))
MIX: Final = {
    "pin": 9,
    "echo": 1,
    "say": 4,
    "share": 12,
    "update": 8,
    "forget": 4,
    "restore": 4,
    "revert": 3,
    "purge": 3,
    "get": 10,
    "search": 20,
    "context": 7,
    "mine": 2,
    "join": 6,
    "leave": 5,
    "create": 1,
    "remove": 0.15,
}
"""The relative frequency of each call. An echo pins the words of somebody else's copy."""
_NOUNS: Final = ("kettle", "ladder", "printer", "garden", "bridge", "window", "engine", "ticket", "basket", "candle")
_ADJECTIVES: Final = ("green", "heavy", "narrow", "quiet", "broken", "early", "modern", "second", "wooden", "public")

Touched = tuple[frozenset[str], frozenset[str]]
"""The owners, spaces among them, that a call reads and that it changes."""
NOTHING: Final[Touched] = (frozenset(), frozenset())


class Plan:
    """Draws calls that fit what the model knows. Plans of two names share nobody and no space."""

    def __init__(self, model: SpaceModel, name: str, seed: int, *, users: int, spaces: int) -> None:
        self._model = model
        self.chance = random.Random(seed)
        self._ledger = Ledger(f"{name} {seed}")
        self._number = 0
        self.users = [f"{name}-user-{number:02}" for number in range(users)]
        self.spaces = [f"{name}-space-{number}" for number in range(spaces)]

    def begin(self) -> Iterable[Call]:
        """The calls that make the spaces, and let three people in four into each two or three of them."""
        for name in self.spaces:
            yield self._call("create", "", name, self._project_of_space())
        for user in self.users:
            for name in self.chance.sample(self.spaces, min(len(self.spaces), self.chance.choice((0, 2, 3, 3)))):
                yield self._call("join", "", name, user, self.chance.choice(_ROLES))

    def next(self) -> Call:
        """The next call."""
        [verb] = self.chance.choices(list(MIX), list(MIX.values()))
        user = self.chance.choice(self.users)
        if len(self._model.by_holder.get(user, ())) < _LEAST_OWN:
            verb = "pin"
        call: Callable[[str], Call] = getattr(self, f"_{verb}")
        return call(user)

    def race(self) -> Iterable[Call]:
        """Three calls about one record that somebody may share, by them and by a curator."""
        user = self.chance.choice(self.users)
        mine = [one for one in self._model.of_holder(user) if one.is_shown]
        roles = self._model.memberships(user)
        spaces = [name for name in self.spaces if roles.get(name, Role.READER) is not Role.READER]
        if not mine or not spaces:
            return [self.next()]
        record, name = self.chance.choice(mine), self.chance.choice(spaces)
        curators = [one for one, role in self._model.roles[name].items() if role is Role.CURATOR]
        curator = self.chance.choice(curators or [user])
        copies = [one for one in self._model.copies(user, record.id) if one.holder == space_owner(name)]
        among = [
            *[self._call("share", user, record.id, name)] * 3,
            *[self._call("purge", user, (record.id,))] * 2,
            self._call("update", user, record.id, self._text(), len(record.versions)),
            self._call("leave", "", name, user),
            self._call("join", "", name, user, self.chance.choice(_ROLES)),
            *(self._call("purge", curator, (one.id,)) for one in copies * 2),
            *(self._call("forget", curator, one.id) for one in copies),
            *(self._call("update", curator, one.id, self._text(), len(one.versions)) for one in copies),
            *([self._call("remove", "", name)] if self.chance.random() < _REMOVED else []),
        ]
        # One call may be drawn twice, and is sent twice.
        return [self._again(one) for one in self.chance.sample(among, 3)]

    def focus(self, users: Iterable[str], spaces: Iterable[str]) -> None:
        """Draw only these users and spaces from now on."""
        self.users, self.spaces = list(users), list(spaces)

    def purges(self, own: Mapping[str, Iterable[str]]) -> Iterable[Call]:
        """Everybody erases all their records."""
        for user, ids in own.items():
            yield self._call("purge", user, tuple(ids))

    def removals(self) -> Iterable[Call]:
        """Every space is removed, and each call returns how many records it erased."""
        for name in self.spaces:
            yield self._call("remove", "", name)

    def touched(self, call: Call) -> Touched:
        """What else must not change, and what else must not be read, while this call runs."""
        mine = {space_owner(name) for name in self._model.memberships(call.owner)}
        read, changed = {call.owner, *mine}, set[str]()
        match call.verb:
            case "create":
                read, changed = set(), {space_owner(call.arguments[0])}
            case "remove":
                name = call.arguments[0]
                read, changed = set(), {space_owner(name), *self._model.roles.get(name, ())}
            case "join" | "leave":
                read, changed = set(), {space_owner(call.arguments[0]), call.arguments[1]}
            case "pin" | "say":
                read, changed = set(), {call.owner}
            case "share":
                name = call.arguments[1]
                changed = {call.owner, *(mine if name is None else (space_owner(name),))}
            case "purge":
                changed = self._changed(call.owner, mine, call.arguments[0])
            case "update" | "forget" | "restore" | "revert":
                changed = self._changed(call.owner, mine, call.arguments[:1])
        return frozenset(read), frozenset(changed)

    def _changed(self, user: str, mine: set[str], record_ids: Iterable[str]) -> set[str]:
        """Who has these records, as far as a user reaches them, and their copies."""
        records = [self._model.records[one] for one in record_ids if one in self._model.records]
        copies = {copy.holder for one in records for copy in self._model.copies(user, one.id)}
        return copies | {one.holder for one in records if one.holder in {user, *mine}}

    def _call(
        self, verb: str, owner: str, *arguments: Any, limits: Limits = NO_LIMITS, project: str | None = None
    ) -> Call:
        self._number += 1
        return Call(self._number, verb, owner, arguments, limits, limits.project or project)

    def _again(self, call: Call) -> Call:
        return self._call(call.verb, call.owner, *call.arguments, limits=call.limits, project=call.project)

    def _of(self, verb: str, user: str, *arguments: Any, project: str | None = None) -> Call:
        """A call of a user, sometimes within limits."""
        return self._call(verb, user, *arguments, limits=self.chance.choice(_LIMITS), project=project)

    def _text(self) -> str:
        nouns = self.chance.sample(_NOUNS, 2)
        return f"the {self.chance.choice(_ADJECTIVES)} {nouns[0]} of the {nouns[1]} is {self._ledger.word()}"

    def _project_of_space(self) -> str | None:
        return self.chance.choice(PROJECTS) if self.chance.random() < _OF_PROJECT else None

    def _pin(self, user: str) -> Call:
        if len(list(self._model.of_holder(user))) >= _MOST_OWN:
            return self._purge(user)
        return self._pinned(user, self._text())

    def _pinned(self, user: str, text: str) -> Call:
        limits = self.chance.choice(_LIMITS)
        project = limits.project or self.chance.choice((None, *PROJECTS))
        reach = Reach.PERSON if project is None else self.chance.choice((Reach.PERSON, Reach.PROJECT))
        return self._call("pin", user, text, reach, limits=limits, project=project)

    def _echo(self, user: str) -> Call:
        theirs = [
            one.now.text
            for name in self._model.memberships(user)
            for one in self._model.of_holder(space_owner(name))
            if one.is_shown and one.user != user
        ]
        fresh = [text for text in theirs if not self._has_had(user, text)]
        return self._pinned(user, self.chance.choice(fresh)) if fresh else self._search(user)

    def _has_had(self, user: str, text: str) -> bool:
        """Whether the user ever had these words: then they are stored already, or forgotten."""
        mine = self._model.of_holder(user)
        return any(text == one.text for record in mine for one in record.versions) or text in self._model.erased.get(
            user, ()
        )

    def _say(self, user: str) -> Call:
        if len(list(self._model.of_holder(user))) >= _MOST_OWN:
            return self._purge(user)
        project = self.chance.choice((PERSONAL, *PROJECTS))
        # A session is of one project.
        session = f"{user} {project} {self.chance.randrange(1_000_000)}"
        return self._call("say", user, session, self._text(), project=project)

    def _share(self, user: str) -> Call:
        mine = [one.id for one in self._model.of_holder(user)]
        spaces = list(self._model.memberships(user))
        crowded = [name for name in spaces if len(list(self._model.of_holder(space_owner(name)))) >= _MOST_SHARED]
        if crowded:
            return self._erase_in(user, self.chance.choice(crowded))
        record_id = self.chance.choice(mine) if mine and self.chance.random() < 0.95 else self._any_id(user)
        name = self.chance.choice([*spaces * 3, None, self.chance.choice(self.spaces)])
        return self._of("share", user, record_id, name)

    def _erase_in(self, user: str, space: str) -> Call:
        """A purge of a record of a space by somebody who may."""
        there = list(self._model.of_holder(space_owner(space)))
        curators = [one for one, role in self._model.roles[space].items() if role is Role.CURATOR]
        chosen = self.chance.choice(there)
        return self._call("purge", self.chance.choice(curators) if curators else chosen.user or user, (chosen.id,))

    def _any_id(self, user: str) -> str:
        """The id of a record: most often one that the user reaches."""
        drawn = self.chance.random()
        if drawn < 0.4:
            among = list(self._model.of_holder(user))
        elif drawn < 0.8:
            spaces = list(self._model.memberships(user))
            among = list(self._model.of_holder(space_owner(self.chance.choice(spaces)))) if spaces else []
        elif drawn < 0.9:
            among = list(self._model.of_holder(space_owner(self.chance.choice(self.spaces))))
        elif drawn < 0.95:
            among = list(self._model.of_holder(self.chance.choice(self.users)))
        else:
            return self._gone_id()
        return self.chance.choice(among).id if among else self._gone_id()

    def _shared_id(self, user: str) -> str:
        """The id of a record that the user shared once, or of its copy, half of the time if there is one."""
        copies = [
            one for name in self._model.roles for one in self._model.of_holder(space_owner(name)) if one.user == user
        ]
        if not copies or self.chance.random() < _NOT_SHARED:
            return self._any_id(user)
        copy = self.chance.choice(copies)
        return copy.id if self.chance.random() < _NOT_SHARED else copy.source or copy.id

    def _gone_id(self) -> str:
        """The id of a record that was erased lately, or of none."""
        gone = [one for one in list(self._model.records.values())[-400:] if one.is_erased]
        return self.chance.choice(gone).id if gone else "document_1795852046799_nothing99"

    def _get(self, user: str) -> Call:
        return self._of("get", user, self._any_id(user))

    def _search(self, user: str) -> Call:
        return self._of(
            "search", user, self._words(user), project=self.chance.choice((None, None, PERSONAL, *PROJECTS))
        )

    def _context(self, user: str) -> Call:
        return self._of("context", user, self._words(user)[:1], project=self.chance.choice((None, PERSONAL, *PROJECTS)))

    def _words(self, user: str) -> tuple[str, ...]:
        """Canaries of a few records, seen or not, of what they say or said before."""
        chosen = [self._model.records.get(self._any_id(user)) for _ in range(3)]
        said = [self._said(one) for one in chosen if one is not None]
        return tuple(dict.fromkeys((*said, self._ledger.word())))

    def _said(self, record: Kept) -> str:
        is_old = self.chance.random() < 0.2
        text = self.chance.choice(record.versions).text if is_old else record.now.text
        return str(CANARY.findall(text)[0])

    def _update(self, user: str) -> Call:
        record_id = self._shared_id(user)
        record = self._model.records.get(record_id)
        revision = 1 if record is None else len(record.versions)
        wrong = 1 if self.chance.random() < 0.05 else 0
        return self._of("update", user, record_id, self._text(), revision + wrong)

    def _forget(self, user: str) -> Call:
        return self._of("forget", user, self._shared_id(user))

    def _restore(self, user: str) -> Call:
        mine = [user, *map(space_owner, self._model.memberships(user))]
        hidden = [one.id for holder in mine for one in self._model.of_holder(holder) if one.now.forgotten is not None]
        is_useful = hidden and self.chance.random() < 0.8
        return self._of("restore", user, self.chance.choice(hidden) if is_useful else self._any_id(user))

    def _revert(self, user: str) -> Call:
        record_id = self._shared_id(user)
        record = self._model.records.get(record_id)
        latest = 1 if record is None else len(record.versions)
        return self._of("revert", user, record_id, self.chance.randint(1, latest + (self.chance.random() < 0.05)))

    def _purge(self, user: str) -> Call:
        ids = {self._any_id(user) for _ in range(self.chance.choice((1, 1, 2)))}
        return self._of("purge", user, tuple(sorted(ids)))

    def _mine(self, user: str) -> Call:
        return self._of("mine", user)

    def _join(self, user: str) -> Call:
        return self._call("join", "", self.chance.choice(self.spaces), user, self.chance.choice(_ROLES))

    def _leave(self, user: str) -> Call:
        mine = list(self._model.memberships(user))
        is_member = mine and self.chance.random() < 0.8
        return self._call("leave", "", self.chance.choice(mine if is_member else self.spaces), user)

    def _create(self, user: str) -> Call:
        del user
        gone = [name for name in self.spaces if name not in self._model.roles]
        return self._call("create", "", self.chance.choice(gone or self.spaces), self._project_of_space())

    def _remove(self, user: str) -> Call:
        del user
        return self._call("remove", "", self.chance.choice(self.spaces))
