"""How the user wants to be answered, and which of these wishes are taken back. Pure. English."""

import re
from typing import Final

from kalito_mcp.facts.vocabulary import stems
from kalito_mcp.text.lazy_pattern import lazy

_WISH: Final = lazy(
    r"\s*(?:(?:please|also|and|ok|so|from now on)[, ]+)*(?:(?:(?:always|never|don't|do not|only) (?:ever )?)"
    r"(?P<said>(?:answer|reply|respond|write|use|give|keep|include|add|show|explain|speak|call|start|end|put|send|talk)"
    r"\b[^,.;!?\n]{3,60})"
    r"|I (?:want|would like|prefer) (?P<wanted>(?:answers|replies|responses|explanations)\b[^,.;!?\n]{0,60})"
    r"|(?P<asked>(?:please )?(?:keep|give me|call me|answer|reply|respond|use)\b[^,.;!?\n]{3,60}))",
    re.IGNORECASE,
)
_ASKED: Final = lazy(r"\s*(?:please|from now on|call me|keep your)\b", re.IGNORECASE)
_ONCE: Final = lazy(
    r"\b(?:for this|this (?:one|time)|just once|today|for now|the following|below|above)\b", re.IGNORECASE
)
_ENDED: Final = lazy(
    r"(?:\b(?:you can|please|feel free to) stop (?P<a>[^,.;!?\n]{3,60})"
    r"|\b(?:no need (?:to|for)|you (?:don't|do not) (?:have|need) to|don't bother (?:to|with)) (?P<b>[^,.;!?\n]{3,60}?)"
    r"(?: any ?more| any longer)"
    r"|\bI (?:no longer (?:want|need)|(?:don't|do not) (?:want|need)) (?P<c>[^,.;!?\n]{3,60})"
    r"|^\s*(?:please )?(?:don't|do not|no) (?P<d>[^,.;!?\n]{3,60}?) (?:any ?more|any longer)\b"
    r"|\b(?:forget|ignore|disregard) what i said about (?P<f>[^,.;!?\n]{3,60})"
    r"|\byou (?:can|may) (?P<e>[^,.;!?\n]{3,60}?) again\b)",
    re.IGNORECASE,
)
_CUES: Final = frozenset(
    """please always never don't not only keep call answer reply respond use stop need bother want prefer anymore more
    longer again forget ignore disregard answers replies responses explanations""".split()
)
_WORD: Final = lazy(r"[a-z]+(?:'t)?")
_MORE: Final = lazy(r"\b(?:any ?more|any longer|now|please|always|never|ever)\b", re.IGNORECASE)
_NO_MORE: Final = lazy(
    r"\b(?:no longer|stop|no need|bother|any ?more|any longer|again|have to|what i said)\b", re.IGNORECASE
)


def may_wish(sentence: str) -> bool:
    """Whether it has any of the words that these expressions need."""
    return not _CUES.isdisjoint(_WORD().findall(sentence.lower()))


def wish_of(sentence: str) -> str | None:
    """The wish of a sentence, as stems: `Please always answer in bullet points` is `answer bullet point`."""
    found = _WISH().match(sentence)
    if found is None or _ONCE().search(sentence) or _NO_MORE().search(sentence):
        return None
    if found["asked"] and not _ASKED().match(sentence):
        return None
    return stems(_MORE().sub("", found["said"] or found["wanted"] or found["asked"])) or None


def ended_wish(sentence: str) -> list[str]:
    """What a sentence no longer wants; empty if it takes nothing back."""
    found = _ENDED().search(sentence)
    if found is None or _ONCE().search(sentence) or not _NO_MORE().search(sentence):
        return []
    said = next(group for group in found.groups() if group)
    value = stems(_MORE().sub("", said))
    return [value] if value else []
