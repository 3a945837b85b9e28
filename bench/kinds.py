"""Which sentences are worth keeping, of which kind, and whose they are: the linear head of `kalito_mcp.kinds`.

The sets in `bench/sets/kinds` were written for this by people who did not know the program, except the last 203 of
`hard`. `sentences` are single ones in twelve languages, `hard` are single ones in sixteen that are easily taken for the
other; `conversations` are whole, each sentence labelled; `people` are drawn from invented memories that the search was
tuned on. Trained is on the first three. `--train` writes the weights. Printed are, for conversations left out of the
training in turn, and for `people`, which never take part: the area under the curve, and precision and recall of what is
kept above a bar. `--apart FILE` measures another file of conversations.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import numpy as np
from numpy.typing import NDArray

from bench.report import emit, progress
from kalito_mcp.domain.kinds import PASSING, Kind
from kalito_mcp.inference.meaning import MeaningEmbedder
from kalito_mcp.kinds.head import KINDS, WEIGHTS, features, shares, signs
from kalito_mcp.kinds.judged import Sentence
from kalito_mcp.ports.embedder import VectorPolicy

_SETS: Final = Path(__file__).with_name("sets") / "kinds"
_KINDS: Final = list(Kind)
_FOLDS: Final = 5
_STEPS: Final = 400
_RATE: Final = 0.05
_FORGETTING: Final = (0.9, 0.999)
_SHRINKING: Final = 2.0
"""The L2 penalty on the weights, in units of one sentence's loss."""
_SHRINKING_OF_LABELS: Final = 1.0
_BARS: Final = (0.4, 0.5, 0.6, 0.65, 0.7, 0.8)


class Labelled(NamedTuple):
    """Sentences with their labels, and the conversation that each is of."""

    sentences: list[Sentence]
    kinds: list[Kind]
    is_kept: NDArray[np.bool_]
    of: list[str | None]
    conversation: NDArray[np.int64]


def of_conversations(path: Path) -> Labelled:
    """The sentences of whole conversations."""
    rows = [
        (Sentence(one["text"], message["role"] == "assistant"), one["kind"], one["keep"], one["of"], number)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines())
        for message in json.loads(line)["messages"]
        for one in message["sentences"]
    ]
    return _labelled(rows)


def of_lines(path: Path) -> Labelled:
    """Single sentences. Without a label, one is kept if its kind is."""
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [
        (Sentence(one["text"], one["role"] == "assistant"), one["kind"], one.get("keep", True), one["of"], -1)
        for one in found
    ]
    return _labelled(rows)


def _labelled(rows: Sequence[tuple[Sentence, str, bool, str | None, int]]) -> Labelled:
    kinds = [Kind(kind) for _, kind, _, _, _ in rows]
    return Labelled(
        [sentence for sentence, *_ in rows],
        kinds,
        np.array([keep and kind not in PASSING for (_, _, keep, _, _), kind in zip(rows, kinds, strict=True)]),
        [of for *_, of, _ in rows],
        np.array([number for *_, number in rows], np.int64),
    )


def together(*parts: Labelled) -> Labelled:
    """All of them, as one set."""
    return Labelled(
        [one for part in parts for one in part.sentences],
        [one for part in parts for one in part.kinds],
        np.concatenate([part.is_kept for part in parts]),
        [one for part in parts for one in part.of],
        np.concatenate([part.conversation for part in parts]),
    )


