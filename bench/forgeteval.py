"""ForgetEval of deeplethe/lethe (MIT): does a recall give what is true now, and nothing that was changed or forgotten?

`--lethe FOLDER` names a checkout, whose `bench/forgeteval/generate.py` and `adversarial.py` are imported; no case of
theirs is part of this project. Each case gets a database of its own. A fact is one user message. A case passes as its
authors define it: all that must be found is in the texts that are recalled, and nothing that must not be.

What a case changes is recorded, and names the best hit of a search as superseded. A release forgets everything about
whom it names, and a purge erases everything with the identifier that it names, as `forget` does with `about` and
`identifier`. Without a name a release forgets the hits of a search above the widest gap of scores; without an
identifier a purge erases the best hit and its exact duplicates. `recall` is a search for 10 hits, without those that
have `superseded_by`.
"""

import importlib.util
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal

from bench.report import emit, options, progress
from kalito_mcp.domain.erasing import ForgetRequest
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.search import Hit, SearchRequest
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

_PERSON: Final = Editor(EditorType.HUMAN, "bench")
_SESSION: Final = "case"
_RELEASED: Final = 20
_PURGED: Final = 5
_NAME: Final = re.compile(r"\b[A-Z][a-z]+\b")
_OPENERS: Final = frozenset("Delete Erase Forget Remove Tell What Where Who The All Everything".split())
_IDENTIFIER: Final = re.compile(r"\S*[\d@]\S*")


class Adapter:
    """A memory as ForgetEval calls it."""

    def __init__(self, portal: BlockingPortal, memory: Memory) -> None:
        self._portal = portal
        self._memory = memory

    def reset(self) -> None:
        """Nothing to do: the database is new."""

    def inscribe(self, fact: str, supersedes: Sequence[str] = ()) -> None:
        """Record a fact."""
        details = {"supersedes": list(supersedes)} if supersedes else None
        message = NewMessage(Role.USER, fact, details=details)
        self._portal.call(self._memory.record_messages, _SESSION, [message])

    def supersede(self, query: str, fact: str) -> None:
        """Record a fact instead of the one that the query finds."""
        self.inscribe(fact, [hit.record_id for hit in self._hits(query, 1)])

    def release(self, query: str) -> None:
        """Forget everything about whom the query names; without a name, what it finds, above the widest gap of
        scores."""
        names = [name for name in _NAME.findall(query) if name not in _OPENERS]
        if names and self._forget_matching(ForgetRequest(about=" ".join(names))):
            return
        found = self._hits(query, _RELEASED)
        gaps = [before.score - after.score for before, after in pairwise(found)]
        kept = gaps.index(max(gaps)) + 1 if gaps else len(found)
        self._forget(found[:kept], is_purge=False)

    def purge(self, query: str) -> None:
        """Erase everything with the identifier of the query; without one, the best hit and its exact duplicates."""
        for identifier in _IDENTIFIER.findall(query):
            with suppress(InvalidInput):  # the pattern also finds what is no identifier, such as "@)"
                if self._forget_matching(ForgetRequest(identifier=identifier, is_purge=True)):
                    return
        found = self._hits(query, _PURGED)
        self._forget([hit for hit in found if hit.text == found[0].text], is_purge=True)

    def _forget_matching(self, request: ForgetRequest) -> bool:
        """Forget or erase what the preview of the request lists. Whether it lists anything."""
        return self._portal.call(_forget_matching, self._memory, request)

    def recall_texts(self, query: str, k: int) -> list[str]:
        """The texts that a search finds, without what is superseded."""
        return [hit.text for hit in self._hits(query, k) if hit.superseded_by is None]

    def _hits(self, query: str, k: int) -> Sequence[Hit]:
        return self._portal.call(self._memory.search_memory, SearchRequest(query=query, k=k)).hits

    def _forget(self, hits: Sequence[Hit], *, is_purge: bool) -> None:
        ids = [hit.record_id for hit in hits]
        if ids:
            self._portal.call(_forget, self._memory, ids, is_purge)


async def _forget_matching(memory: Memory, request: ForgetRequest) -> bool:
    preview = await memory.records.preview_forgetting(request)
    if preview.token is None:
        return False
    if request.is_purge:
        await memory.records.purge_previewed(request, preview.token)
    else:
        await memory.records.forget_previewed(request, preview.token, editor=_PERSON)
    return True


async def _forget(memory: Memory, ids: Sequence[str], is_purge: bool) -> None:
    if is_purge:
        await memory.purge(ids)
        return
    for record_id in ids:
        await memory.forget(record_id, editor=_PERSON)


def load(folder: Path, name: str) -> ModuleType:
    """A module of theirs, under the name by which the others import it."""
    qualified = f"bench.forgeteval.{name}"
    spec = importlib.util.spec_from_file_location(qualified, folder / "bench" / "forgeteval" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[qualified] = module
    spec.loader.exec_module(module)
    return module


def measured(cases: Sequence[Any], category: str) -> dict[str, float]:
    """The share of the cases that pass: by category, and of all."""
    passed: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    with start_blocking_portal() as portal:
        for case in cases:
            group = case.family if category == "family" else case.id.removeprefix("adv_").rpartition("_")[0]
            with (
                tempfile.TemporaryDirectory() as folder,
                portal.wrap_async_context_manager(open_memory(Path(folder) / "memory.db")) as memory,
            ):
                is_right = case.run(Adapter(portal, memory))
            asked[group] += 1
            passed[group] += is_right
            if not is_right:
                progress(f"{case.id} failed")
    shares = {group: passed[group] / asked[group] for group in asked}
    return {**shares, "overall": passed.total() / max(1, asked.total())}


def main() -> None:
    """Run both sets."""
    parser = options(__doc__)
    parser.add_argument("--lethe", type=Path, required=True, metavar="FOLDER", help="a checkout of deeplethe/lethe")
    parser.add_argument("--sets", nargs="+", choices=("templated", "adversarial"), default=["templated", "adversarial"])
    parser.add_argument("--families", nargs="+", help="only these families of cases")
    asked = parser.parse_args()
    sets: dict[str, Sequence[Any]] = {}
    generate = load(asked.lethe, "generate")
    if "templated" in asked.sets:
        sets["templated"] = generate.generate(20 if asked.quick else 200, seed=42)
    if "adversarial" in asked.sets:
        sets["adversarial"] = load(asked.lethe, "adversarial").ADVERSARIAL_TESTS
    figures: dict[str, Any] = {}
    for name, cases in sets.items():
        chosen = [case for case in cases if not asked.families or case.family in asked.families]
        figures[name] = measured(chosen, "family" if name == "templated" else "attack")
    emit("forgeteval", figures)


if __name__ == "__main__":
    main()
