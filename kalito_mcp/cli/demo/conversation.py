"""The conversation that `kalito-mcp demo` plays: Maya and her assistant, twelve days in March. Reads one file, once.

What they say is in `conversation.txt`. It is fiction, and a fair test of a memory: two threads cross (her grandmother's
move, a small web page), later facts replace two earlier ones, and the questions on the last day ask for things said
some forty turns earlier.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

USER_NAME: Final = "Maya"

Speaker = Literal["user", "assistant"]

_SCRIPT: Final = Path(__file__).with_name("conversation.txt")
_DAY: Final = re.compile(r"^== (.+)$", re.MULTILINE)
_SPEAKER: Final = re.compile(rf"^({USER_NAME}|Assistant): ", re.MULTILINE)
# A turn takes a minute, plus a minute for every this many characters.
_CHARACTERS_PER_MINUTE: Final = 150


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the script, numbered from 1. `is_key`: it states a fact that is used later, or asks for one."""

    number: int
    role: Speaker
    text: str
    at: datetime
    is_key: bool


@dataclass(frozen=True, slots=True)
class PlannedPin:
    """A pin that Maya makes right after turn `turn`; `importance` is in [0, 1]."""

    turn: int
    content: str
    importance: float


@dataclass(frozen=True, slots=True)
class Question:
    """Turn `turn` asks for what turn `answered_by` said in the words `fact`. `also` are other wordings of it, as an
    assistant sends them."""

    turn: int
    answered_by: int
    fact: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedSearch:
    """A search that must find turn `turn`, which says `fact`."""

    query: str
    turn: int
    fact: str


PINS: Final = (
    PlannedPin(turn=3, content="Maya reads on the tram: put the next step first in every answer.", importance=0.8),
    PlannedPin(
        turn=9, content="Nana (Rosa) is allergic to sulfa drugs: four days in hospital in 2011.", importance=1.0
    ),
    PlannedPin(
        turn=49,
        content="Decided on 9 March: Nana moves to Linden Court, flat 4, from 16 March. Not Birchwood House.",
        importance=0.9,
    ),
)

QUESTIONS: Final = (
    Question(turn=59, answered_by=9, fact="allergic to sulfa drugs"),
    Question(turn=63, answered_by=19, fact="runs on port 8471"),
    Question(turn=65, answered_by=51, fact="19 March at 10:15", also=("the clinic appointment is on ... at ...",)),
    Question(turn=67, answered_by=22, fact="def is_overdue(loan, today)"),
)

SEARCHES: Final = (
    PlannedSearch(query="who has a spare key?", turn=11, fact="Mrs Dhillon"),
    PlannedSearch(query="what did Birchwood say about pets?", turn=45, fact="no pets, no exceptions"),
    PlannedSearch(query="van booking reference", turn=53, fact="HV-3382"),
)


def _conversation() -> tuple[Turn, ...]:
    key_turns = {pin.turn for pin in PINS} | {search.turn for search in SEARCHES}
    for question in QUESTIONS:
        key_turns |= {question.turn, question.answered_by}
    turns: list[Turn] = []
    _, *days = _DAY.split(_SCRIPT.read_text(encoding="utf-8"))
    for begins, day in zip(days[::2], days[1::2], strict=True):
        at = datetime.fromisoformat(begins).replace(tzinfo=UTC)
        _, *said = _SPEAKER.split(day)
        for speaker, text in zip(said[::2], map(str.strip, said[1::2]), strict=True):
            number = len(turns) + 1
            role: Speaker = "user" if speaker == USER_NAME else "assistant"
            turns.append(Turn(number, role, text, at, is_key=number in key_turns))
            at += timedelta(minutes=1 + len(text) // _CHARACTERS_PER_MINUTE)
    return tuple(turns)


CONVERSATION: Final = _conversation()
