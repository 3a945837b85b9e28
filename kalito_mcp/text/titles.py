"""Titles of conversations: a given name, or else the user's first words. Pure.

A title has only the user's own words. Words of tools, documents and imports are never part of one, so none of them has
to be judged, as `safety.trust` judges what a context shows.
"""

import re
from collections.abc import Iterable
from typing import Final

from kalito_mcp.text.host_blocks import heard

TITLE_CHARS: Final = 50
FIRST_MESSAGES: Final = 12
"""Of a conversation; its title is in one of them, if it has one."""
READ_CHARS: Final = 16_000
"""Of each of them."""

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_MIXED: Final = re.compile(r"(?=[a-z]*[0-9])(?=[0-9]*[a-z])[0-9a-z]{12,}", re.IGNORECASE)
_COMMAND: Final = re.compile(r"/[a-z][\w:-]*(?=\s|$)", re.IGNORECASE)
_FENCE: Final = re.compile(r"^\s*(```|~~~).*?^\s*\1[^\n]*$|^\s*(```|~~~).*", re.MULTILINE | re.DOTALL)
_MARKS: Final = " \t#>*-_=`\"'“”„«»"
_UNSPACED: Final = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
_WORD: Final = re.compile(r"[^\W_]")
_FEWEST_WORDS: Final = 3
_SHORT: Final = 8
_SHORT_OF_TIME: Final = 13


def is_named(session_id: str) -> bool:
    """Whether a person or a model chose this id, as `trip-planning`. Hosts use UUIDs, numbers and hashes."""
    return not _UUID.search(session_id) and not _MIXED.search(session_id) and any(map(str.isalpha, session_id))


def short_id(session_id: str) -> str:
    """The beginning of a UUID, by which people and models may name its session; another id whole.

    Version 7 needs thirteen digits: UUIDs of the same minute share the first eight.
    """
    found = _UUID.fullmatch(session_id)
    if found is None:
        return session_id
    return session_id[: _SHORT_OF_TIME if found[1] == "7" else _SHORT]


def is_short_id(text: str) -> bool:
    """Whether `short_id` may have returned this for a UUID."""
    return re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4})?", text) is not None


def title_of(session_id: str, first_texts: Iterable[str]) -> str | None:
    """The title of a session: at most fifty characters, on one line. None if it has no name and no words.

    `first_texts` are the user's first messages, as far as they may be shown. The first one with three words gives the
    title, or else the first with any; greetings have fewer. Commands of a host, and what it added, are no words.
    """
    if is_named(session_id):
        return session_id
    few: str | None = None
    for text in first_texts:
        line = first_line(text)
        if len(line.split()) >= _FEWEST_WORDS or _UNSPACED.search(line):
            return _cut(line)
        few = few or line
    return _cut(few) if few else None


def first_line(text: str) -> str:
    """The first line with words outside of code; empty if the text is a host's."""
    said = heard(text).words.lstrip()
    if said.startswith("<") or _COMMAND.match(said):
        return ""
    lines = [" ".join(line.replace("**", "").split()).strip(_MARKS) for line in _FENCE.sub("", said).splitlines()]
    return next((line for line in lines if _WORD.search(line)), "")


def _cut(line: str) -> str:
    """The line, or its first words and an ellipsis."""
    if len(line) <= TITLE_CHARS:
        return line
    begun = line[:TITLE_CHARS]
    words = begun.rpartition(" ")[0]
    kept = words if len(words) > TITLE_CHARS // 2 else begun[: TITLE_CHARS - 1]
    return f"{kept.rstrip(' ,;:.-–—(')}…"
