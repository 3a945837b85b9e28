"""Long lists of ids, and what else a change of records affected: alike in text and in structured content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.memory import Memory
from kalito_mcp.server.tools.shapes import StillSaying

SHOWN: Final = 10
"""How many of a list are named; of the others, the number."""

EXCERPT_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class Derived:
    """What was made from changed records: the ids of the summaries that changed with them, and the pins that did
    not."""

    rewritten: Sequence[str] = ()
    still_says: Sequence[StillSaying] = field(default_factory=list[StillSaying])

    def lines(self) -> list[str]:
        """The same as text."""
        found = [f"Updated with it: {listed(self.rewritten)}."] if self.rewritten else []
        found += [f"{one.record_id} was made from {one.made_from} and still says: {one.text}" for one in self.pins]
        hidden = len(self.still_says) - len(self.pins)
        return [*found, f"So do {hidden} more."] if hidden else found

    @property
    def pins(self) -> list[StillSaying]:
        """The pins that are named."""
        return list(self.still_says[:SHOWN])


async def derived_from(memory: Memory, records: Sequence[MemoryRecord]) -> Derived:
    """What was made from all of these records."""
    found = await memory.records.derived_from_all(records)
    pins = [StillSaying(record_id=pin.id, made_from=source, text=excerpt(pin.text)) for pin, source in found.pins]
    return Derived(found.summary_ids, pins)


def excerpt(text: str) -> str:
    """The first characters of a text."""
    return text[:EXCERPT_CHARS]


def listed(ids: Sequence[str]) -> str:
    """The first ten as text, and how many more there are."""
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more if ids else "nothing"


def shown(ids: Sequence[str]) -> list[str]:
    """The first ten as structured content."""
    return list(ids[:SHOWN])


def more(**lists: Sequence[object]) -> Mapping[str, int] | None:
    """By list, how many are not named; None if all are."""
    return {name: len(one) - SHOWN for name, one in lists.items() if len(one) > SHOWN} or None
