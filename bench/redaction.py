"""How many messages without a secret are redacted, how many secrets stay, and what redaction costs.

`--data` names files of conversations ({"conversations": [{"turns": [{"text": ...}]}]}) without secrets, so every
redaction there is wrong. `--show` prints twenty of them to stderr. Without `--data`, only the synthetic secrets of the
tests and hostile texts of a million characters are measured.
"""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.report import emit, options, progress
from kalito_mcp.safety.redaction import redact
from tests.safety.synthetic_secrets import synthetic_secrets

_CHAT: Final = "I was thinking of going to the lake this weekend with the kids, it should be really nice there, right?"
_LONG_CHARS: Final = 1_000_000
_HOSTILE: Final = (
    "-----BEGIN ", "-----BEGIN PRIVATE KEY----- ", "a.", "4", "4111 ", "<private>", "< private ", "</private>",
    "Ab3+", "eyJhbGciOi", "eyJhbGciOi.", "://a:", "password=", "password: '", "token ", "authorization: ", "sk-",
)  # fmt: skip
_SHOWN: Final = 20
_AROUND: Final = 60


def _turns(files: Sequence[Path]) -> list[str]:
    return [
        str(turn["text"])
        for file in files
        for conversation in json.loads(file.read_text(encoding="utf-8"))["conversations"]
        for turn in conversation["turns"]
        if turn["text"]
    ]


def _false(texts: Sequence[str], *, is_shown: bool) -> dict[str, Any]:
    kinds: Counter[str] = Counter()
    redacted = 0
    started = time.perf_counter()
    results = [redact(text) for text in texts]
    took_s = time.perf_counter() - started
    for text, result in zip(texts, results, strict=True):
        kinds.update(result.kinds)
        redacted += bool(result.kinds)
        if result.kinds and is_shown and redacted <= _SHOWN:
            progress(_example(text, result.text))
    return {
        "messages": len(texts),
        "chars": sum(map(len, texts)),
        "redacted": redacted,
        "share": redacted / len(texts) if texts else 0.0,
        "kinds": dict(kinds),
        "us_per_message": 1e6 * took_s / max(1, len(texts)),
    }


def _example(text: str, kept: str) -> str:
    """The text around the first mark, before and after."""
    mark = re.search(r"\[redacted: [a-z ]+\]|\[private\]", kept)
    start = max(0, (mark.start() if mark else 0) - _AROUND)
    return f"{text[start : start + 3 * _AROUND]!r}\n  -> {kept[start : start + 3 * _AROUND]!r}"


def _left(each: int) -> dict[str, Any]:
    made = list(synthetic_secrets(each, seed=11))
    left = Counter(kind for kind, text, secret in made if secret in redact(text).text)
    return {"made": len(made), "left": left.total(), "kinds_left": dict(left)}


def _us_per_chat_message(times: int) -> float:
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(times):
            redact(_CHAT)
        best = min(best, time.perf_counter() - started)
    return 1e6 * best / times


def _hostile_s() -> dict[str, float]:
    took: dict[str, float] = {}
    for unit in _HOSTILE:
        text = unit * (_LONG_CHARS // len(unit))
        started = time.perf_counter()
        redact(text)
        took[unit] = time.perf_counter() - started
    return took


def main() -> int:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="JSON files of conversations without secrets")
    parser.add_argument("--show", action="store_true", help="print what was wrongly redacted")
    given = parser.parse_args()
    emit(
        "redaction",
        {
            "conversations": {file.stem: _false(_turns([file]), is_shown=given.show) for file in given.data},
            "synthetic": _left(20 if given.quick else 500),
            "us_per_chat_message": _us_per_chat_message(1_000 if given.quick else 20_000),
            "hostile_s_per_million_chars": {} if given.quick else _hostile_s(),
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
