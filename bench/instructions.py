"""How well instruction-like texts are told apart from honest ones, and how fast.

For the payloads of the tests: the share that is found, by class, and separately for the held-out ones. For the honest
notes of the tests and the turns of `--data` files ({"conversations": [{"turns": [{"text": ...}]}]}): the share that is
wrongly taken for instructions. Without `--data` there are no real messages.
"""

import json
import sys
import timeit
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.report import emit, options
from kalito_mcp.safety.instructions import is_instruction_like
from tests.safety.instruction_payloads import HELD_OUT, HONEST, TUNED

_NOTE_CHARS: Final = 120
_LONG_CHARS: Final = 1_000_000
_HOSTILE: Final = ("ignore ", "http://a/", "do not tell ", " ,send send", "send password ", "忽略之", "a ", "aа")


def _found(texts: Sequence[str]) -> dict[str, Any]:
    found = sum(map(is_instruction_like, texts))
    return {"n": len(texts), "found": found, "share": found / len(texts) if texts else 0.0}


def _all(payloads: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [text for texts in payloads.values() for text in texts]


def _turns(file: Path) -> list[str]:
    conversations = json.loads(file.read_text(encoding="utf-8"))["conversations"]
    return [str(turn["text"]) for conversation in conversations for turn in conversation["turns"] if turn["text"]]


def _us_per_note(texts: Sequence[str]) -> float:
    """Microseconds for a note of 120 characters, on average. The least of five measurements."""
    notes = [text[:_NOTE_CHARS] for text in texts if len(text) >= _NOTE_CHARS] or [
        " ".join(HONEST)[start : start + _NOTE_CHARS] for start in range(0, 6_000, _NOTE_CHARS)
    ]
    times = timeit.repeat(lambda: [is_instruction_like(note) for note in notes], number=1, repeat=5)
    return min(times) / len(notes) * 1e6


def _hostile_s() -> dict[str, float]:
    return {
        unit: timeit.timeit(lambda unit=unit: is_instruction_like(unit * (_LONG_CHARS // len(unit))), number=1)  # type: ignore[misc]
        for unit in _HOSTILE
    }


def main() -> int:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="JSON files of conversations")
    given = parser.parse_args()
    real = {file.stem: _turns(file) for file in given.data}
    emit(
        "instructions",
        {
            "payloads": _found(_all(TUNED) + _all(HELD_OUT)),
            "payloads_held_out": _found(_all(HELD_OUT)),
            "by_class": {kind: _found([*TUNED[kind], *HELD_OUT[kind]])["share"] for kind in TUNED},
            "held_out_by_class": {kind: _found(texts)["share"] for kind, texts in HELD_OUT.items()},
            "honest": _found(HONEST),
            "real": {name: _found(texts) for name, texts in real.items()},
            "us_per_note": _us_per_note([text for texts in real.values() for text in texts]),
            "hostile_s_per_million_chars": {} if given.quick else _hostile_s(),
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
