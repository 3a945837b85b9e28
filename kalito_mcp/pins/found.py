"""What an automatic pin says, and the key by which the same words are pinned once. Pure."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.memory_records import AUTO_KEY, MemoryRecord
from kalito_mcp.domain.records import PinType, Reach
from kalito_mcp.domain.statements import KEPT_AT
from kalito_mcp.text.lazy_pattern import lazy

_TOKEN: Final = lazy(r"(?:(?<!\S)[-+−])?\w+(?:['’.,:/@-]+\w+)*[+#%]*|[$€£¥%]")
_KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class FoundPin:
    """A pin to create. Repeating the same words, in any case and punctuation, gives the same `client_key`."""

    content: str
    pin_type: PinType
    importance: float
    client_key: str
    reach: Reach = Reach.SESSION
    kind: Kind | None = None
    worth: float = 1.0
    """How likely somebody would keep it."""


ANSWERS: Final = " (to: "
"""Joins a short decision to the assistant's proposal that it answers."""


def pin_key(content: str) -> str:
    """`auto:` and a digest of the content's words. Case, punctuation and white space do not change it.

    Numbers, signs, negations and names do. Not for code, where every character counts.
    """
    return _key(" ".join(token.casefold().replace("’", "'").replace("−", "-") for token in _TOKEN().findall(content)))


def is_found_pin(pin: MemoryRecord) -> bool:
    """Whether the pin is automatic and still has its original words. A pin that somebody reworded or kept is theirs."""
    return pin.is_automatic and KEPT_AT not in pin.content and pin.client_key in (pin_key(pin.text), code_key(pin.text))


def code_key(content: str) -> str:
    """`auto:` and a digest of the code. Only white space does not change it."""
    return _key(" ".join(content.split()))


def _key(folded: str) -> str:
    return f"{AUTO_KEY}{blake2b(folded.encode('utf-8', 'surrogatepass'), digest_size=_KEY_BYTES).hexdigest()}"
