"""What fifty people may see and do in ten spaces: a model in plain Python of what the documentation says. Pure.

`SpaceModel.judge` is given a call and its answer, when no other call touched the same things meanwhile. It says what
is wrong with the answer, and follows the call.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from bench.space_workers import CANARY, Answer, Call
from kalito_mcp.domain.records import Origin, Reach
from kalito_mcp.domain.scope import DEFAULT_AGENT, NO_LIMITS, PERSONAL, Limits
from kalito_mcp.domain.spaces import Role, space_of, space_owner

_UNKNOWN: Final = "RecordNotFound"
_ERASED: Final = "RecordErased"
_DENIED: Final = "AccessDenied"
_CONFLICT: Final = "Conflict"
_INVALID: Final = "InvalidInput"
_MISSING: Final = "NotFound"

Check = Callable[[Any], Iterable[str]]
"""Follows a call that was allowed, and says what is wrong with what it returned."""


class Refused(Exception):
    """The model forbids the call. `errors` are those that may say so."""

    def __init__(self, *errors: str) -> None:
        super().__init__(*errors)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Version:
    """The words of a record, and the number of the version that forgot it; None if it is not forgotten."""

    text: str
    forgotten: int | None = None


@dataclass(slots=True)
class Kept:
    """A record of a person or of a space. A copy is known by who shared it and of which record."""

    id: str
    holder: str
    project: str | None
    agent: str
    origin: Origin
    versions: list[Version]
    user: str | None = None
    source: str | None = None
    is_erased: bool = False

    @property
    def now(self) -> Version:
        """The newest version."""
        return self.versions[-1]

    @property
    def is_shown(self) -> bool:
        """Whether it is neither forgotten nor erased."""
        return not self.is_erased and self.now.forgotten is None

    def within(self, limits: Limits) -> bool:
        """Whether it exists for a caller with these limits."""
        return limits.reaches(self.agent, self.project)


@dataclass(slots=True)
class SpaceModel:
    """The records by id; the project and the members of each space, and what was forgotten or erased there."""

    records: dict[str, Kept] = field(default_factory=dict[str, Kept])
    projects: dict[str, str | None] = field(default_factory=dict[str, str | None])
    roles: dict[str, dict[str, Role]] = field(default_factory=dict[str, dict[str, Role]])
    forgotten: dict[str, set[tuple[str | None, str]]] = field(default_factory=dict[str, set[tuple[str | None, str]]])
    erased: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    by_holder: dict[str, dict[str, Kept]] = field(default_factory=dict[str, dict[str, Kept]])

    def judge(self, call: Call, answer: Answer) -> list[str]:
        """What is wrong with the answer: each begins with a word that says how."""
        verb: Callable[..., Check] = getattr(self, f"_{call.verb}")
        try:
            check = verb(call, *call.arguments)
        except Refused as refused:
            if answer.error is None:
                return [f"forbidden: {answer.found} instead of {refused.errors}"]
            if answer.error not in refused.errors:
                return [f"other_error: {answer.error} ({answer.words}) instead of {refused.errors}"]
            return []
        if answer.error is not None:
            return [f"refused: {answer.error} ({answer.words})"]
        return list(check(answer.found))

    def memberships(self, user: str) -> dict[str, Role]:
        """The role of somebody in each space that they are in."""
        return {name: members[user] for name, members in self.roles.items() if user in members}

    def of_holder(self, holder: str) -> Iterable[Kept]:
        """The records of a person or a space that are not erased."""
        return self.by_holder.get(holder, {}).values()

    def copies(self, user: str, record_id: str) -> list[Kept]:
        """The copies of a record in spaces."""
        found = [one for name in self.roles for one in self.of_holder(space_owner(name))]
        return [one for one in found if (one.user, one.source) == (user, record_id)]

    def shown(self, call: Call) -> set[tuple[str, str | None]]:
        """The canaries that a search of this call may find, with the space of each."""
        project = call.limits.project or call.project
        agent = call.limits.agent or DEFAULT_AGENT

        def places() -> Iterator[tuple[str | None, Kept]]:
            yield from ((None, one) for one in self.of_holder(call.owner) if one.agent == agent)
            if call.limits.agent is None:
                for name in self.memberships(call.owner):
                    yield from ((name, one) for one in self.of_holder(space_owner(name)))

        return {
            (CANARY.findall(one.now.text)[0], name)
            for name, one in places()
            if one.is_shown
            and (project is None or one.project is None or one.project == project)
            and one.within(call.limits if name is None else Limits(project=call.limits.project))
        }

    def _located(self, call: Call, record_id: str, *, changes: bool = False) -> Kept:
        """The record, if the caller may read it, or change it."""
        record = self.records.get(record_id)
        if record is None:
            raise Refused(_UNKNOWN)
        if record.holder == call.owner:
            if not record.within(call.limits):
                raise Refused(_UNKNOWN)
        else:
            role = self.roles.get(space_of(record.holder) or "", {}).get(call.owner)
            if role is None or call.limits.agent is not None or not record.within(Limits(project=call.limits.project)):
                raise Refused(_UNKNOWN)
            if record.is_erased and call.limits != NO_LIMITS:
                raise Refused(_UNKNOWN)
            is_own = record.user == call.owner or record.is_erased
            if changes and not role.includes(Role.WRITER if is_own else Role.CURATOR):
                raise Refused(_DENIED)
        if record.is_erased:
            # Within limits, an erased record is as one that never was. Only of a message it stays known where it was.
            is_known = call.limits == NO_LIMITS or record.id.startswith("msg_")
            raise Refused(_ERASED if is_known else _UNKNOWN)
        return record

    def _add(self, record: Kept) -> None:
        self.records[record.id] = record
        self.by_holder.setdefault(record.holder, {})[record.id] = record

    def _change(self, record: Kept, version: Version) -> None:
        if version != record.now:
            record.versions.append(version)

    def _erase(self, record: Kept) -> None:
        record.is_erased = True
        del self.by_holder[record.holder][record.id]
        texts = {one.text for one in record.versions}
        self.erased.setdefault(record.holder, set()).update(texts)
        self.forgotten.setdefault(record.holder, set()).update((record.project, one) for one in texts)

    def _bring_back(self, holder: str, project: str | None, text: str) -> None:
        """What is forgotten of a project is forgotten in personal records, too, and the reverse."""
        known = self.forgotten.get(holder, set())
        known -= {(one, text) for one, of_text in known if of_text == text and (not project or one in (None, project))}

    def _is_forgotten(self, holder: str, project: str | None, text: str) -> bool:
        known = self.forgotten.get(holder, set())
        return any(of_text == text and (not project or one in (None, project)) for one, of_text in known)

    def _follow(self, call: Call, record: Kept, before: Version) -> None:
        """Let the copies in spaces where the user may write say what the record says, unless they say what it never
        said."""
        ever = {one.text for one in record.versions}
        roles = self._within(call)
        for copy in self.copies(call.owner, record.id):
            role = roles.get(space_of(copy.holder) or "")
            if role is None or not role.includes(Role.WRITER) or copy.now.forgotten is not None:
                continue
            if copy.now.text not in ever or record.now.text in (before.text, copy.now.text):
                continue
            if not self._is_forgotten(copy.holder, copy.project, record.now.text):
                self._change(copy, Version(record.now.text))

    def _pin(self, call: Call, text: str, reach: Reach) -> Check:
        return self._stored(call, text, Origin.ASSISTANT, None if reach is Reach.PERSON else call.project)

    def _say(self, call: Call, session: str, text: str) -> Check:
        del session
        return self._stored(call, text, Origin.USER, call.project if call.project != PERSONAL else None)

    def _stored(self, call: Call, text: str, origin: Origin, project: str | None) -> Check:
        def check(found: str) -> Iterator[str]:
            known = self.records.get(found)
            if known is not None:  # two calls with the same words were drawn before the first was answered
                if (known.holder, known.now.text) != (call.owner, text):
                    yield f"stored_twice: {found}"
                return
            agent = call.limits.agent or DEFAULT_AGENT
            self._add(Kept(found, call.owner, project, agent, origin, [Version(text)]))

        return check

    def _get(self, call: Call, record_id: str) -> Check:
        return self._same(self._located(call, record_id))

    def _same(self, record: Kept) -> Check:
        """Compares the words and the revision that a call returned with those that the record has by now."""

        def check(found: tuple[str, int]) -> Iterator[str]:
            if found != (record.now.text, len(record.versions)):
                yield f"other_words: {found} instead of {record.now}, {len(record.versions)}"

        return check

    def _search(self, call: Call, words: Iterable[str]) -> Check:
        shown = self.shown(call)

        def check(found: frozenset[tuple[str, str | None]]) -> Iterator[str]:
            if beyond := found - shown:
                yield f"leak: {sorted(map(str, beyond))}"
            # Words that are in several places are shown in one of them.
            there = {word for word, _ in found}
            if missed := {word for word, _ in shown if word in words} - there:
                yield f"missed: {sorted(missed)}"

        return check

    _context = _search

    def _mine(self, call: Call) -> Check:
        def check(found: frozenset[tuple[str, Role]]) -> Iterator[str]:
            if found != set(self._within(call).items()):
                yield f"other_spaces: {found}"

        return check

    def _within(self, call: Call) -> dict[str, Role]:
        """The spaces that exist for the caller, with their role in each."""
        if call.limits.agent is not None:
            return {}
        limit = call.limits.project
        spaces = self.memberships(call.owner)
        return {name: role for name, role in spaces.items() if limit is None or self.projects[name] in (None, limit)}

    def _share(self, call: Call, record_id: str, name: str | None) -> Check:
        writable = [one for one, role in self._within(call).items() if role.includes(Role.WRITER)]
        named = [one for one in writable if name in (None, one)]
        if len(named) != 1:
            raise Refused(_INVALID if name is None else _DENIED)
        source = self.records.get(record_id)
        if source is None or source.holder != call.owner:
            raise Refused(_UNKNOWN)
        source = self._located(call, record_id)
        if source.now.forgotten is not None:
            raise Refused(_CONFLICT)
        holder, project, text = space_owner(named[0]), self.projects[named[0]] or source.project, source.now.text
        copies = [one for one in self.copies(call.owner, source.id) if one.holder == holder]
        if copies:
            return self._shared_again(copies[0], text)
        is_repeated = False
        if source.origin is Origin.ASSISTANT:
            is_repeated = self._is_forgotten(holder, project, text)
        if is_repeated or text in self.erased.get(holder, ()):
            raise Refused(_CONFLICT)
        if source.origin is Origin.USER:
            self._bring_back(holder, project, text)

        def check(found: tuple[str, str, str, str, str]) -> Iterator[str]:
            copy = Kept(found[0], holder, project, DEFAULT_AGENT, source.origin, [Version(text)], call.owner, source.id)
            if found != (copy.id, text, call.owner, source.id, named[0]) or copy.id in self.records:
                yield f"other_copy: {found} instead of {copy}"
            self._add(copy)

        return check

    def _shared_again(self, copy: Kept, text: str) -> Check:
        self._restored(copy)
        if copy.now.text != text:
            if self._is_forgotten(copy.holder, copy.project, text):
                raise Refused(_CONFLICT)
            self._change(copy, Version(text))

        def check(found: tuple[str, str, str, str, str]) -> Iterator[str]:
            if found != (copy.id, text, copy.user, copy.source, space_of(copy.holder)):
                yield f"other_copy: {found} instead of {copy}"

        return check

    def _update(self, call: Call, record_id: str, text: str, revision: int) -> Check:
        record = self._located(call, record_id, changes=True)
        if revision != len(record.versions):
            raise Refused("RevisionConflict")
        if record.now.forgotten is not None:
            raise Refused(_CONFLICT)
        return self._changed(call, record, Version(text))

    def _revert(self, call: Call, record_id: str, version: int) -> Check:
        record = self._located(call, record_id, changes=True)
        if not 1 <= version <= len(record.versions):
            raise Refused(_INVALID)
        target, before = record.versions[version - 1], record.now
        if target.forgotten is not None and before.forgotten is None:
            self.forgotten.setdefault(record.holder, set()).add((record.project, before.text))
        elif target.forgotten is None and (before.forgotten is not None or before.text != target.text):
            self._bring_back(record.holder, record.project, target.text)
        return self._changed(call, record, target)

    def _changed(self, call: Call, record: Kept, version: Version) -> Check:
        before = record.now
        self._change(record, version)
        if record.holder == call.owner:
            self._follow(call, record, before)
        return self._same(record)

    def _forget(self, call: Call, record_id: str) -> Check:
        record = self._located(call, record_id, changes=True)
        if record.now.forgotten is None:
            self.forgotten.setdefault(record.holder, set()).add((record.project, record.now.text))
            self._change(record, Version(record.now.text, len(record.versions) + 1))
        return self._same(record)

    def _restore(self, call: Call, record_id: str) -> Check:
        record = self._located(call, record_id, changes=True)
        self._restored(record)
        return self._same(record)

    def _restored(self, record: Kept) -> None:
        if record.now.forgotten is not None:
            self._bring_back(record.holder, record.project, record.now.text)
            self._change(record, Version(record.now.text))

    def _purge(self, call: Call, record_ids: Iterable[str]) -> Check:
        found_before: set[str] = set()
        targets: list[Kept] = []
        refusals: list[str] = []
        for one in record_ids:
            try:
                targets.append(self._located(call, one, changes=True))
            except Refused as refused:
                if _ERASED in refused.errors:
                    found_before.add(one)
                else:
                    refusals += refused.errors
        if refusals:
            # Whether a space lets them is looked at first.
            raise Refused(_DENIED if _DENIED in refusals else _UNKNOWN)
        copies = [copy for one in targets for copy in self.copies(call.owner, one.id) if one.holder == call.owner]
        gone = {one.id: one for one in (*targets, *copies)}
        for one in gone.values():
            self._erase(one)

        def check(found: frozenset[str]) -> Iterator[str]:
            if found != found_before | gone.keys():
                yield f"other_erased: {sorted(found)} instead of {sorted(found_before | gone.keys())}"

        return check

    def _create(self, call: Call, name: str, project: str | None) -> Check:
        del call
        if name in self.roles:
            raise Refused(_CONFLICT)
        self.roles[name], self.projects[name] = {}, project
        return lambda _: ()

    def _remove(self, call: Call, name: str) -> Check:
        del call
        if name not in self.roles:
            raise Refused(_MISSING)
        holder = space_owner(name)
        gone = list(self.of_holder(holder))
        # Nothing is known any more of what was there, nor what was forgotten or erased.
        self.records = {one.id: one for one in self.records.values() if one.holder != holder}
        for known in (self.by_holder, self.erased, self.forgotten):
            known.pop(holder, None)
        del self.roles[name], self.projects[name]

        def check(found: int) -> Iterator[str]:
            if found != len(gone):
                yield f"other_erased: {found} instead of {len(gone)}"

        return check

    def _join(self, call: Call, name: str, user: str, role: Role) -> Check:
        del call
        if name not in self.roles:
            raise Refused(_MISSING)
        self.roles[name][user] = role
        return lambda found: () if found is role else (f"other_role: {found}",)

    def _leave(self, call: Call, name: str, user: str) -> Check:
        del call
        if user not in self.roles.get(name, {}):
            raise Refused(_MISSING)
        del self.roles[name][user]
        return lambda _: ()
