"""Recognises words that are already stored because they came in another way: a hook, a tool, an import. Pure.

One turn may be reported in several ways, in any order. A repeated report of one way has the same `client_key`, which
the store recognises. These are the rules between two ways. The words and the role must be the same, and the turn:

- A hook reports a prompt the moment it is made. A message that was recorded after that moment is the same prompt; one
that was recorded before is an earlier one. The same holds for a reply, which a tool may also record in the turn itself.
- A tool reports a turn after it has happened. A prompt is the same if it has no reply yet, or the same reply as in the
call; a reply is the same if it answers the same prompt.

A person who says "continue" three times has said it three times.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kalito_mcp.domain.imports import IMPORTED_BY, StoredTurn
from kalito_mcp.domain.records import HOOK_KEY, Role
from kalito_mcp.ports.conversations import MessageDraft

_SPOKEN: Final = (Role.USER, Role.ASSISTANT)


class Way(Enum):
    """How words came in."""

    HOOK = "hook"
    TOOL = "tool"
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message of a call. If `happened_at` is None, it is reported after it has happened."""

    role: Role
    words: str
    client_key: str | None
    way: Way
    happened_at: int | None = None


def way_of(client_key: str | None, client: str | None) -> Way:
    """By which way a message came."""
    if client_key is not None and client_key.startswith(HOOK_KEY):
        return Way.HOOK
    return Way.IMPORT if client == IMPORTED_BY else Way.TOOL


def incoming(drafts: Sequence[MessageDraft]) -> list[Incoming]:
    """The drafts in the form in which they are compared."""
    ways = [way_of(draft.client_key, draft.client) for draft in drafts]
    return [
        Incoming(
            draft.role,
            words_of(draft.text),
            draft.client_key,
            way,
            happened_at=draft.created_at if way is Way.HOOK else None,
        )
        for draft, way in zip(drafts, ways, strict=True)
    ]


def words_of(text: str) -> str:
    """The text without its spacing, which differs from way to way."""
    return " ".join(text.split())


def recognised(
    call: Sequence[Incoming], stored: Sequence[StoredTurn], claimed: Mapping[int, str | None]
) -> dict[int, StoredTurn]:
    """The messages of the call that are stored, by their places in it, each stored message at most once.

    `stored` are the newest messages of the session, in order. `claimed` are those that a hook has already reported:
    their numbers, with the key of the report.
    """
    known = {one.client_key for one in stored if one.client_key is not None}
    found: dict[int, StoredTurn] = {}
    taken: set[int] = set()
    for place, one in enumerate(call):
        if one.way is Way.IMPORT or one.role not in _SPOKEN or not one.words or one.client_key in known:
            continue
        for at in _order(one, len(stored)):
            turn = stored[at]
            is_other_way = way_of(turn.client_key, turn.client) is not one.way
            if not is_other_way or turn.role is not one.role or words_of(turn.text) != one.words:
                continue
            if turn.number in taken or not _is_same_turn(call, place, stored, at):
                continue
            if one.way is Way.HOOK and claimed.get(turn.number, one.client_key) != one.client_key:
                continue
            found[place] = turn
            taken.add(turn.number)
            break
    return found


def _order(one: Incoming, count: int) -> Iterable[int]:
    """Hooks report turns in order, even when they are late; a tool reports the last ones."""
    return range(count) if one.way is Way.HOOK else reversed(range(count))


def _is_same_turn(call: Sequence[Incoming], place: int, stored: Sequence[StoredTurn], at: int) -> bool:
    is_same = _is_told_by_hook if call[place].way is Way.HOOK else _is_told_by_tool
    return is_same(call, place, stored, at)


def _is_told_by_hook(call: Sequence[Incoming], place: int, stored: Sequence[StoredTurn], at: int) -> bool:
    happened_at = call[place].happened_at
    assert happened_at is not None  # noqa: S101 - a hook's
    if stored[at].recorded_at >= happened_at:
        return True
    prompts = [later for later in stored[at + 1 :] if later.role is Role.USER]
    return call[place].role is Role.ASSISTANT and not any(prompt.created_at <= happened_at for prompt in prompts)


def _is_told_by_tool(call: Sequence[Incoming], place: int, stored: Sequence[StoredTurn], at: int) -> bool:
    if call[place].role is Role.USER:
        reply = next((one for one in stored[at + 1 :] if one.role in _SPOKEN), None)
        if reply is None or reply.role is Role.USER:
            return reply is None
        answer = next((one for one in call[place + 1 :] if one.role in _SPOKEN), None)
        return answer is not None and answer.role is Role.ASSISTANT and answer.words == words_of(reply.text)
    prompt = next((one for one in reversed(stored[:at]) if one.role is Role.USER), None)
    prompted = next((one for one in reversed(call[:place]) if one.role is Role.USER), None)
    if prompted is not None:
        return prompt is not None and words_of(prompt.text) == prompted.words
    return all(one.role is not Role.USER for one in stored[at + 1 :])
