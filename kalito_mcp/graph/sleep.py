"""The sleep cycle merges similar queries of low rank. First comes a plan, which changes nothing; then the merge.

The plan takes the queries of the lowest rank. Each of them, best first, becomes the anchor of a cluster: the queries
whose cosine with it reaches the threshold. The anchor keeps its id and gains the weights and edges of the others.
Their ids are kept as provenance, so that asking one of them again finds the anchor. Records are not touched.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from heapq import nsmallest
from typing import Any, Final

from kalito_mcp.domain.graph import EdgeType, GraphConfig, GraphNode, NodeType
from kalito_mcp.domain.sleep import (
    SleepCycleClusterReport,
    SleepCycleConfig,
    SleepCycleOptions,
    SleepCycleReport,
    SleepCycleSummarizer,
    SleepCycleTrigger,
)
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.graph.indexed_graph import IndexedGraph, join_sources
from kalito_mcp.graph.ranking import UNDECAYED, rank

Ranked = Callable[[GraphNode], float]

_log: Final = logging.getLogger("kalito.graph")


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """Queries to be merged into the anchor. `texts` are their texts, the anchor's first."""

    anchor_id: str
    merged_ids: tuple[str, ...]
    texts: tuple[str, ...]
    before_rank: float
    after_rank: float


@dataclass(frozen=True, slots=True)
class SleepPlan:
    """The effect of a cycle on the graph at this version."""

    trigger: SleepCycleTrigger
    clusters: tuple[PlannedCluster, ...]
    inspected: int
    timestamp: int
    version: int
    summary_max_length: int


