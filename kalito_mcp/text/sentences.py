"""Splits messages into sentences, and cuts sentences to a length. Pure.

Works for scripts with and without spaces, by Unicode's sentence enders. It never joins two messages and never
rewrites: the output is the words of the text. Only white space, markup, greetings before a sentence and code blocks
(see `code_blocks`) change, and an ellipsis marks a cut.

Every expression here reads a text once, from left to right, so that time is linear in its length.
"""

import re
from collections.abc import Iterator
from typing import Final

from kalito_mcp.text.analysis import fold
from kalito_mcp.text.code_blocks import collapse_code
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.times.other_languages import calendar_words
from kalito_mcp.text.times.vocabulary import SHORT_MONTHS

ELLIPSIS: Final = "…"

_ENDER: Final = lazy(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s)|[。！？｡؟।॥።။]++[\"'”’」』）】》]*+|(?<=\])\s(?=[\"'A-Z])"
)
_LIST_MARK: Final = lazy(r"(?:[-*+•‣◦·–]|\d{1,3}[.)]|\[[ xX]\]|>+)\s+")
_HEADING: Final = lazy(r"#{1,6}\s")
_LINK: Final = lazy(r"!?\[([^\[\]]{1,200})\]\((?:[^()\s]{1,400})\)")
_TABLE_RULE: Final = lazy(r"[|:\-=+ ]+")

# They end no sentence if a lower-case letter follows: "at noon... no, at one".
_PAUSES: Final = frozenset(("..", "...", ELLIPSIS))

# A dot after these never ends a sentence...
_ABBREVIATIONS: Final = frozenset(
    "dr mr mrs ms prof rev hon gen col lt sgt capt st mt jr fr vs e.g i.e cf ca approx resp incl excl fig figs sec "
    "vol pp ed eds dept univ inc. z.b d.h bzw usw. u.a sr sra sra dra m. mme mlle".split()
)
# ... and after these not if a number, or a lower-case letter, follows.
_BEFORE_NUMBER: Final = frozenset("no nr nos p ch art par tel ext room rm apt".split()).union(SHORT_MONTHS)
_BEFORE_SMALL: Final = frozenset("etc a.m p.m am pm inc ltd co corp bros usw u.s u.k min max avg est hrs yrs".split())

# Behind the dot of an ordinal number, in languages that write one: 11. bis 13. Mai.
_BETWEEN_ORDINALS: Final = frozenset("bis und oder til till och og".split())

# A name may follow these.
_GREETINGS: Final = (
    "hey there|hi there|hello there|hey|hi|hello|howdy|greetings|good morning|good afternoon|good evening|"
    "thank you so much|thank you|thanks so much|thanks a lot|thanks again|thanks|thx|cheers|oh wow|wow|whoa|"
    "congrats|congratulations|hola|gracias|hallo|danke|bonjour|merci|salut|ciao|grazie|olá|obrigado|obrigada"
)
_INTERJECTIONS: Final = (
    "woah|ooh|oh yeah|oh no|oh|ah|aw+|(?:ha){2,9}|lol|omg|hm+|yay|phew|ugh|yikes|gosh|yeah|yep|yup|yes|yea|nope|nah|"
    "sure thing|sure|ok|okay|alright|all right|right|exactly|absolutely|definitely|totally|certainly|of course|"
    "for sure|got it|i see|understood|true|indeed|no worries|no problem|well|so|anyways?|by the way|btw|honestly|"
    "actually|to be honest|you know|i mean|also|awesome|great|cool|nice|perfect|amazing|wonderful|excellent|"
    "fantastic|good|lovely|sweet|that's great|that's awesome|sounds good|sounds great|good question|great question|"
    "good idea|great idea|you're right|bueno|claro|oui|ja"
)
_OPENER: Final = lazy(
    r"[^\w\s\"'“‘«(\[`$€£¥#@+\-~/.<]++\s*"
    rf"|(?:(?i:{_GREETINGS})\b(?: [A-Z][\w'’-]{{0,20}})?|(?i:{_INTERJECTIONS})\b)"
    r"(?:\s?[,!.…:;–—]|\s-(?=\s))++\s*"
)
_CLAUSE: Final = lazy(r"[,;:]\s+|\s[-–—]{1,2}\s|—|[，；：、،؛]|\s(?=\((?!(?:about )?\d{4}))|(?<=\D\))\s")

_ASKED: Final = r"(?:[,;–—]| -)\s(?:(?:so|and|but|then)\s)?(?:also\s)?"
_REQUEST: Final = lazy(rf"{_ASKED}(?:can|could|would|will)\s(?:you|someone|somebody)\b", re.IGNORECASE)
_QUESTION: Final = lazy(
    rf"{_ASKED}(?:(?:can|could|would|will|do|does|did|is|are|was|were|should)\s"
    r"(?:you|i|we|someone|somebody|it|that|this|there|they)\b|(?:what|what's|how|why|when|where|which|who)\b)",
    re.IGNORECASE,
)

_MIN_STATEMENT: Final = 16
_MIN_WRAPPED: Final = 60
_MAX_LIST_ITEM: Final = 90
# Longer words are data, or of a script without spaces, and may be cut anywhere.
_MAX_WORD: Final = 40
_MAX_JOINED: Final = 260
_MAX_OPENERS: Final = 6


def split_sentences(text: str) -> list[str]:
    """Split a message into its sentences, in order, each on one line; empty for a blank text."""
    return [sentence for _, sentences in split_lines(text) for sentence in sentences]


