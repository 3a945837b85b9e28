"""Which words that somebody shared in a space tell a member's assistant to act. Pure.

A fact of a team ("incidents go to 555-01") counts for every member at once. What asks to be done, or could be run,
opened, sent to or taken for a permission, is a proposal: no context has it before the member keeps it. The signs err on
that side, because to keep a fact takes one click. They read words, and nothing may rely on them alone.
"""

from typing import Final

from kalito_mcp.domain.records import Origin
from kalito_mcp.kinds.cues import begins_as_a_rule
from kalito_mcp.safety import trust
from kalito_mcp.safety.instructions import folded, is_instruction_like
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import split_sentences

LONGEST_FACT: Final = 1_000
"""Characters of shared words that all members' contexts begin with. Longer ones are found by a search."""

SIGNS: Final = {
    "code": r"`|^\s*[$>#] \S",
    "address": r"\w://|\bwww\.|\bmailto:|\S@[\w-]{1,63}\.\w|\b[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\.[a-z]{2,}\b"
    r"|\b[\w-]{1,63}\.(?:com|org|net|io|dev|app|ai|co|sh|xyz|info|biz|me|cloud|example|test)\b"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b",
    "command": r"(?:^|\s)--?[a-z][\w-]|\|\s*(?:sudo |ba|z)?sh\b|\b(?:sudo|curl|wget|chmod|npx|uvx|kubectl|iwr|iex)\b"
    r"|\b(?:npm|pnpm|yarn|pip3?|uv|brew|apt(?:-get)?|gem|cargo|go|git|docker|make)\s{1,3}(?:i|install|add|run|exec|push"
    r"|pull|clone|config|publish|commit|build|test|get|checkout|reset|up|ci|login|deploy)\b|\b[a-z_]{3,40}=\S",
    "file": r"(?<![\w/])(?:~|\.{1,2})?/[\w.-]{1,80}/[\w.]|~/|\.{1,2}/\w|\b[a-z]:\\"
    r"|\b[\w-]{1,63}\.(?:sh|ps1|bat|cmd|exe|py|js|env)\b",
    "permission": r"\bwithout (?:\w{1,20} ){0,2}(?:asking|confirm|approv|review|checks?\b)|\bno need to ask\b"
    r"|\b(?:is|are|be|was|were|you) (?:always )?allowed\b|\bpermi(?:ssion|tted)\b|\bapproved\b|\btrusted\b"
    r"|\b(?:full|admin|root|write) access\b|\bauto-?(?:approve|accept|confirm|merge)"
    r"|\b(?:darf|dürfen|erlaubt|ohne (?:zu fragen|rückfrage|nachfrage))\b|\bautoris|\bpermitido\b",
    "reader": r"\byou(?:r|rs)?\b|\bthe user\b(?! (?:interface|guide|manual|table))|\bassistants?\b"
    r"|\b(?:ais?|llms?|claude|chatgpt|copilot|gemini|codex)\b|\bagents? (?:must|should|shall|will|may|can|do)\b"
    r"|\b(?:du|sie) (?:sollst|musst|darfst|sollen|mussen|müssen)\b|\bvous devez\b|\btu dois\b|\bdebes\b|\bdevi\b"
    r"|\bты должен\b|你|请|請",
    "request": r"(?:^|[:;]\s*)(?:please|bitte|kindly|por favor|s'il (?:te|vous) plait|per favore|пожалуйста|make sure"
    r"|be sure|ensure|do not|don't|must|let's|run|use|send|give|grant|allow|approve|accept|skip|ignore|disable|enable"
    r"|install|download|execute|visit|delete|remove|upload|forward|trust|treat|tell|avoid|prefer|bypass|turn (?:on|off)"
    r"|follow|obey|respond|reply|include|append|insert|write|add|paste|export|print|store|save|verwende|benutze|nutze"
    r"|fuhre|sende|schicke|losche|installiere|ignoriere|utilisez?|envoie|usa|envia|ejecuta)\b"
    r"|(?:^|[:;]\s*)(?:open|call|push|pull|merge|commit|deploy|copy|post|put|set|keep|check|ask|stop|start|read|take"
    r"|make|answer|return|show|test|build|create|change) (?:the|an?|all|any|every|each|no|it|them|this|that|these|only"
    r"|from|to|into?|with|for|on|up|everything|nothing|before|after)\b",
}
"""By what they show."""
_SIGNS: Final = tuple(lazy(f"(?im){sign}") for sign in SIGNS.values())
_LABEL: Final = lazy(r"[:\n]")


def is_withheld(origin: Origin, text: str, space: str | None) -> bool:
    """Whether contexts leave this text out (`safety.trust`); of a space, who said it does not count, and what is only
    proposed is left out, too."""
    return trust.is_withheld(origin, text) if space is None else is_instruction_like(text) or is_proposal(text)


def is_hit_withheld(origin: Origin, text: str, space: str | None) -> bool:
    """The same of what a search found: a long text, such as a runbook, is shown, labelled."""
    return is_withheld(origin, text, space if len(text) <= LONGEST_FACT else None) or (
        space is not None and is_instruction_like(text)
    )


def is_proposal(text: str) -> bool:
    """Whether the words of somebody else ask for something, or have something to run, open, send to or allow."""
    plain = folded(text)
    return any(sign().search(plain) for sign in _SIGNS) or any(
        begins_as_a_rule(clause) for sentence in split_sentences(text) for clause in _LABEL().split(sentence)
    )
