"""Which pins are made by themselves, as a sample to label, and the precision of labelled ones.

The conversations are those of the data sets (see `bench.recall`), each one session, with its first speaker as the user
and a second person under a name. `--half` takes a fixed random half of them: `first` to look at while they
are changed, `second` for a last check, or `all`.

`--sample 100` prints that many pins, chosen by `--seed`: one JSON object a line, with `id` (a digest), `kind`
(`person`, `code` or `assistant`), `said` and `label`, which is null. To label them, save the lines and set `label` to
true where somebody will want to have the pin in sight later. `--labels FILE` reads such a file and reports the
precision of each kind, over the labelled pins that are still made (`n`), and how many of the good and of the bad ones
are made no more.
"""

import argparse
import hashlib
import json
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from anyio.from_thread import start_blocking_portal

from bench.recall import BenchData, Memories, bench_data_options, conversation_limit, find_bench_data
from bench.report import emit, progress
from kalito_mcp.retrieval.policy import SearchPolicy

_SESSION: Final = "all"
_HALVES: Final = ("first", "second", "all")
_SELECT_PINS: Final = """
SELECT p.text, json_extract(p.attributes, '$.pin_type'), m.role, m.name, m.seq FROM records p
JOIN records m ON m.session_key = p.session_key AND m.type = 'message'
    AND 'msg_' || m.key = json_extract(p.attributes, '$.source_message_id')
WHERE p.type = 'pin' AND p.deleted_at IS NULL ORDER BY m.seq, p.key
"""


def in_half(conversation_id: str, half: str) -> bool:
    """Whether the conversation is in this half, by a digest of its id."""
    is_first = hashlib.blake2b(conversation_id.encode(), digest_size=1).digest()[0] % 2 == 0
    return half == "all" or is_first == (half == "first")


def kind_of(pin_type: str, role: str, name: str | None) -> str:
    """`code`, `assistant` for the words of an assistant without a name, else `person`."""
    if pin_type == "code":
        return "code"
    return "assistant" if role == "assistant" and not name else "person"


def as_line(conversation_id: str, row: Sequence[Any]) -> dict[str, Any]:
    """A pin as an object to label."""
    text, pin_type, role, name, seq = row
    digest = hashlib.blake2b(f"{conversation_id}\0{text}".encode(), digest_size=8).hexdigest()
    place = f"{conversation_id} message {seq}"
    return {"id": digest, "kind": kind_of(pin_type, role, name), "where": place, "said": text, "label": None}


def pins(bench_data: BenchData, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The automatic pins of the conversations."""
    with start_blocking_portal() as portal:
        for name in bench_data.names(given.data):
            for one in bench_data.load(name, conversation_limit(given))["conversations"]:
                if not in_half(str(one["id"]), given.half):
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    turns = [{**turn, "session": _SESSION} for turn in one["turns"]]
                    with Memories(Path(folder), portal).opened(turns, SearchPolicy()):
                        pass
                    [database] = Path(folder).glob("*.db")
                    with closing(sqlite3.connect(database)) as connection:
                        for row in connection.execute(_SELECT_PINS):
                            yield as_line(str(one["id"]), row)


def precision(made: Sequence[Mapping[str, Any]], labelled: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """In percent, by kind. Lines without a label do not count."""
    still = {one["id"] for one in made}
    counts: dict[str, Counter[str]] = {}
    for one in labelled:
        if one["label"] is not None:
            state = ("good" if one["label"] else "bad") + ("" if one["id"] in still else " made no more")
            counts.setdefault(one["kind"], Counter())[state] += 1
    return {
        kind: {
            "precision": 100 * of["good"] / max(1, of["good"] + of["bad"]),
            "n": of["good"] + of["bad"],
            "good made no more": of["good made no more"],
            "bad made no more": of["bad made no more"],
        }
        for kind, of in counts.items()
    }


def main() -> None:
    """Run the benchmark."""
    parser = bench_data_options(__doc__)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="print so many pins to label")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=_HALVES, default="all", help="of the conversations (default all)")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="labelled lines, for the precision")
    given = parser.parse_args()
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        return
    made = list(pins(bench_data, given))
    if given.sample:
        for one in random.Random(given.seed).sample(made, min(given.sample, len(made))):
            print(json.dumps(one, ensure_ascii=False))
        return
    figures: dict[str, Any] = {"half": given.half, "pins": dict(Counter(one["kind"] for one in made))}
    if given.labels is not None:
        lines = given.labels.read_text(encoding="utf-8").splitlines()
        figures["precision"] = precision(made, [json.loads(line) for line in lines if line.strip()])
    progress(f"pins: {figures}")
    emit("pins", figures)


if __name__ == "__main__":
    main()
