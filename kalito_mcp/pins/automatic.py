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
from hashlib import blake2b
from typing import Final

from kalito_mcp.domain.memory_records import AUTO_KEY, MemoryRecord
from kalito_mcp.domain.records import MessageWithImportance, Origin, PinType, Role
from kalito_mcp.domain.validation import Policy
from kalito_mcp.pins.rule_sets import ASSISTANT_RULES, PERSON_RULES, SPACED_RULES, UNSPACED_RULES, USER_RULES
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
    kind: PinKind


_TOKEN: Final = lazy(r"(?:(?<!\S)[-+−])?\w+(?:['’.,:/@-]+\w+)*[+#%]*|[$€£¥%]")
_SECRET: Final = lazy(
    r"pass(?:word|phrase|code)|\bsecret|api[ _-]?key|\btoken\b|private key|\bpin (?:code|is|number)|\bssn\b|"
    r"social security|credit card|\bcvv\b|\biban\b",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = lazy(
    r"(?:key|token|secret|passw(?:or)?d|credential)\w{0,20}[\"']?\s{0,3}[:=]\s{0,3}[\"'][^\"'\s]{6,}[\"']",
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
_REFERS_BACK: Final = lazy(
    r"(?:that's|that is|this is|it was|it's been|it has been) (?:why|how|what|truly|really|so)\b", re.IGNORECASE
)
_BEGINS_WITH_PRONOUN: Final = lazy(
    r"(?:his|her|its|their|he|she|it|they|he's|she's|it's|they're)\b|(?:i|we) (?:call|called|named) (?:him|her|it"
    r"|them)\b",
    re.IGNORECASE,
)
_CONJUNCTION: Final = lazy(r"(?:and|but|so|because|plus|also),? (?=\S)", re.IGNORECASE)
_WORKS: Final = lazy(
    r"\b(?:this|that|it|which)(?: one| version| code| query| command| script)?(?: now| finally)? (?:works|worked"
    r"|fixed|solved|did it)\b"
    r"|\b(?:finally|now) (?:works|working|worked)\b|\b(?:is|as|our|my) (?:the |our |my )?final\b(?! (?:question"
    r"|step|thought))"
    r"|\bfinal version\b|\b(?:keep|save|remember|pin) (?:this|the following)\b|\b(?:we|i) (?:decided on|settled on"
    r"|agreed on|always (?:run|use))\b"
    r"|\bfor (?:future|later) reference\b|\b(?:funktioniert|marche|funciona|работает|动作|可以用了|動きました)\b",
    re.IGNORECASE,
)
_STILL_BROKEN: Final = lazy(
    r"\?\s*$|\b(?:but|however|error|fails?|failing|not working|n't work|doesn't|issue|problem|can you|could you"
    r"|help me|how (?:do|can|to))\b",
    re.IGNORECASE,
)
_COMMANDS: Final = frozenset(("", "sh", "bash", "zsh", "shell", "console", "terminal", "powershell", "sql"))
_MAX_COMMANDS: Final = 6
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
_KEY_BYTES: Final = 16
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
        names = CodeBlock(head, tuple(rest.split("\n"))).definitions()
        return f"code {head}: {names[0].name}" if names else ""
    plain = rest.replace("’", "'")
    for rule in _worth_trying(rest, is_person=True, is_assistant=False):
        match = rule.pattern().search(plain)
        if match is not None and (not rule.also or rule.also().search(plain)):
            of = match.groupdict().get("of") or ""
            return f"{head}: {rule.subject} {of.casefold()}" if rule.subject else ""
    return ""


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
        content = _code_content(parts, policy.max_chars)
        if content:
            yield FoundPin(content, PinType.CODE, IMPORTANCE[PinKind.CODE], _code_key(content), PinKind.CODE)


def _is_of_the_moment(plain: str, kind: PinKind) -> bool:
    """Whether a sentence tells of a mood, a next step or something done once, or cannot be understood alone."""
    is_passing = _OF_THE_MOMENT().search(plain) is not None or _DONE_ONCE().search(plain) is not None
    return (kind in _MAY_BE_MOODS and is_passing) or (
        kind != PinKind.DECISION and _REFERS_BACK().match(plain) is not None
    )


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


def _code_content(parts: Sequence[tuple[str, CodeBlock | None]], max_chars: int) -> str:
    """`python: def parse_date(text):` and as many whole lines after it as fit, of the last block, or a few commands.

    Empty if nobody says that the code works or is final, or if it may contain a secret.
    """
    prose = " ".join(text for text, _ in parts)
    blocks = [block for _, block in parts if block]
    if not blocks or not _WORKS().search(prose) or _STILL_BROKEN().search(prose):
        return ""
    block = blocks[-1]
    definitions = block.definitions()
    lines = [line for line in block.lines if line.strip()]
    is_command = block.language in _COMMANDS and 0 < len(lines) <= _MAX_COMMANDS
    if not definitions and not is_command:
        return ""
    if definitions:
        lines = list(block.lines[definitions[0].line :])
    content = cut(f"{block.language or 'code'}: {lines[0].strip()}", max_chars)
    for line in lines[1:]:
        if len(content) + 1 + len(line.rstrip()) > max_chars:
            break
        content += f"\n{line.rstrip()}"
    return "" if _SECRET_VALUE().search(content) else content.rstrip()