def override_options(defaults: SleepCycleOptions, given: Mapping[str, Any]) -> SleepCycleOptions:
    """The defaults, overridden by the given options. Raises InvalidInput for an unknown name or a bad value."""
    known = {one.name: type(one.default) for one in fields(SleepCycleOptions)}
    for name, value in given.items():
        if name not in known:
            raise InvalidInput(f"unknown sleep cycle option {name!r}; use one of {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, (int, known[name])):
            raise InvalidInput(f"{name}={value!r} should be of type {known[name].__name__}")
    return replace(defaults, **given)


def plan_cycle(
    graph: IndexedGraph,
    config: GraphConfig,
    options: SleepCycleOptions,
    trigger: SleepCycleTrigger,
    *,
    now_ms: int,
) -> SleepPlan:
    """Plan a cycle: the largest clusters first, equal ones by the anchor's id. Changes nothing.

    When a session is finalized, ranks are computed without decay, as in promotion: the age of the session must not
    turn queries worth promoting into queries to merge.
    """
    at_ms = UNDECAYED if trigger is SleepCycleTrigger.SESSION_FINALIZE else now_ms
    ranked = partial(rank, now_ms=at_ms, half_life_min=config.half_life_min)
    low = _lowest_queries(graph, options, ranked)
    near = partial(_near, graph, config, threshold=options.similarity_threshold)
    groups = _groups(low, near, options)
    # Only now is it known which neighbours will be merged, and so how many edges each anchor will have.
    places = {node.id: anchor.id for anchor, *merged in groups for node in merged}
    return SleepPlan(
        trigger=trigger,
        clusters=tuple(_planned(graph, members, places, ranked) for members in groups),
        inspected=len(low),
        timestamp=now_ms,
        version=graph.network.version,
        summary_max_length=options.summary_max_length,
    )


def summarize_clusters(plan: SleepPlan, summarizer: SleepCycleSummarizer) -> dict[str, str]:
    """A summary for each anchor. If the summarizer raises or returns nothing, it is the anchor's own text."""
    return {
        cluster.anchor_id: _summary(cluster, plan.summary_max_length, summarizer.summarize) for cluster in plan.clusters
    }


def apply_plan(graph: IndexedGraph, plan: SleepPlan, texts: Mapping[str, str]) -> SleepCycleReport:
    """Merge as planned. `texts` are the summaries by anchor.

    A missing or blank summary becomes the anchor's own text; a long one is cut.

    Raises:
        Conflict: the graph has changed since the plan; nothing was merged.
    """
    if plan.version != graph.network.version:
        raise Conflict("the graph has changed since this sleep cycle was planned; plan it again")
    reports = []
    for cluster in plan.clusters:
        report = _cluster_report(cluster, plan, texts)
        _merge(graph, cluster, report.summary)
        reports.append(report)
    return _report_of(plan, tuple(reports))


def preview_report(plan: SleepPlan, texts: Mapping[str, str]) -> SleepCycleReport:
    """The report of a plan as if it had been applied."""
    return _report_of(plan, tuple(_cluster_report(cluster, plan, texts) for cluster in plan.clusters))


def _report_of(plan: SleepPlan, clusters: tuple[SleepCycleClusterReport, ...]) -> SleepCycleReport:
    """The report of a plan with these clusters."""
    return SleepCycleReport(
        trigger=plan.trigger,
        clusters=clusters,
        freed_capacity=sum(cluster.freed_nodes for cluster in clusters),
        inspected=plan.inspected,
        timestamp=plan.timestamp,
    )


def _lowest_queries(graph: IndexedGraph, options: SleepCycleOptions, ranked: Ranked) -> list[GraphNode]:
    """The queries that may be merged: of the lowest ranks, best first, equal ones by id."""
    queries = (one for one in graph.network.nodes.values() if one.type is NodeType.QUERY and not one.pinned)
    pairs = ((ranked(node), node.id) for node in queries)
    low = nsmallest(options.max_inspect, (pair for pair in pairs if pair[0] <= options.min_rank))
    return [graph.network.nodes[node_id] for _, node_id in sorted(low, key=lambda pair: (-pair[0], pair[1]))]


def _groups(
    low: Sequence[GraphNode], near: Callable[[str], list[str]], options: SleepCycleOptions
) -> list[list[GraphNode]]:
    """The clusters to merge, each with its anchor first: the largest first, equal ones by the anchor's id."""
    free = {node.id: node for node in low}
    groups: list[list[GraphNode]] = []
    for anchor in low:
        if anchor.id not in free:
            continue
        members = [anchor, *(free[node_id] for node_id in near(anchor.id) if node_id in free)]
        if len(members) >= options.min_cluster_size:
            groups.append(members)
            for node in members:
                del free[node.id]
    return sorted(groups, key=lambda members: (-len(members), members[0].id))[: options.max_clusters]


def _planned(
    graph: IndexedGraph, members: Sequence[GraphNode], places: Mapping[str, str], ranked: Ranked
) -> PlannedCluster:
    """The cluster of these nodes, with its anchor's rank before and after. `places` as in `_degree_when_merged`."""
    merged = _merged_anchor(members, degree=_degree_when_merged(graph, members, places))
    return PlannedCluster(
        anchor_id=members[0].id,
        merged_ids=tuple(node.id for node in members[1:]),
        texts=tuple(node.summary or node.text or "" for node in members),
        before_rank=ranked(members[0]),
        after_rank=ranked(merged),
    )


def notify(config: SleepCycleConfig, report: SleepCycleReport) -> None:
    """Pass the report to the listener. An error of the listener is logged: the cycle itself has succeeded."""
    if config.emit is None:
        return
    try:
        config.emit(report)
    except Exception:
        _log.exception("the sleep cycle is done, but its report could not be handed on")


def cut(text: str, length: int) -> str:
    """The text on one line, cut to a length in characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}…"


def _cluster_report(cluster: PlannedCluster, plan: SleepPlan, texts: Mapping[str, str]) -> SleepCycleClusterReport:
    return SleepCycleClusterReport(
        anchor_id=cluster.anchor_id,
        merged_node_ids=cluster.merged_ids,
        summary=_usable_summary(texts.get(cluster.anchor_id), cluster, plan.summary_max_length),
        before_rank=cluster.before_rank,
        after_rank=cluster.after_rank,
        freed_nodes=len(cluster.merged_ids),
    )


def _near(graph: IndexedGraph, config: GraphConfig, node_id: str, *, threshold: float) -> list[str]:
    """Queries near a query, nearest first. From `tau_sim` up these are its similarity edges."""
    if threshold < config.tau_sim:
        near = graph.index.near(graph.index.vector(node_id), threshold)
        return [other_id for other_id, _ in near if other_id != node_id]
    return [other_id for weight, other_id in graph.network.similar_to(node_id) if weight >= threshold]


def _summary(cluster: PlannedCluster, max_length: int, summarize: Callable[[Sequence[str], int], str]) -> str:
    try:
        text = summarize(cluster.texts, max_length)
    except Exception:
        _log.exception("a cluster of %d queries keeps its anchor's text: the summarizer failed", len(cluster.texts))
        text = ""
    return _usable_summary(text, cluster, max_length)


def _usable_summary(text: object, cluster: PlannedCluster, max_length: int) -> str:
    """The summary made storable: valid Unicode, cut to length; the anchor's own text if there is no summary."""
    if not isinstance(text, str) or not text.strip():
        text = cluster.texts[0]
    return cut(text.encode(errors="replace").decode(), max_length)


def _merged_anchor(members: Sequence[GraphNode], *, degree: int) -> GraphNode:
    """The anchor after the merge: the first member, with the weights and the provenance of all."""
    anchor = members[0]
    weights = replace(anchor.weights)
    for node in members[1:]:
        weights.gain(repeat=node.weights.repeat, feedback=node.weights.feedback)
    return replace(
        anchor,
        weights=weights,
        created_at=min(node.created_at for node in members),
        last_access=max(node.last_access for node in members),
        source_node_ids=join_sources(
            anchor.source_node_ids, (one for node in members[1:] for one in (node.id, *node.source_node_ids))
        ),
        source_record_ids=join_sources(
            anchor.source_record_ids, (one for node in members[1:] for one in node.source_record_ids)
        ),
        degree=degree,
    )


def _degree_when_merged(graph: IndexedGraph, members: Sequence[GraphNode], places: Mapping[str, str]) -> int:
    """How many edges the merged node will have: those that leave the cluster, without doubles.

    `places` maps the other merged nodes of the plan to their anchors.
    """
    inside = {node.id for node in members}
    ties: set[tuple[EdgeType, bool, str]] = set()
    for node in members:
        for edge in graph.network.edges_of(node.id):
            is_out = edge.from_id in inside
            other = edge.to_id if is_out else edge.from_id
            if other not in inside:
                # A similarity has no direction: it counts once whichever way it runs.
                ties.add((edge.type, is_out or edge.type is EdgeType.SIMILAR_TO, places.get(other, other)))
    return len(ties)


def _merge(graph: IndexedGraph, cluster: PlannedCluster, summary: str) -> None:
    network = graph.network
    members = [network.nodes[node_id] for node_id in (cluster.anchor_id, *cluster.merged_ids)]
    edges = [edge for node in members[1:] for edge in network.edges_of(node.id)]
    anchor = replace(_merged_anchor(members, degree=members[0].degree), summary=summary)
    for node in members[1:]:
        graph.drop(node.id)
    graph.put(anchor)
    merged = set(cluster.merged_ids)
    for edge in edges:
        ends = [anchor.id if end in merged else end for end in (edge.from_id, edge.to_id)]
        if ends[0] == ends[1]:
            continue
        if edge.type is EdgeType.SIMILAR_TO:
            ends.sort()
        known = network.edge((ends[0], edge.type, ends[1]))
        moved = replace(edge, from_id=ends[0], to_id=ends[1])
        if known is not None:
            moved = replace(
                moved,
                weight=max(known.weight, edge.weight),
                created_at=min(known.created_at, edge.created_at),
                last_access=max(known.last_access, edge.last_access),
            )
        network.put_edge(moved)
