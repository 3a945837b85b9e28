"""Where a person finds each act, and what takes it back. A new act needs a line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.web.page import example


@dataclass(frozen=True)
class Click:
    """Where the button of an act is, which is the first of its form or of these words; what its form gets; whether it
    ticks a box first; whether the view itself shows the change; and the act that takes it back."""

    address: str
    undo: str | None
    button: str = "button"
    typed: Mapping[str, str] = field(default_factory=dict[str, str])
    ticks: bool = False
    is_seen: bool = True


CLICKS = {
    "forget": Click("/ask?q=biscuit", "restore"),
    "restore": Click("/r/{forgotten}", "forget"),
    "correct": Click("/ask?q=ribbon", "go_back", typed={"text": "We launch on 14 March, and\nEve cuts the ribbon."}),
    "go_back": Click("/r/{record_id}", "go_back"),
    "pin": Click("/r/{message}", "forget", is_seen=False),
    "keep": Click("/known?show=found", "go_back", button="button:has-text('Keep')", ticks=True),
    "replace": Click("/known?show=disagree", "go_back"),
    "keep_both": Click("/known?show=disagree", "go_back"),
    "close": Click("/timeline?open=1", "restore", button="button:has-text('Done')"),
    "move_session": Click("/s/walk", "move_session"),
    "rename_project": Click("/house", "move_back", typed={"old": example.ALLOTMENT, "new": example.CLOCK}),
    "exclude_folder": Click("/house", "include_folder"),
    "not_this": Click("/ask?q=biscuit", "after_all", is_seen=False),
    "pause": Click("/now", "resume"),
}
"""The first button of each act, and what takes it back. Every undo is one of them, or one of the next."""
UNDO_ALONE = {"move_back", "after_all", "include_folder", "resume"}
"""Acts that take another one back, and have no button until then."""


def without_moved(text: str) -> str:
    """The text of a view, without what every change moves on."""
    moved = r"(?s)History.*|This machine.*|Assistants\s.*|Who changed what.*|Tokens and browsers.*|Shown.*?Tags"
    return " ".join(re.sub(moved, "", text).split())
