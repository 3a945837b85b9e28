"""The digest of a conversation as its author states it: what was decided, learned and done, and what is open. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.errors import InvalidInput

MOST_SENTENCES: Final = 12
"""Of each list."""
MOST_CHARS: Final = 400
"""Of a sentence."""
MOST_SUMMARY_CHARS: Final = 4_000
"""Of the summary: a longer one would fit into few contexts."""

_KINDS: Final[Mapping[str, Kind]] = {
    "decided": Kind.DECISION,
    "learned": Kind.FACT,
    "done": Kind.OUTCOME,
    "open": Kind.OPEN,
}

LISTS: Final = tuple(_KINDS)


@dataclass(frozen=True, slots=True)
class Digest:
    """Short whole sentences, in four lists. `open` is None if nobody says what is open, and empty if nothing is."""

    decided: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    open: tuple[str, ...] | None = None

    @property
    def sentences(self) -> list[tuple[Kind, str]]:
        """All sentences, each on one line and with its kind, in the order of the lists."""
        return [(kind, " ".join(one.split())) for name, kind in _KINDS.items() for one in getattr(self, name) or ()]

    def check(self) -> None:
        """Raise InvalidInput if a list has more than 12 sentences, or a sentence is blank or has more than 400
        characters."""
        for name in _KINDS:
            said = getattr(self, name) or ()
            if len(said) > MOST_SENTENCES:
                raise InvalidInput(
                    f"{name} has {len(said)} sentences; send at most {MOST_SENTENCES}, those that the next "
                    "conversation needs"
                )
            for place, one in enumerate(said, 1):
                if not one.strip():
                    raise InvalidInput(f"sentence {place} of {name} is blank; leave it out")
                if len(one) > MOST_CHARS:
                    raise InvalidInput(
                        f"sentence {place} of {name} has {len(one):,} characters; send at most {MOST_CHARS}, or say it "
                        "in two"
                    )

    def text(self, summary: str | None = None) -> str | None:
        """The summary, and the sentences below the headings of an automatic digest; None if there is neither. Raises
        InvalidInput if the summary has more than 4,000 characters, and see `check`."""
        self.check()
        if summary is not None and len(summary.strip()) > MOST_SUMMARY_CHARS:
            raise InvalidInput(
                f"summary has {len(summary.strip()):,} characters; send at most {MOST_SUMMARY_CHARS:,}, or contexts "
                "have no room for it"
            )
        lines = [] if summary is None else [summary.strip()]
        for name, kind in _KINDS.items():
            below = [text for of_kind, text in self.sentences if of_kind is kind]
            lines += [f"{name.capitalize()}:", *below] if below else []
        return "\n".join(lines) or summary


@dataclass(frozen=True, slots=True)
class KeptDigest:
    """What was stored of a digest: the ids of its pins, without those that were there, and of the open points of the
    conversation that are closed. `redacted` are the kinds of secrets that were removed."""

    pins: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
