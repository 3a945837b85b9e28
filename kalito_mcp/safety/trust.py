"""Keeps text out of a context because of its origin. Pure.

Words of tools, documents and imports that read like an instruction to the assistant are withheld unless
somebody asks for them. This is hygiene, not a defence: no filter finds what a clever text hides. That is why all
remembered text is fenced, labelled with its origin and never called an instruction.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Origin, SessionView, SummaryMethod
from kalito_mcp.safety.instructions import is_instruction_like


class _Remembered(Protocol):
    @property
    def origin(self) -> Origin: ...


Part = TypeVar("Part", bound=_Remembered)


def is_withheld(origin: Origin, text: str) -> bool:
    """Whether a context leaves this text out: it reads like an instruction, and neither user nor assistant wrote it."""
    return origin.distrust >= Origin.TOOL.distrust and is_instruction_like(text)


def is_name_withheld(origin: Origin, name: str | None) -> bool:
    """The same for the name of a speaker or the title of a document: what it names is shown without it."""
    return bool(name) and is_withheld(origin, name or "")


def trusted(view: SessionView) -> tuple[SessionView, SessionView]:
    """The view without the withheld parts, and these."""
    tail, no_tail = _divided(view.tail, (message.text for message in view.tail))
    pins, no_pins = _divided(view.pins, (pin.content for pin in view.pins))
    judged = [(one, _trusted_summary(one)) for one in view.summaries]
    summaries = tuple(kept for _, kept in judged if kept is not None)
    withheld = SessionView(no_tail, no_pins, tuple(one for one, kept in judged if kept is None))
    return SessionView(tuple(map(_without_name, tail)), pins, summaries), withheld


def _without_name(message: MessageWithImportance) -> MessageWithImportance:
    return replace(message, name=None) if is_name_withheld(message.origin, message.name) else message


def _trusted_summary(summary: ConversationSummary) -> ConversationSummary | None:
    """The summary without the turns that read like an instruction, if words of tools may be in it. None: nothing is
    left. Its turns are judged one by one: together, with a speaker before each, most read like an instruction."""
    if summary.method != SummaryMethod.EXTRACTIVE:
        return None if is_withheld(summary.origin, summary.summary) else summary
    turns = summary.summary.split("\n")
    kept = [turn for turn in turns if not is_withheld(summary.origin, turn)]
    if len(kept) == len(turns):
        return summary
    return replace(summary, summary="\n".join(kept)) if kept[1:] else None


def _divided(parts: Iterable[Part], texts: Iterable[str]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The parts that are kept, and those that are withheld."""
    judged = [(part, is_withheld(part.origin, text)) for part, text in zip(parts, texts, strict=True)]
    return tuple(one for one, is_out in judged if not is_out), tuple(one for one, is_out in judged if is_out)