def split_lines(text: str) -> list[tuple[str, list[str]]]:
    """The lines of a message, wrapped ones joined, each with its sentences in order."""
    return [(line, list(_split_line(line))) for line in _logical_lines(collapse_code(text))]


def without_opener(sentence: str) -> str:
    """The sentence without the greetings, thanks and interjections before it; empty if nothing else is left."""
    start = 0
    for _ in range(_MAX_OPENERS):
        match = _OPENER().match(sentence, start)
        if match is None:
            break
        start = match.end()
    return sentence[start:].strip()


def without_request(sentence: str) -> str:
    """The statement before a request: `I fly to Oslo on May 3…` from `I fly to Oslo on May 3, can you help?`.

    A sentence that asks for nothing, or states nothing first, is returned unchanged.
    """
    asks = _QUESTION() if sentence.endswith(("?", "？")) else _REQUEST()
    match = asks.search(sentence, _MIN_STATEMENT)
    return sentence[: match.start()] + ELLIPSIS if match else sentence


def clauses(sentence: str) -> list[str]:
    """Split the sentence into its clauses; joined again, they are the sentence."""
    parts: list[str] = []
    start = 0
    for match in _CLAUSE().finditer(sentence):
        parts.append(sentence[start : match.end()])
        start = match.end()
    parts.append(sentence[start:])
    return [part for part in parts if part]


def cut(text: str, max_chars: int) -> str:
    """The text if it fits in `max_chars` characters; otherwise its first whole words and an ellipsis.

    A word is only cut if it is very long, or if its script has no spaces.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - len(ELLIPSIS)
    if room <= 0:
        return ELLIPSIS[: max(max_chars, 0)]
    end = text.rfind(" ", 0, room + 1)
    if end < room // 2 and (end <= 0 or _word_end(text, room) - end > _MAX_WORD):
        end = room
        while end > 1 and (not text[end].isprintable() or _is_mark(text[end])):
            end -= 1
    return text[:end].rstrip(" .,;:-–—(") + ELLIPSIS


def _word_end(text: str, start: int) -> int:
    end = text.find(" ", start)
    return len(text) if end < 0 else end


def _is_mark(character: str) -> bool:
    """Whether the character changes the one before it: combining marks, variation selectors, skin tones."""
    import unicodedata  # noqa: PLC0415 - only long words need it

    return unicodedata.category(character) in {"Mn", "Mc", "Me", "Sk", "Cf"}


def _logical_lines(text: str) -> Iterator[str]:
    """Each paragraph on one line. Wrapped lines are joined; short list items follow the line that announces them."""
    pending = ""
    is_list = False
    for raw in text.splitlines():
        line, is_item = _plain_line(raw)
        if not line:
            if pending and not pending.endswith(":"):
                yield pending
                pending = ""
            continue
        if pending and len(pending) < _MAX_JOINED:
            is_announced = pending.endswith((":", "："))
            if (is_announced or (is_list and is_item)) and len(line) <= _MAX_LIST_ITEM:
                pending += f" {line}" if is_announced else f"; {line}"
                is_list = is_item
                continue
            is_wrapped = line[0].islower() and not is_item and len(pending) >= _MIN_WRAPPED
            if is_wrapped and pending[-1] not in ".!?…":
                pending += f" {line}"
                continue
        if pending:
            yield pending
        pending, is_list = line, False
    if pending:
        yield pending


def _plain_line(raw: str) -> tuple[str, bool]:
    line = " ".join(raw.split())
    if not line or _HEADING().match(line):
        return "", False
    start = 0
    while (match := _LIST_MARK().match(line, start)) and not _is_date(line, match.end()):
        start = match.end()
    is_item = start > 0
    line = line[start:]
    if line.startswith("|"):
        line = "" if _TABLE_RULE().fullmatch(line) else line.strip("| ").replace(" | ", ", ")
    if "](" in line:
        line = _LINK().sub(r"\1", line)
    return line.replace("**", "").replace("__", "") if "**" in line or " __" in line else line, is_item


def _split_line(line: str) -> Iterator[str]:
    start = 0
    for match in _ENDER().finditer(line):
        end = match.end()
        if match.group() == "." and not _ends_sentence(line, start, match.start()):
            continue
        if match.group() in _PAUSES and line[end + 1 : end + 2].islower():
            continue
        sentence = line[start:end].strip()
        if sentence:
            yield sentence
        start = end
    rest = line[start:].strip()
    if rest:
        yield rest


def _is_date(line: str, place: int) -> bool:
    """Whether there is a digit and a dot before this place, and the name of a month or a day there."""
    after = line[place : place + _MAX_WORD].partition(" ")[0].rstrip(".,:;!?")
    return line[:place].rstrip()[-2:-1].isdigit() and fold(after) in calendar_words(is_sure=False)


def _ends_sentence(line: str, start: int, dot: int) -> bool:
    word = line[line.rfind(" ", start, dot) + 1 : dot].lstrip("(\"'“‘[").lower()
    if len(word) > 8:  # noqa: PLR2004 - no abbreviation is longer
        return True
    following = line[dot + 2 : dot + 3]
    if word in _ABBREVIATIONS:
        return False
    if word in _BEFORE_NUMBER:
        return not following.isdigit()
    if word in _BEFORE_SMALL:
        return not following.islower()
    if word.isdigit():  # 3. März, 11. bis 13.
        return not _is_date(line, dot + 2) and line[dot + 2 :].partition(" ")[0] not in _BETWEEN_ORDINALS
    is_initial = len(word) == 1 and word.isalpha() and line[dot - 1].isupper() and word != "i"
    return not is_initial
