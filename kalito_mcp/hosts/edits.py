"""How the text of one file changes when kalito is written into it, and when it is taken out again. Pure.

What is there and is not ours stays. Our own entry keeps what its user added to it: variables, options after `serve`,
further fields.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from kalito_mcp.hosts.documents import Key, NotEditable, Place, Writer, value_at
from kalito_mcp.hosts.facts import HOOKS_VARIABLE, SERVER_NAME, EntryFile, HookFile, Launcher
from kalito_mcp.hosts.ownership import is_our_entry, is_our_hook, program_of
from kalito_mcp.text.plurals import plural

Part = EntryFile | HookFile
_ANY: Final = Launcher("/kalito-mcp", "/kalito-hook")


@dataclass(frozen=True, slots=True)
class Wish:
    """The wanted content of the files: with `variables` in the entry's environment, and with hooks or without."""

    launcher: Launcher
    has_hooks: bool
    variables: Mapping[str, str]


def written(parts: Sequence[Part], text: str, wish: Wish) -> str:
    """The text with our entry and hooks. The text itself if they are there.

    Raises:
        NotReadable: the text is not of its format. NotEditable: it has something else where ours should be.
    """
    for part in parts:
        if isinstance(part, EntryFile):
            text = _with_entry(part, text, wish)
        elif wish.has_hooks:
            text = _with_hooks(part, text, wish.launcher)
        else:
            text = _without_hooks(part, text)
    return text


def removed(parts: Sequence[Part], text: str, before: str | None) -> str | None:
    """The text without what is ours. `before` is the file as it was before ours came into it, None if it did not exist.

    It is `before` if nothing else has changed since. It is None if the file is to go: there was none before, and
    nothing of anybody else is in it.

    Raises:
        NotReadable: the text is not of its format. NotEditable: something in it is there twice.
    """
    bare = _bare(parts, text)
    if before is not None and _was_only_ours(parts, bare, before):
        return before
    writer = parts[0].writer
    earlier = _parsed(writer, before)
    for place in _containers(parts, text):
        if value_at(writer.parse(bare), place) in ({}, [], None) and value_at(earlier, place) is None:
            bare = writer.remove(bare, place)
    if before is None and _is_empty(parts, writer.parse(bare)):
        return None
    return bare


def summary_of(parts: Sequence[Part], before: str, after: str) -> str:
    """The differences of our parts after a change, in words: "adds server kalito and 8 hooks"."""
    said = []
    for part in parts:
        if isinstance(part, EntryFile):
            place, name = (*part.servers, SERVER_NAME), f"server {SERVER_NAME}"
            old, new = (value_at(part.writer.parse(text), place) for text in (before, after))
        else:
            old, new = (_our_hooks(part, text) for text in (before, after))
            name = plural(len(new or old), "hook")
        if old != new:
            said.append((_verb(old, new), name))
    verbs = {verb for verb, _ in said}
    if len(verbs) == 1:
        return f"{verbs.pop()} {' and '.join(name for _, name in said)}"
    return " and ".join(f"{verb} {name}" for verb, name in said) or "changes nothing of kalito"


def _verb(old: Any, new: Any) -> str:
    return "changes" if old and new else "adds" if new else "removes"


def _our_hooks(part: HookFile, text: str) -> dict[str, list[Any]]:
    """The hooks of ours, by event."""
    events = _events(part, part.writer.parse(text)).items()
    return {event: ours for event, hooks in events if (ours := [one for one in hooks if _is_ours(one)])}


def has_ours(parts: Sequence[Part], text: str) -> bool:
    """Whether anything in the text is ours. Raises NotReadable if it is not of its format."""
    return has_entry(parts, text) or bool(our_events(parts, text))


def has_entry(parts: Sequence[Part], text: str) -> bool:
    """Whether our MCP entry is in the text."""
    return any(
        isinstance(part, EntryFile) and is_our_entry(value_at(part.writer.parse(text), (*part.servers, SERVER_NAME)))
        for part in parts
    )


