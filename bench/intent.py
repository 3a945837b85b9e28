"""What queries ask of the memory: the linear head of `kalito_mcp.retrieval.intent_head`.

`bench/sets/intent/queries.jsonl` was written for this in sixteen languages by people who did not know the program: each
line asks where the work was left (`left_off`), for what was said earlier (`earlier`), for what the assistant said
(`assistant`), or for something else (`other`), half of which is easily taken for the first. What users say in
`bench/sets/kinds` asks for something else, too. `--train` writes the weights. Printed are, for a fifth of the lines
left out of the training in turn: how many of each are found at its bar, and how many others are taken for it. `--apart
FILE` measures another file.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.kinds import embedded, fitted, of_conversations, of_lines
from bench.report import emit, progress
from kalito_mcp.retrieval.intent import Intent
from kalito_mcp.retrieval.intent_head import BARS, WEIGHTS, inputs, likely

_SETS: Final = Path(__file__).with_name("sets")
_FOLDS: Final = 5
_SHRINKING: Final = 0.3


def trained(texts: Sequence[str], vectors: NDArray[np.float32], kinds: Sequence[str]) -> NDArray[np.float32]:
    """The weights: for each field of `Intent`, those that tell it from the rest."""
    of_each = inputs(texts, vectors)
    columns = [
        fitted(of_each, np.array([one == name for one in kinds], np.int64), 2, _SHRINKING) for name in Intent._fields
    ]
    return np.stack([column[:, 1] - column[:, 0] for column in columns], axis=1)


def measured(found: NDArray[np.float32], kinds: Sequence[str]) -> Mapping[str, Any]:
    """For each field: how many of its own are found at the bar, and how many others."""
    of_each = {}
    for at, name in enumerate(Intent._fields):
        is_own = np.array([one == name for one in kinds])
        is_found = found[:, at] >= BARS[at]
        of_each[name] = {
            "found": [int((is_found & is_own).sum()), int(is_own.sum())],
            "others": [int((is_found & ~is_own).sum()), int((~is_own).sum())],
        }
    return of_each


def read(path: Path) -> tuple[list[str], list[str]]:
    """The texts of a file, and what each asks."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [one["text"] for one in rows], [one["asks"] for one in rows]


def said() -> list[str]:
    """What users say in conversations, a sentence each."""
    kinds = _SETS / "kinds"
    sets = (of_lines(kinds / "sentences.jsonl"), of_lines(kinds / "hard.jsonl"))
    every = [one for part in (*sets, of_conversations(kinds / "conversations.jsonl")) for one in part.sentences]
    return list(dict.fromkeys(one.text for one in every if not one.is_assistant))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="as without it: it takes half a minute")
    parser.add_argument("--train", action="store_true", help=f"write {WEIGHTS.name}")
    parser.add_argument("--apart", type=Path, nargs="*", default=(), help="files of queries to measure")
    given = parser.parse_args()
    texts, kinds = read(_SETS / "intent" / "queries.jsonl")
    queries = len(texts)
    texts += said()
    kinds += ["other"] * (len(texts) - queries)
    vectors = embedded(texts)
    progress(f"intent: {queries:,} queries, {len(texts) - queries:,} sentences")
    fold = np.arange(len(texts)) % _FOLDS
    found = np.zeros((len(texts), len(BARS)), np.float32)
    for left_out in range(_FOLDS):
        known = np.flatnonzero(fold != left_out)
        weights = trained([texts[at] for at in known], vectors[known], [kinds[at] for at in known])
        rest = np.flatnonzero(fold == left_out)
        found[rest] = likely([texts[at] for at in rest], vectors[rest], weights)
    weights = trained(texts, vectors, kinds)
    if given.train:
        np.save(WEIGHTS, weights.astype("<f2"))
    figures: dict[str, Any] = {"left out in turn": measured(found[:queries], kinds[:queries])}
    figures["sentences left out in turn"] = measured(found[queries:], kinds[queries:])
    for path in given.apart:
        others, of_others = read(path)
        figures[str(path)] = measured(likely(others, embedded(others), weights), of_others)
    emit("intent", figures)


if __name__ == "__main__":
    main()
