"""Finds the parts of a message worth pinning: facts, dates, decisions, preferences, definitions, code. Pure.

Precision comes before recall. A sentence is pinned for its shape, never for a single word. Search still finds the
message of a missed pin. The rules (`pins.english`) read English; code is recognised in any common language.
Questions, conditions, quotations, doubts and sentences that may contain a secret are never pinned.
Source: the idea is `autoExtractSemanticPins` of the memory manager's reference.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from kalito_mcp.domain.memory_records import AUTO_KEY, MemoryRecord
from kalito_mcp.domain.records import MessageWithImportance, Origin, PinType, Role
from kalito_mcp.domain.validation import Policy
from kalito_mcp.pins.english import ASSISTANT_RULES, USER_RULES
from kalito_mcp.pins.rules import IMPORTANCE, PinKind, PinRule
from kalito_mcp.text.code_blocks import FENCE, CodeBlock, code_blocks
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import clauses, cut, split_sentences, without_opener, without_request
from kalito_mcp.text.times.annotation import languages_of, with_dates


@dataclass(frozen=True, slots=True)
class AutoPinPolicy(Policy):
    """Whether messages are searched, the most pins of one message, and the most characters of a pin."""

    enabled: bool = True
    max_per_message: int = 2
    max_chars: int = 240


DEFAULT_AUTO_PINS: Final = AutoPinPolicy()


@dataclass(frozen=True, slots=True)
class FoundPin:
    """A pin to create. Repeating the same words, in any case and punctuation, gives the same `client_key`."""

    content: str
    pin_type: PinType
    importance: float
    client_key: str


_TOKEN: Final = lazy(r"(?:(?<!\S)[-+−])?\w+(?:['’.,:/@-]+\w+)*[+#%]*|[$€£¥%]")
_DOUBT: Final = lazy(
    r"\b(?:if|unless|suppose|supposing|imagine|pretend|hypothetically|might|maybe|perhaps|possibly|probably|could|"
    r"wish|wished|wonder|wondering|hope|hoping|(?:not|n't) (?:really )?(?:sure|certain)|n't know|thinking (?:of|about)|"
    r"considering|should (?:i|we)|would (?:i|we|you)|want(?:ed)? to (?:know|ask)|for example|e\.g|joking|"
    r"kidding|used to be|said|says|told|asked|asks|claims|according to)\b",
    re.IGNORECASE,
)
_SECRET: Final = lazy(
    r"pass(?:word|phrase|code)|\bsecret|api[ _-]?key|\btoken\b|private key|\bpin (?:code|is|number)|\bssn\b|"
    r"social security|credit card|\bcvv\b|\biban\b",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = lazy(
    r"(?:key|token|secret|passw(?:or)?d|credential)\w{0,20}[\"']?\s{0,3}[:=]\s{0,3}[\"'][^\"'\s]{6,}[\"']",
    re.IGNORECASE,
)
_QUOTES: Final = '"“”«»'
# Only so many characters are searched: a longer message is probably a paste.
_MAX_READ: Final = 20_000
_MIN_SENTENCE: Final = 12
_KEY_BYTES: Final = 16


def find_pins(message: MessageWithImportance, policy: AutoPinPolicy = DEFAULT_AUTO_PINS) -> list[FoundPin]:
    """The pins of one message, in the order of its text; most messages have none.

    Only the `max_per_message` most important are returned; ties go to the earlier. An assistant's message yields only
    decisions, definitions and code. System messages, and words of tools, documents and imports, yield nothing,
    because a pin is in every context.
    """
    if not policy.enabled or message.role == Role.SYSTEM or message.origin.distrust > Origin.ASSISTANT.distrust:
        return []
    text = message.text[:_MAX_READ]
    rules = ASSISTANT_RULES if message.role == Role.ASSISTANT else USER_RULES
    tried = rules.worth_trying(text)
    if not tried and FENCE not in text:
        return []
    found: dict[str, FoundPin] = {}
    for pin in _search(text, message, tried, policy):
        found.setdefault(pin.client_key, pin)
    pins = list(found.values())
    best = sorted(range(len(pins)), key=lambda at: (-pins[at].importance, at))[: policy.max_per_message]
    return [pins[at] for at in sorted(best)]


def pin_key(content: str) -> str:
    """`auto:` and a digest of the content's words. Case, punctuation and white space do not change it.

    Numbers, signs, negations and names do. Not for code, where every character counts.
    """
    return _key(" ".join(token.casefold().replace("’", "'").replace("−", "-") for token in _TOKEN().findall(content)))


def is_found_pin(pin: MemoryRecord) -> bool:
    """Whether the pin is automatic and still has its original words. A pin that somebody reworded is theirs."""
    return pin.is_automatic and pin.client_key in (pin_key(pin.text), _code_key(pin.text))


def _code_key(content: str) -> str:
    return _key(" ".join(content.split()))


def _key(folded: str) -> str:
    return f"{AUTO_KEY}{blake2b(folded.encode('utf-8', 'surrogatepass'), digest_size=_KEY_BYTES).hexdigest()}"


def _search(
    text: str, message: MessageWithImportance, rules: Sequence[PinRule], policy: AutoPinPolicy
) -> Iterator[FoundPin]:
    has_code = False
    for prose, block in code_blocks(text):
        for sentence in split_sentences(_without_quoted_lines(prose)) if rules else ():
            pin = _pin_of(sentence, message, rules, policy)
            if pin:
                yield pin
        # At most one block per message: an answer with five listings is one thing, shown in parts.
        if block and not has_code:
            content = _code_content(block, policy.max_chars)
            has_code = bool(content)
            if content:
                yield FoundPin(content, PinType.CODE, IMPORTANCE[PinKind.CODE], _code_key(content))


def _pin_of(
    sentence: str, message: MessageWithImportance, rules: Sequence[PinRule], policy: AutoPinPolicy
) -> FoundPin | None:
    said = without_request(without_opener(sentence))
    if len(said) < _MIN_SENTENCE or said.endswith(("?", ":")):
        return None
    plain = said.replace("’", "'")
    for rule in rules:
        match = rule.pattern().search(plain)
        if match is None or (rule.also and not rule.also().search(plain)):
            continue
        if _DOUBT().search(plain) or _SECRET().search(plain) or _is_quoted(plain, match.start()):
            return None
        prefix = f"{' '.join(message.name.split())}: " if message.name and message.name.strip() else ""
        kept = _from_clause(said, match.start(), policy.max_chars - len(prefix))
        content = cut(prefix + with_dates(kept, message.created_at, languages_of(kept)), policy.max_chars)
        pin_type = PinType.CONCEPT if rule.kind == PinKind.CONCEPT else PinType.AUTO
        return FoundPin(content, pin_type, IMPORTANCE[rule.kind], pin_key(content))
    return None


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


def _code_content(block: CodeBlock, max_chars: int) -> str:
    """`python: def parse_date(text):` and as many whole lines after it as fit; empty if it may contain a secret."""
    definitions = block.definitions()
    if not definitions:
        return ""
    lines = block.lines[definitions[0].line :]
    content = cut(f"{block.language or 'code'}: {lines[0].strip()}", max_chars)
    for line in lines[1:]:
        if len(content) + 1 + len(line.rstrip()) > max_chars:
            break
        content += f"\n{line.rstrip()}"
    return "" if _SECRET_VALUE().search(content) else content.rstrip()