def our_events(parts: Sequence[Part], text: str) -> list[str]:
    """The events that have a hook of ours."""
    return [
        event
        for part in parts
        if isinstance(part, HookFile)
        for event, hooks in _events(part, part.writer.parse(text)).items()
        if any(_is_ours(one) for one in hooks)
    ]


def command_in(parts: Sequence[Part], text: str) -> str | None:
    """The program that our MCP entry starts."""
    for part in parts:
        if isinstance(part, EntryFile):
            entry = value_at(part.writer.parse(text), (*part.servers, SERVER_NAME))
            if is_our_entry(entry):
                command = entry.get("command", entry.get("cmd"))
                command = command.get("path") if isinstance(command, dict) else command
                words = command if isinstance(command, list) else [command]
                return str(words[0]) if words else None
    return None


def programs_in(parts: Sequence[Part], text: str) -> list[str]:
    """The programs that our hooks start, each once."""
    hooks = [
        hook
        for part in parts
        if isinstance(part, HookFile)
        for among in _events(part, part.writer.parse(text)).values()
        for one in among
        for hook in (one["hooks"] if isinstance(one, dict) and isinstance(one.get("hooks"), list) else [one])
        if is_our_hook(hook)
    ]
    return list(dict.fromkeys(found for hook in hooks if (found := program_of(hook)) is not None))


def _with_entry(part: EntryFile, text: str, wish: Wish) -> str:
    place = (*part.servers, SERVER_NAME)
    existing = value_at(part.writer.parse(text), place)
    if existing is not None and not is_our_entry(existing):
        raise NotEditable(f'another server is named "{SERVER_NAME}" there; rename or remove it first')
    entry = _merged(existing or {}, part, wish)
    if entry != existing:
        text = _put(part.writer, text, place, entry)
    return text


def _merged(existing: Mapping[str, Any], part: EntryFile, wish: Wish) -> dict[str, Any]:
    """Our entry, with what its user added to it."""
    entry: dict[str, Any] = {**existing, **part.entry(wish.launcher)}
    for name in ("args", "command"):  # some hosts have one list of program and arguments
        old, new = existing.get(name), entry.get(name)
        if isinstance(old, list) and isinstance(new, list) and "serve" in old:
            entry[name] = new + old[old.index("serve") + 1 :]
    kept = existing.get(part.environment)
    if not isinstance(kept, dict | None):
        raise NotEditable(f"{SERVER_NAME}.{part.environment} is not an object")
    variables = {name: value for name, value in (kept or {}).items() if name != HOOKS_VARIABLE} | dict(wish.variables)
    if variables or isinstance(kept, dict):
        entry[part.environment] = variables
    return entry


def _with_hooks(part: HookFile, text: str, launcher: Launcher) -> str:
    wanted = part.hooks(launcher)
    for event, hooks in _events(part, part.writer.parse(text)).items():
        if [one for one in hooks if _is_ours(one)] != [wanted.get(event)]:
            text = _without_event(part, text, event, is_kept=event in wanted)
    for place, value in part.header:
        if value_at(part.writer.parse(text), place) is None:
            text = _put(part.writer, text, place, value)
    for event, hook in wanted.items():
        hooks = _events(part, part.writer.parse(text)).get(event, [])
        if hook not in hooks:
            text = _put(part.writer, text, (*part.events, event, len(hooks)), hook)
    return text


def _without_hooks(part: HookFile, text: str) -> str:
    for event in _events(part, part.writer.parse(text)):
        text = _without_event(part, text, event, is_kept=False)
    return text