def embedded(texts: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of the texts by the model of every installation."""

    async def embed() -> NDArray[np.float32]:
        model = MeaningEmbedder(VectorPolicy())
        try:
            return await model.embed(texts)
        finally:
            await model.aclose()

    return anyio.run(embed)


def inputs(labelled: Labelled) -> NDArray[np.float32]:
    """What the head reads of each sentence."""
    vectors = embedded([one.text for one in labelled.sentences])
    return np.concatenate([vectors, features(labelled.sentences)], axis=1)


def trained(labelled: Labelled, of_each: NDArray[np.float32], among: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The weights, from those sentences among them. What nobody kept is learned as chatter."""
    kinds = np.array(
        [
            _KINDS.index(kind if kind in PASSING or keep else Kind.CHATTER)
            for kind, keep in zip(labelled.kinds, labelled.is_kept, strict=True)
        ]
    )
    has_owner = among & labelled.is_kept & np.array([one is not None for one in labelled.of])
    of_project = np.array([one == "project" for one in labelled.of], np.int64)
    of_kinds = fitted(of_each[among], kinds[among], len(_KINDS))
    owners = fitted(of_each[has_owner], of_project[has_owner], 2)
    return np.concatenate([of_kinds, owners[:, 1:] - owners[:, :1]], axis=1)


def fitted(
    of_each: NDArray[np.float32], labels: NDArray[np.int64], count: int, shrinking: float = _SHRINKING
) -> NDArray[np.float32]:
    """The weights of a softmax, by gradient descent with momentum (Kingma, Ba, ICLR 2015)."""
    weights = np.zeros((of_each.shape[1], count))
    wanted = np.eye(count)[labels]
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        error = shares(of_each, weights.astype(np.float32)) - wanted
        slope = (of_each.T @ error + shrinking * weights) / len(of_each)
        mean = _FORGETTING[0] * mean + (1 - _FORGETTING[0]) * slope
        square = _FORGETTING[1] * square + (1 - _FORGETTING[1]) * slope**2
        mean_now, square_now = mean / (1 - _FORGETTING[0] ** step), square / (1 - _FORGETTING[1] ** step)
        weights -= _RATE * mean_now / (np.sqrt(square_now) + 1e-8)
    return weights.astype(np.float32)


def told_apart(rows: Sequence[tuple[str, bool]], others: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """The column of weights that tells the sentences that have a label from those that do not, and from others; and how
    well it does so with those that were left out in turn."""
    sentences = [Sentence(text) for text in (*(text for text, _ in rows), *others)]
    of_each = np.concatenate([embedded([one.text for one in sentences]), features(sentences), signs(sentences)], axis=1)
    has_it = np.array([*(has_it for _, has_it in rows), *([False] * len(others))], np.int64)
    turns = np.random.default_rng(0).integers(0, _FOLDS, len(rows))
    turns = np.concatenate([turns, np.full(len(others), -1)])
    found = np.zeros(len(sentences), np.float32)
    for fold in range(_FOLDS):
        is_left_out = turns == fold
        weights = fitted(of_each[~is_left_out], has_it[~is_left_out], 2, _SHRINKING_OF_LABELS)
        found[is_left_out] = shares(of_each[is_left_out], weights)[:, 1]
    weights = fitted(of_each, has_it, 2, _SHRINKING_OF_LABELS)
    return weights[:, 1:] - weights[:, :1], measured(found[: len(rows)], has_it[: len(rows)] == 1)


def of_labels() -> dict[str, tuple[NDArray[np.float32], dict[str, Any]]]:
    """The columns of single labels, in their order, with their figures."""
    points, keeps = (_rows(name) for name in ("points", "keeps"))
    asking = {one["text"] for name in ("sentences", "hard") for one in _lines(name) if one["kind"] in PASSING}
    return {
        "points": told_apart(points, [text for text, has_it in keeps if has_it]),
        "keeps": told_apart(keeps, [*sorted(asking), *(text for text, has_it in points if has_it)]),
    }


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_SETS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _rows(name: str) -> list[tuple[str, bool]]:
    return [(row["text"], row[name]) for row in _lines(name)]


def worth(of_each: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """How likely each sentence is one that is kept."""
    passing = [_KINDS.index(kind) for kind in PASSING]
    return np.asarray(1 - shares(of_each, weights[:, :KINDS])[:, passing].sum(axis=1), np.float32)


def measured(found: NDArray[np.float32], is_kept: NDArray[np.bool_]) -> dict[str, Any]:
    """The area under the curve, and precision and recall at each bar."""
    ranks = np.empty(len(found))
    ranks[np.argsort(found, kind="stable")] = np.arange(1, len(found) + 1)
    kept, others = int(is_kept.sum()), int((~is_kept).sum())
    area = (ranks[is_kept].sum() - kept * (kept + 1) / 2) / (kept * others)
    bars = {
        str(bar): [float(is_kept[found >= bar].mean()), float(is_kept[found >= bar].sum() / kept)]
        for bar in _BARS
        if (found >= bar).any()
    }
    return {"sentences": len(found), "kept": kept, "auc": float(area), "precision, recall": bars}


def owners(labelled: Labelled, of_each: NDArray[np.float32], weights: NDArray[np.float32]) -> Mapping[str, float]:
    """Of what is kept and taken for the person's, how much is; and how much of the person's that is."""
    of_kept = labelled.is_kept & np.array([one is not None for one in labelled.of])
    is_personal = np.array([one == "person" for one in labelled.of])[of_kept]
    found = 1 / (1 + np.exp(of_each[of_kept] @ weights[:, KINDS]))
    figures: dict[str, float] = {}
    for bar in (0.5, 0.7, 0.8, 0.9):
        taken = found >= bar
        if taken.any():
            figures[f"right above {bar}"] = float(is_personal[taken].mean())
            figures[f"share above {bar}"] = float(is_personal[taken].sum() / max(1, is_personal.sum()))
    return figures


def right_kinds(labelled: Labelled, of_each: NDArray[np.float32], weights: NDArray[np.float32]) -> float:
    """Of what is kept, how much is taken for its kind."""
    kept = [at for at, kind in enumerate(_KINDS) if kind not in PASSING]
    found = shares(of_each[labelled.is_kept], weights[:, :KINDS])[:, kept].argmax(axis=1)
    labels = np.array([_KINDS.index(kind) for kind in labelled.kinds])[labelled.is_kept]
    return float((np.array(kept)[found] == labels).mean())


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="as without it: it takes a minute")
    parser.add_argument("--train", action="store_true", help=f"write {WEIGHTS.name}")
    parser.add_argument("--apart", type=Path, nargs="*", default=(), help="files of conversations to measure")
    given = parser.parse_args()
    single = [of_lines(_SETS / f"{name}.jsonl") for name in ("sentences", "hard")]
    known = together(*single, of_conversations(_SETS / "conversations.jsonl"))
    of_each = inputs(known)
    progress(f"kinds: {len(known.sentences):,} sentences")
    is_whole = known.conversation >= 0
    found = np.zeros(len(known.sentences), np.float32)
    for fold in range(_FOLDS):
        is_left_out = is_whole & (known.conversation % _FOLDS == fold)
        found[is_left_out] = worth(of_each[is_left_out], trained(known, of_each, ~is_left_out))
    labels = of_labels()
    columns = [column for column, _ in labels.values()]
    of_kinds = trained(known, of_each, np.ones(len(found), np.bool_))
    signless = np.zeros((len(columns[0]) - len(of_kinds), of_kinds.shape[1]), np.float32)
    weights = np.concatenate([np.concatenate([of_kinds, signless]), *columns], axis=1)
    if given.train:
        np.save(WEIGHTS, weights.astype("<f2"))
    figures: dict[str, Any] = {"conversations left out in turn": measured(found[is_whole], known.is_kept[is_whole])}
    figures |= {f"{name} left out in turn": figure for name, (_, figure) in labels.items()}
    weights = weights[: len(of_kinds)]
    others = {"people": of_lines(_SETS / "people.jsonl")}
    others |= {str(path): of_conversations(path) for path in given.apart}
    for name, other in others.items():
        read = inputs(other)
        figures[name] = measured(worth(read, weights), other.is_kept) | {
            "person": owners(other, read, weights),
            "right kinds": right_kinds(other, read, weights),
        }
    emit("kinds", figures)


if __name__ == "__main__":
    main()
