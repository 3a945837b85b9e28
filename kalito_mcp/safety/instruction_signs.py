"""What a sign of an instruction is, and the building blocks of its patterns. Pure.

Patterns read lower case without Latin accents. Every repetition in them is bounded and most are possessive, so that
any text is read in linear time.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kalito_mcp.text.lazy_pattern import lazy


@dataclass(frozen=True, slots=True, eq=False)
class Sign:
    """A shape, tried on texts with one of its words. Its weight counts once, however often it matches."""

    name: str
    weight: int
    words: tuple[str, ...]
    pattern: Callable[[], re.Pattern[str]]


# A word, and up to so many of them, within a sentence. Possessive, so that a piece is read in linear time.
_W: Final = r"(?:[^\s.!?]{1,30}+\s{1,3}+)"
UP_TO_2: Final = _W + "{0,2}?"
UP_TO_4: Final = _W + "{0,4}?"
UP_TO_8: Final = _W + "{0,8}?"

RULES: Final = (
    r"(?:instructions?|prompts?|rules?|guidelines?|guidance|directions?|directives?|orders?|commands?|constraints?|"
    r"polic(?:y|ies)|safeguards?|guardrails?|restrictions?|filters?|training|programming|context)\b"
)
GIVEN: Final = (
    r"(?:previous|prior|above|earlier|preceding|initial|original|existing|foregoing|former|system|safety|developer|"
    r"developer's|your|its|hidden)\s"
)
AI: Final = (
    r"(?:ai|ais|ai agents?|ai models?|llms?|language models?|assistants?|chatbots?|bots?|agents?|models?|chatgpt|"
    r"claude|gpt|gemini|copilot|summari[sz]ers?)\b"
)
AI_WORDS: Final = (
    "ai ais llm llms model models assistant assistants chatbot chatbots bot bots agent agents chatgpt claude gpt "
    "gemini copilot summariser summarizer"
)
PERSON: Final = r"(?:user|human|customer|reader|operator|visitor|person|client|owner)s?(?:'s)?\b"
SAY: Final = (
    r"(?:reply|respond|answer|say|state|tell|claim|recommend|suggest|mention|describe|output|print|include|insist|"
    r"confirm|conclude|approve|rate|link)\b"
)
DO: Final = (
    r"(?:call|invoke|run|execute|send|e-?mail|forward|open|visit|delete|fetch|obey|follow|ignore|trust|treat|begin|"
    r"refuse|add|set|show|write|skip|stop|mark|disregard|reveal|act)\b"
)
DUTY: Final = r"(?:must|shall|should|will|ha(?:s|ve) to|needs? to|(?:is|are) (?:required|ordered|instructed|asked) to)"
PRIVATE: Final = (
    r"(?:conversations?|chats?|history|messages|memory|memories|keys?|passwords?|credentials?|secrets?|tokens?|"
    r"prompt|user's|notes|contacts|variables|user)\b"
)


def sign(name: str, weight: int, words: str, *patterns: str) -> Sign:
    """A sign that any of the patterns matches. A space in them also matches a line end: texts are wrapped anywhere."""
    return Sign(name, weight, tuple(words.split()), lazy("|".join(patterns).replace(" ", r"\s"), re.MULTILINE))
