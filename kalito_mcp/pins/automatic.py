"""Finds the parts of a message worth pinning: facts, dates, decisions, preferences, definitions, code. Pure.

Precision comes before recall. A sentence is pinned for its shape, never for a single word. Search still finds the
message of a missed pin. The rules (`pins.rule_sets`) read English, German, French, Spanish, Russian, Chinese and
Japanese. Code in any common language is pinned if its author says that it works or is final.
Questions, conditions, quotations, doubts and sentences that may contain a secret are never pinned.
Source: the idea is `autoExtractSemanticPins` of the memory manager's reference.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.records import MessageWithImportance, Origin, PinType, Role
from kalito_mcp.domain.validation import Policy
from kalito_mcp.pins.code import command_of, own_code
from kalito_mcp.pins.found import FoundPin, pin_key
from kalito_mcp.pins.rule_sets import ASSISTANT_RULES, PERSON_RULES, SPACED_RULES, UNSPACED_RULES, USER_RULES
from kalito_mcp.pins.rules import IMPORTANCE, PinKind, PinRule
from kalito_mcp.text.code_blocks import FENCE, CodeBlock, code_blocks
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import clauses, cut, split_sentences, without_opener, without_request
from kalito_mcp.text.times.annotation import languages_of, with_dates


@dataclass(frozen=True, slots=True)
class AutoPinPolicy(Policy):
    """Whether messages are searched, the most pins of one message, and the most characters of a pin.

    Words that are longer are cut, and code is not pinned.
    """

    enabled: bool = True
    max_per_message: int = 2
    max_chars: int = 240
    max_code_chars: int = 600


DEFAULT_AUTO_PINS: Final = AutoPinPolicy()


_SECRET: Final = lazy(
    r"pass(?:word|phrase|code)|\bsecret|api[ _-]?key|\btoken\b|private key|\bpin (?:code|is|number)|\bssn\b|"
    r"social security|credit card|\bcvv\b|\biban\b",
    re.IGNORECASE,
)
_QUOTES: Final = '"“”„«»「」『』'
# What is only felt or asked now, in a sentence with a date or a fact.
_MAY_BE_MOODS: Final = frozenset((PinKind.DATE, PinKind.FACT, PinKind.LIKING))
_OF_THE_MOMENT: Final = lazy(
    r"\b(?:worried|stuck|overwhelmed|struggling|nervous|anxious|confused|stressed|feeling|celebrat\w+|not sure|unsure|"
    r"trying to(?!.{0,99}\b(?:deadline|by \w+ \d))|juggling|reschedul\w+|"
    r"goal is to (?:\w+ ){0,2}(?:improve|get|keep|make|help|stay|continue))\b"
    r"|\b(?:love|loved|enjoy) \w+ing\b(?: (?:others|people|the community|it|that|this))?[.!, ]*(?:and|$)"
    r"|(?<!\d), and i(?:'ve| have) (?:just )?(?:added|created|implemented|updated|completed|fixed|changed)\b",
    re.IGNORECASE,
)
_DONE_ONCE: Final = lazy(
    r"\b(?:attended|participated|took part|set up|went on|volunteered at|picture of|the other day|"
    r"when i was (?:younger|little|a kid))\b",
    re.IGNORECASE,
)
_CHOOSES_FROM_WHAT_WAS_SAID: Final = lazy(
    r"\W*(?:(?:ok|okay|yes|great|then|so|and|agreed),? ){0,2}(?:let's|lets|let us|we'll|we will|i'll|i will|we|i)? ?"
    r"(?:just )?(?:go(?:ing)? with|use|keep|take|do|pick|choose|stick with|went with|decided on)"
    r" (?:that|this|it|those|both|the (?:first|second|third|last|other|former|latter|same|above))"
    r"(?: (?:one|option|version|approach|way))?(?: then| please| instead)?\W*$",
    re.IGNORECASE,
)
_REFERS_BACK: Final = lazy(
    r"(?:that's|that is|this is|it was|it's been|it has been) (?:why|how|what|truly|really|so)\b", re.IGNORECASE
)
_BEGINS_WITH_PRONOUN: Final = lazy(
    r"(?:his|her|its|their|he|she|it|they|he's|she's|it's|they're)\b|(?:i|we) (?:call|called|named) (?:him|her|it"
    r"|them)\b",
    re.IGNORECASE,
)
_CONJUNCTION: Final = lazy(r"(?:and|but|so|because|plus|also),? (?=\S)", re.IGNORECASE)
# A longer message of an assistant is a draft, a list or a lesson.
_MAX_ASSISTANT: Final = 600
_NO_PERSON: Final = lazy(
    r"assistant|claude|gpt|gemini|copilot|llama|mistral|bot\b|\bai\b|agent|kalito|model", re.IGNORECASE
)
# Only so many characters are searched: a longer message is probably a paste.
_MAX_READ: Final = 20_000
_MOST_SENTENCES: Final = 600
_MIN_SENTENCE: Final = 12
_MIN_UNSPACED: Final = 5
_MAX_NAME: Final = 60


def find_pins(message: MessageWithImportance, policy: AutoPinPolicy = DEFAULT_AUTO_PINS) -> list[FoundPin]:
    """The pins of one message, in the order of its text; most messages have none.

    Only the `max_per_message` most important are returned; ties go to the earlier. An assistant's message yields only
    decisions, and only if it is short: a long one is a draft or a lesson. A person who takes the assistant's part, in a
    conversation of two people, has a name. System messages, and words of tools, documents and imports, yield nothing,
    because a pin is in every context.
    """
    if not policy.enabled or message.role == Role.SYSTEM or message.origin.distrust > Origin.ASSISTANT.distrust:
        return []
    is_assistant = message.role == Role.ASSISTANT
    is_person = not is_assistant or bool(message.name and not _NO_PERSON().search(message.name))
    if not is_person and len(message.text) > _MAX_ASSISTANT:
        return []
    text = message.text[:_MAX_READ]
    tried = _worth_trying(text, is_person=is_person, is_assistant=is_assistant)
    if not tried and (FENCE not in text or not is_person):
        return []
    found: dict[str, FoundPin] = {}
    for pin in _search(text, message, tried, policy, is_person=is_person):
        found.setdefault(pin.client_key, pin)
    pins = list(found.values())
    best = sorted(range(len(pins)), key=lambda at: (-pins[at].importance, at))[: policy.max_per_message]
    return [pins[at] for at in sorted(best)]


def subject_of(content: str, pin_type: PinType) -> str:
    """What there is only one of, and this automatic pin says: somebody's home, a version, a function. Else empty.

    Of two automatic pins with the same subject, the newer one holds.
    """
    head, colon, rest = content.partition(": ")
    if not colon or len(head) > _MAX_NAME or "\n" in head:
        head, rest = "", content
    if pin_type == PinType.CODE:
        block = CodeBlock(head, tuple(rest.split("\n")))
        names = block.definitions()
        name = names[0].name if names else command_of(block)
        return f"code {head}: {name}" if name else ""
    plain = rest.replace("’", "'")
    for rule in _worth_trying(rest, is_person=True, is_assistant=False):
        match = rule.pattern().search(plain)
        if match is not None and (not rule.also or rule.also().search(plain)):
            of = match.groupdict().get("of") or ""
            return f"{head}: {rule.subject} {of.casefold()}" if rule.subject else ""
    return ""


def _worth_trying(text: str, *, is_person: bool, is_assistant: bool) -> list[PinRule]:
    if not is_person:
        return ASSISTANT_RULES.worth_trying(text)
    tried = (PERSON_RULES if is_assistant else USER_RULES).worth_trying(text) + SPACED_RULES.worth_trying(text)
    return tried if text.isascii() else tried + UNSPACED_RULES.worth_trying(text)


def _search(
    text: str, message: MessageWithImportance, rules: Sequence[PinRule], policy: AutoPinPolicy, *, is_person: bool
) -> Iterator[FoundPin]:
    parts = list(code_blocks(text))
    before = ""
    for prose, _ in parts:
        for sentence in split_sentences(_without_quoted_lines(prose))[:_MOST_SENTENCES] if rules else ():
            pin = _pin_of(sentence, before, message, rules, policy)
            before = sentence
            if pin:
                yield pin
    if is_person and FENCE in text:
        # At most one block per message: an answer with five listings is one thing, shown in parts.
        pin = own_code(parts, policy.max_code_chars)
        if pin:
            yield pin


def _is_of_the_moment(plain: str, kind: PinKind) -> bool:
    """Whether a sentence tells of a mood, a next step or something done once, or cannot be understood alone."""
    is_passing = _OF_THE_MOMENT().search(plain) is not None or _DONE_ONCE().search(plain) is not None
    refers_back = _CHOOSES_FROM_WHAT_WAS_SAID if kind == PinKind.DECISION else _REFERS_BACK
    return (kind in _MAY_BE_MOODS and is_passing) or refers_back().match(plain) is not None


def _pin_of(
    sentence: str, before: str, message: MessageWithImportance, rules: Sequence[PinRule], policy: AutoPinPolicy
) -> FoundPin | None:
    said = without_request(without_opener(sentence))
    said = _without_conjunction(said)
    least = _MIN_SENTENCE if said.isascii() else _MIN_UNSPACED
    if len(said) < least or said.endswith(("?", "？", ":", "：", "吗。", "か。")):
        return None
    plain = said.replace("’", "'")
    for rule in rules:
        match = rule.pattern().search(plain)
        if match is None or (rule.also and not rule.also().search(plain)):
            continue
        if rule.doubt().search(plain) or _SECRET().search(plain) or _is_quoted(plain, match.start()):
            return None
        if _is_of_the_moment(plain, rule.kind):
            return None
        prefix = f"{' '.join(message.name.split())}: " if message.name and message.name.strip() else ""
        kept = _without_conjunction(_from_clause(said, match.start(), policy.max_chars - len(prefix)))
        if rule.kind == PinKind.FACT and _BEGINS_WITH_PRONOUN().match(plain):
            # Nobody knows later who she is: the sentence before says it.
            kept = f"{without_opener(before)} {kept}"
            if not before or before.endswith(("?", "？")) or len(prefix) + len(kept) > policy.max_chars:
                return None
        content = cut(prefix + with_dates(kept, message.created_at, languages_of(kept)), policy.max_chars)
        pin_type = PinType.CONCEPT if rule.kind == PinKind.CONCEPT else PinType.AUTO
        return FoundPin(content, pin_type, IMPORTANCE[rule.kind], pin_key(content), rule.kind)
    return None


def _without_conjunction(said: str) -> str:
    conjunction = _CONJUNCTION().match(said)
    return said[conjunction.end() :] if conjunction else said


def _from_clause(said: str, start: int, max_chars: int) -> str:
    """The whole sentence if it fits; otherwise from the clause in which the match begins."""
    if len(said) <= max_chars:
        return said
    position = 0
    for clause in clauses(said):
        if position + len(clause) > start:
            break
        position += len(clause)
    return said[position:]


def _is_quoted(plain: str, start: int) -> bool:
    return sum(plain.count(mark, 0, start + 1) for mark in _QUOTES) % 2 == 1


def _without_quoted_lines(prose: str) -> str:
    if ">" not in prose:
        return prose
    return "\n".join(line for line in prose.split("\n") if not line.lstrip().startswith(">"))
