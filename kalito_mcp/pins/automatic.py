"""Finds the sentences of a message that become pins by themselves, and the code. Pure.

What a sentence is, `kalito_mcp.kinds` says. Precision comes before recall: search still finds the message of a missed
pin. Questions, quotations and sentences that may contain a secret are never pinned. Code in any common language is
pinned if its author says that it works or is final.
Source: the idea is `autoExtractSemanticPins` of the memory manager's reference.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.kinds import OF_ITS_SESSION, Kind
from kalito_mcp.domain.records import PIN_IMPORTANCE, MessageWithImportance, Origin, PinType, Role
from kalito_mcp.domain.validation import Policy
from kalito_mcp.kinds.cues import names_its_speaker, says_for_good
from kalito_mcp.kinds.judged import CHANGED_FROM, PINNED_FROM, Judged, Sentence
from kalito_mcp.kinds.own import Own
from kalito_mcp.pins.code import chooses_code, own_code
from kalito_mcp.pins.found import ANSWERS, FoundPin, pin_key
from kalito_mcp.pins.reach import reach_of, reach_of_request
from kalito_mcp.text.code_blocks import FENCE, code_blocks
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.own_words import quotes_a_clause
from kalito_mcp.text.sentences import cut, split_sentences, without_opener, without_request
from kalito_mcp.text.times.annotation import languages_of, with_dates


@dataclass(frozen=True, slots=True)
class AutoPinPolicy(Policy):
    """Whether messages are searched, the most pins of one message, and the most characters of a pin; and the same of
    what somebody explicitly asks to remember.

    Words that are longer are cut, and code is not pinned.
    """

    enabled: bool = True
    max_per_message: int = 2
    max_chars: int = 240
    max_requests: int = 8
    max_request_chars: int = 600
    max_code_chars: int = 600


DEFAULT_AUTO_PINS: Final = AutoPinPolicy()

_SECRET: Final = lazy(
    r"pass(?:word|phrase|code)|\bsecret|api[ _-]?key|\btoken\b|private key|\bpin (?:code|is|number)|\bssn\b|"
    r"social security|credit card|\bcvv\b|\biban\b",
    re.IGNORECASE,
)
_QUOTES: Final = '"“”„«»「」『』'
_ANNOUNCES: Final = (":", "：")
_ENDS: Final = ("?", "？", "؟", "吗。", "か。", *_ANNOUNCES)
"""Of a sentence that asks, or announces what is not in it."""

_MAX_READ: Final = 20_000
"""Characters. A longer message is probably a paste."""
_MOST_SENTENCES: Final = 80
_MIN_SENTENCE: Final = 12
_MIN_UNSPACED: Final = 5
_LEAST_IMPORTANCE: Final = 0.6
_IMPORTANCE_OF_WORTH: Final = 0.19
"""Added for what is surely worth keeping: it stays below the 0.8 of a pin that somebody asked for."""

_SHORT: Final = 80
"""Characters of a decision that may only say that something was agreed."""

_Judged = tuple[int, tuple[Sentence, Judged]]
"""A sentence with its place in the message, and what it is."""


def pinnable(message: MessageWithImportance, own: Own) -> list[Sentence]:
    """The sentences of a person's message that may be pinned, of what is the person's `own`. None of words of tools,
    documents and imports, because a pin is in every context."""
    if not may_have_pins(message):
        return []
    found = (_said(one.text) for one in own.statements if not quotes_a_clause(one.passage))
    return [Sentence(one) for one in found if _is_whole(one)][:_MOST_SENTENCES]


def quotable(message: MessageWithImportance) -> list[Sentence]:
    """The sentences of an assistant's message that may be pinned, with questions and quotations: the pin of an answer
    may quote them."""
    if not may_have_pins(message):
        return []
    prose = (words for words, _ in code_blocks(message.text[:_MAX_READ]))
    found = (_said(one) for words in prose for one in split_sentences(_without_quoted_lines(words)))
    is_assistant = not message.name
    wanted = (one for one in found if _is_long_enough(one) and not one.endswith(_ANNOUNCES))
    return [Sentence(one, is_assistant) for one in wanted][:_MOST_SENTENCES]


def may_have_pins(message: MessageWithImportance) -> bool:
    """Whether the words of the message are a person's or an assistant's."""
    return message.role != Role.SYSTEM and message.origin.distrust <= Origin.ASSISTANT.distrust


def requested_pins(
    message: MessageWithImportance,
    own: Own,
    policy: AutoPinPolicy = DEFAULT_AUTO_PINS,
    *,
    has_project: bool = False,
) -> list[FoundPin]:
    """What the person explicitly asks to remember, in the order of the text: a pin each, as if they had pinned it."""
    if not policy.enabled or message.role != Role.USER or not may_have_pins(message):
        return []
    found: dict[str, FoundPin] = {}
    for one in own.said:
        if (request := one.request) is None:
            continue
        said = without_request(request)
        if not says_for_good(said):  # "from today on" needs no date
            said = with_dates(said, message.created_at, languages_of(said))
        content = cut(_spoken_by(message, said), policy.max_request_chars)
        kind = one.judged.kind if one.judged.kind not in OF_ITS_SESSION else Kind.FACT
        pin = FoundPin(
            content=content,
            pin_type=PinType.MANUAL,
            importance=PIN_IMPORTANCE,
            client_key=pin_key(content),
            reach=reach_of_request(one, has_project=has_project),
            kind=kind,
        )
        found.setdefault(pin.client_key, pin)
    return list(found.values())[: policy.max_requests]


def found_pins(
    message: MessageWithImportance,
    sentences: Sequence[Sentence],
    judged: Sequence[Judged],
    policy: AutoPinPolicy = DEFAULT_AUTO_PINS,
    *,
    proposed: Callable[[int], str | None] = lambda _: None,
    has_project: bool = False,
    confirms_code: bool = False,
) -> list[FoundPin]:
    """The pins of one message, in the order of its text; most messages have no pins.

    `judged` is what the `pinnable` or `quotable` sentences are. Only the `max_per_message` that are worth most are
    returned; ties go to the earlier. A short decision comes with what it answers, which `proposed` says of its place
    among the sentences. Of a message that `confirms_code` which is pinned, what only says which code is not pinned as
    well.
    """
    if not policy.enabled:
        return []
    found: dict[str, FoundPin] = {}
    # At most one block per message: an answer with five listings is one thing, shown in parts.
    has_code = message.role == Role.USER and FENCE in message.text
    code = own_code(list(code_blocks(message.text[:_MAX_READ])), policy.max_code_chars) if has_code else None
    said: Iterable[_Judged] = enumerate(zip(sentences, judged, strict=True))
    if confirms_code or code:
        said = ((at, (one, what)) for at, (one, what) in said if not chooses_code(one.text))
    for pin in (*_each(message, said, policy, proposed, has_project=has_project), *([code] if code else [])):
        found.setdefault(pin.client_key, pin)
    pins = list(found.values())
    best = sorted(range(len(pins)), key=lambda at: (-pins[at].worth, at))[: policy.max_per_message]
    return [pins[at] for at in sorted(best)]


def _each(
    message: MessageWithImportance,
    said_and_judged: Iterable[_Judged],
    policy: AutoPinPolicy,
    proposed: Callable[[int], str | None],
    *,
    has_project: bool,
) -> Iterator[FoundPin]:
    for at, (sentence, what) in said_and_judged:
        least = CHANGED_FROM if what.kind is Kind.CHANGE else PINNED_FROM
        if what.worth < least or _SECRET().search(sentence.text) or not _is_whole(sentence.text):
            continue
        said = with_dates(sentence.text, message.created_at, languages_of(sentence.text))
        is_short = what.kind is Kind.DECISION and message.role == Role.USER and len(said) <= _SHORT
        if is_short and (proposal := proposed(at)) and not _SECRET().search(proposal):
            said = f"{said}{ANSWERS}{proposal})"
        content = cut(_spoken_by(message, said), policy.max_chars)
        yield FoundPin(
            content=content,
            pin_type=PinType.AUTO,
            importance=round(_LEAST_IMPORTANCE + _IMPORTANCE_OF_WORTH * what.worth, 3),
            worth=what.worth,
            client_key=pin_key(content),
            reach=reach_of(what, has_project=has_project, pin_type=PinType.AUTO, origin=message.origin),
            kind=what.kind,
        )


def _spoken_by(message: MessageWithImportance, said: str) -> str:
    """The words with their speaker, if the message names one."""
    speaker = " ".join(message.name.split()) if message.name else ""
    return f"{speaker}: {said}" if speaker else said


def _said(sentence: str) -> str:
    return without_request(without_opener(sentence))


def _is_whole(said: str) -> bool:
    """Whether it is a statement that can be understood alone."""
    is_quoted = said.startswith(tuple(_QUOTES)) or sum(said.count(mark) for mark in _QUOTES) % 2 == 1
    return _is_long_enough(said) and not said.endswith(_ENDS) and not is_quoted


def _is_long_enough(said: str) -> bool:
    """Whether it says something: "Done." and "Ok?" do not."""
    least = _MIN_SENTENCE if said.isascii() else _MIN_UNSPACED
    return len(said) >= least or names_its_speaker(said)


def _without_quoted_lines(prose: str) -> str:
    if ">" not in prose:
        return prose
    return "\n".join(line for line in prose.split("\n") if not line.lstrip().startswith(">"))
