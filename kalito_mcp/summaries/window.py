"""Decides how many messages make one summary: fewer if they are long or technical. Pure.

Source: `getAdaptiveSummaryThreshold` of the memory manager's reference, which does not define its technicality score.
Here it is the share of a text's characters in code, identifiers, error words and measured numbers.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.records import MessageWithImportance
from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.text.lazy_pattern import lazy


@dataclass(frozen=True, slots=True)
class SummaryWindowPolicy(Policy):
    """`threshold` messages make a summary, or `dense_threshold` if the window is dense.

    Dense means an average length above `dense_length` characters, or a technicality above `dense_technicality`.
    """

    threshold: int = bounded(15, least=1)
    dense_threshold: int = bounded(10, least=1)
    dense_technicality: float = 0.7
    dense_length: int = 500
    is_adaptive: bool = True


DEFAULT_SUMMARY_WINDOW: Final = SummaryWindowPolicy()

# Technical talk is still mostly grammar: a text with this share of technical characters has a technicality of 1.
_SATURATION: Final = 0.35

_UNITS: Final = "ms|ns|us|µs|s|min|h|hz|khz|mhz|ghz|b|kb|mb|gb|tb|kib|mib|gib|px|em|rem|mg|g|kg|ml|mm|cm|m|km|v|w|kw|%"
_IDENTIFIER: Final = lazy(
    r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+"  # snake_case
    r"|_*[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*"  # camelCase
    r"|(?:[A-Z][a-z0-9]+){2,}"  # PascalCase
    r"|--?[A-Za-z][A-Za-z0-9-]*(?:=.*)?"  # --flag
    r"|(?:~|\.{1,2})?/[\w.@/-]+"  # /a/path
    r"|[\w.@-]+/(?:[\w.@-]+/)*[\w@-]+\.[A-Za-z]\w*"  # a/path.ext
    r"|[\w-]+\.(?:py|js|ts|tsx|jsx|json|toml|ya?ml|sql|go|rs|java|c|h|cpp|cs|rb|php|sh|md|html|css|txt|log|cfg|ini)"
    r"|[\w.]+\(.*\)"  # call()
    r"|`.*`"
    r"|E(?:CONN|NO|ACC|PERM|ADDR|TIME|PIPE|AGAIN|EXIST|INVAL|HOST)[A-Z]*"  # ECONNREFUSED
    r"|40[0-9]|42[29]|50[0-4]"  # HTTP status
    r"|v\d+(?:\.\d+)*|\d{1,3}\.\d{1,3}\.\d{1,3}"  # version
)
_MEASURED: Final = lazy(rf"[<>~≈]?[-+]?\d+(?:[.,]\d+)?(?:{_UNITS})(?:/\w+)?", re.IGNORECASE)
_BARE_NUMBER: Final = lazy(r"[-+]?\d+(?:[.,]\d+)?")
_UNIT: Final = lazy(_UNITS, re.IGNORECASE)
_TECHNICAL_WORDS: Final = frozenset(
    "error errors exception exceptions traceback stacktrace bug bugs crash crashes crashed segfault timeout timeouts "
    "fails failed failing failure undefined null nan stack compile compiler runtime deadlock regression leak "
    "api endpoint database sql query index schema migration server client port cache thread async await function "
    "class method variable array string integer boolean json yaml http https docker container kubernetes git commit "
    "branch merge deploy build pipeline test tests regex parser cpu gpu ram linux".split()
)
_EDGE: Final = ".,;:!?\"'()[]{}<>*“”‘’。，！？；：、"
# The patterns above are for short words. A longer one is data, or in a script without spaces.
_MAX_WORD: Final = 120


def summary_window(
    messages: Sequence[MessageWithImportance], policy: SummaryWindowPolicy = DEFAULT_SUMMARY_WINDOW
) -> int:
    """Return how many of the messages, oldest first, make the next summary. There may be fewer messages so far.

    Only the first `threshold` messages decide, so the length of a backlog does not matter.
    """
    window = messages[: policy.threshold]
    if not policy.is_adaptive or not window:
        return policy.threshold
    is_long = sum(len(message.text) for message in window) > policy.dense_length * len(window)
    if is_long or technicality(message.text for message in window) > policy.dense_technicality:
        return policy.dense_threshold
    return policy.threshold


def summary_windows(
    messages: Sequence[MessageWithImportance],
    policy: SummaryWindowPolicy,
    *,
    most: int,
    has_more: bool,
    is_partial_due: bool = False,
) -> list[Sequence[MessageWithImportance]]:
    """Divide the messages, oldest first, into at most `most` windows. `has_more`: messages follow that may belong to
    the last window. With `is_partial_due`, the last window may be shorter than it should be."""
    windows: list[Sequence[MessageWithImportance]] = []
    left = messages
    while left and len(windows) < most and not (has_more and len(left) < policy.threshold):
        size = summary_window(left, policy)
        if len(left) < size and not is_partial_due:
            break
        windows.append(left[:size])
        left = left[size:]
    return windows


def technicality(texts: Iterable[str]) -> float:
    """Return how technical the texts are together, in [0, 1]. Prose is near 0; empty texts are 0."""
    technical = total = 0
    for text in texts:
        for part_number, part in enumerate(text.split("```")):
            is_code = part_number % 2 == 1
            previous = ""
            for raw in part.split():
                total += len(raw)
                word = raw.strip(_EDGE)
                if is_code or _is_technical(raw, word):
                    technical += len(raw)
                # Only words after a digit are checked for a unit.
                elif previous[-1:].isdecimal() and _UNIT().fullmatch(word) and _BARE_NUMBER().fullmatch(previous):
                    technical += len(previous) + len(raw)
                previous = word
    return min(technical / (_SATURATION * total), 1.0) if total else 0.0


def _is_technical(raw: str, word: str) -> bool:
    # Most words: a word of small letters is an identifier only between back-ticks.
    if word.isalpha() and word.islower() and "`" not in raw:
        return word in _TECHNICAL_WORDS
    if len(word) > _MAX_WORD:
        return word.isascii()
    return bool(
        word.lower() in _TECHNICAL_WORDS
        or _MEASURED().fullmatch(word)
        or _IDENTIFIER().fullmatch(word)
        or (raw.startswith("`") and raw.rstrip(_EDGE).endswith("`"))
    )
