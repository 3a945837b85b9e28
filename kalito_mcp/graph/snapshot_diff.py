"""The difference between two snapshots. Pure; works on their JSON only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kalito_mcp.errors import InvalidInput

_COMPARED: Final = ("text", "summary", "weights", "pinned", "source_node_ids")


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """The difference; all nodes are ordered by id.

    `added` are nodes only in the later snapshot, `removed` only in the earlier one. `changed` are nodes in both that
    differ in text, summary, weights, pin or merged nodes, as (earlier, later).
    """

    added: tuple[Mapping[str, Any], ...]
    removed: tuple[Mapping[str, Any], ...]
    changed: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...]
    added_edges: int
    removed_edges: int

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.added_edges or self.removed_edges)


def diff(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> SnapshotDiff:
    """Compare two snapshots. Raises InvalidInput if one of them is not a snapshot."""
    before, after = _by_id(earlier, "nodes"), _by_id(later, "nodes")
    edges_before, edges_after = _by_id(earlier, "edges"), _by_id(later, "edges")
    both = sorted(before.keys() & after.keys())
    return SnapshotDiff(
        added=tuple(after[one] for one in sorted(after.keys() - before.keys())),
        removed=tuple(before[one] for one in sorted(before.keys() - after.keys())),
        changed=tuple((before[one], after[one]) for one in both if _compared(before[one]) != _compared(after[one])),
        added_edges=len(edges_after.keys() - edges_before.keys()),
        removed_edges=len(edges_before.keys() - edges_after.keys()),
    )


def _by_id(snapshot: Any, kind: str) -> dict[str, Mapping[str, Any]]:
    try:
        return {str(one["id"]): {"type": str(one["type"]), **one} for one in snapshot["graph"][kind]}
    except (KeyError, TypeError) as error:
        raise InvalidInput("one of the two is not a snapshot; give complete files that kalito wrote") from error


def _compared(node: Mapping[str, Any]) -> list[Any]:
    return [node.get(name) for name in _COMPARED]