def _without_event(part: HookFile, text: str, event: str, *, is_kept: bool) -> str:
    """The text without our hooks of an event, and without the event if they were all it had, unless it is kept."""
    place: Place = (*part.events, event)
    hooks = _events(part, part.writer.parse(text))[event]
    if not any(_is_ours(one) for one in hooks):
        return text
    for number in reversed(range(len(hooks))):
        group = hooks[number]
        if not _is_ours(group):
            continue
        inner = group.get("hooks") if isinstance(group, dict) else None
        others = isinstance(inner, list) and not all(is_our_hook(one) for one in inner)
        if not others:
            text = part.writer.remove(text, (*place, number))
            continue
        for at in reversed(range(len(group["hooks"]))):
            if is_our_hook(group["hooks"][at]):
                text = part.writer.remove(text, (*place, number, "hooks", at))
    if not is_kept and not value_at(part.writer.parse(text), place):
        text = part.writer.remove(text, place)
    return text


def _events(part: HookFile, document: Any) -> dict[str, list[Any]]:
    """The hooks by event. Raises NotEditable if they are not lists by event."""
    found = value_at(document, part.events)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise NotEditable(f"{'.'.join(map(str, part.events))} is not an object")
    return {event: hooks for event, hooks in found.items() if isinstance(hooks, list)}


def _is_ours(one: Any) -> bool:
    """Whether a hook, or a group of hooks, has anything of ours."""
    inner = one.get("hooks") if isinstance(one, dict) else None
    return any(is_our_hook(hook) for hook in inner) if isinstance(inner, list) else is_our_hook(one)


def _put(writer: Writer, text: str, place: Place, value: Any) -> str:
    """Put a value, and compare the whole document with what it should state now. Raises NotEditable if it differs."""
    expected = _with_value(deepcopy(writer.parse(text)), place, value)
    after = writer.put(text, place, value)
    if writer.parse(after) != expected:
        raise NotEditable("it is written in a form that cannot be added to")
    return after


def _with_value(document: Any, place: Place, value: Any) -> Any:
    if not place:
        return deepcopy(value)
    key: Key = place[0]
    if document is None:
        document = [] if isinstance(key, int) else {}
    if isinstance(document, list) and isinstance(key, int):
        below = document[key] if key < len(document) else None
        document[key : key + 1] = [_with_value(below, place[1:], value)]
    elif isinstance(document, dict):
        document[key] = _with_value(document.get(key), place[1:], value)
    return document


def _bare(parts: Sequence[Part], text: str) -> str:
    for part in parts:
        if isinstance(part, HookFile):
            text = _without_hooks(part, text)
        elif is_our_entry(value_at(part.writer.parse(text), (*part.servers, SERVER_NAME))):
            text = part.writer.remove(text, (*part.servers, SERVER_NAME))
    return text


def _was_only_ours(parts: Sequence[Part], bare: str, before: str) -> bool:
    """Whether writing ours into `before` and taking it out again leads to `bare`, too."""
    try:
        return not has_ours(parts, before) and any(
            _bare(parts, written(parts, before, Wish(_ANY, has_hooks, {}))) == bare for has_hooks in (True, False)
        )
    except ValueError:
        return False


def _containers(parts: Sequence[Part], text: str) -> list[Place]:
    """The places that writing may have made, the innermost first."""
    places = [part.servers if isinstance(part, EntryFile) else part.events for part in parts]
    for part in parts:
        if isinstance(part, HookFile):
            places += [(*part.events, event) for event in _events(part, part.writer.parse(text))]
    inner = {place[:length] for place in places for length in range(1, len(place) + 1)}
    return sorted(inner, key=len, reverse=True)


def _is_empty(parts: Sequence[Part], document: Any) -> bool:
    """Whether nothing is left but what writing puts there for itself."""
    values = [one for part in parts if isinstance(part, HookFile) for one in part.header]
    alone: Any = {}
    for place, value in values:
        if value_at(document, place) == value:
            alone = _with_value(alone, place, value)
    return bool(document == alone)


def _parsed(writer: Writer, text: str | None) -> Any:
    try:
        return None if text is None else writer.parse(text)
    except ValueError:
        return None
