"""The kinds of sentences, and judgements of them."""

from typing import Final, NamedTuple

from kalito_mcp.domain.kinds import Kind

PINNED_FROM: Final = 0.65
"""The worth from which a sentence is pinned automatically (see `python -m bench.kinds`)."""

CHANGED_FROM: Final = 0.55
"""The same of a change: without it, what it ends goes on being known as true."""

NOTED_FROM: Final = 0.5
"""The same of a note: somebody asked to remember it."""

PERSONAL_FROM: Final = 0.88
"""How likely a sentence is the person's that leaves its project."""


class Sentence(NamedTuple):
    """A sentence, and whether the assistant said it."""

    text: str
    is_assistant: bool = False


class Judged(NamedTuple):
    """What a sentence is: its likeliest kind among those that are kept, and how likely (0 to 1) somebody would keep it,
    it is the person's rather than the project's, it announces words of somebody else that follow it, and it asks to
    remember something or to act in some way for good."""

    kind: Kind
    worth: float
    is_personal: float
    announces: float = 0.0
    asks_to_keep: float = 0.0
