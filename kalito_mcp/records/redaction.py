"""Takes out what must not be kept. (First version; the shapes of secrets follow.)"""

import re
from dataclasses import dataclass
from typing import Any, Final

_PRIVATE: Final = re.compile(r"<private>.*?(</private>|\Z)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without what must not be kept, and the kinds of what was taken out."""

    text: str
    kinds: tuple[str, ...]


def redact(text: str) -> Redacted:
    """The text without secrets and private parts."""
    kept, count = _PRIVATE.subn("[private]", text)
    return Redacted(kept if count else text, ("private",) * count)


def redacted_values(value: Any) -> Any:
    """The same in every string of a JSON value."""
    if isinstance(value, str):
        return redact(value).text
    if isinstance(value, dict):
        return {key: redacted_values(one) for key, one in value.items()}
    return [redacted_values(one) for one in value] if isinstance(value, list) else value
