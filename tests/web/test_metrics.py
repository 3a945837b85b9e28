"""`/metrics`: what it says, to whom, and what it never says."""

import re
from pathlib import Path

import httpx2

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.scope import Limits
from kalito_mcp.web.metrics import Counter, Histogram
from tests.web.talking import Caller, talking, token

LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? [0-9.e+-]+')


def numbers(http: httpx2.Client, text: str) -> dict[str, float]:
    answer = http.get("/metrics", headers={"Authorization": f"Bearer {text}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = [line for line in answer.text.splitlines() if not line.startswith("# ")]
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_the_numbers_are_those_of_the_calls_and_have_no_word_of_them(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    writes, reads = token(database, Permission.WRITE), token(database, Permission.READ, owner="prometheus")
    with talking(database) as (serving, http):
        caller = Caller.connect(http, serving.url, writes)
        caller.call("record_messages", {"session_id": "canary", "messages": [{"role": "user", "text": "To Oslo."}]})
        caller.call("search_memory", {"query": "Oslo"})
        caller.call("search_memory", {"query": "canary zebra"})
        caller.call("build_context", {"session_id": "canary"})
        caller.call("canary_tool", {})
        caller.call("forget", {"record_ids": ["canary_9"]})
        http.get("/canary/path", headers={"Authorization": f"Bearer {writes}"})
        http.request("CANARY", "/mcp", headers={"Authorization": f"Bearer {writes}"})
        http.get("/mcp", headers={"Authorization": "Bearer kal_canary"})
        found = numbers(http, reads)
    assert found['kalito_http_requests_total{route="/mcp",method="POST",status="200"}'] == 7
    assert found['kalito_http_requests_total{route="other",method="GET",status="404"}'] == 1
    assert found["kalito_auth_failures_total"] == 1
    assert found["kalito_rate_limited_total"] == 0
    assert found['kalito_tool_calls_total{tool="search_memory",outcome="done"}'] == 2
    assert found['kalito_tool_calls_total{tool="forget",outcome="refused"}'] == 1
    assert found['kalito_tool_calls_total{tool="other",outcome="failed"}'] == 1
    assert found['kalito_tool_seconds_bucket{tool="search_memory",le="+Inf"}'] == 2
    assert found["kalito_searches_total"] == 2
    assert (found["kalito_search_hits_total"], found["kalito_search_silences_total"]) == (1, 1)
    assert found["kalito_contexts_total"] == 1
    assert found["kalito_context_tokens_total"] > 10
    assert found["process_resident_memory_bytes"] > 10_000_000
    assert found["process_open_fds"] > 3
    assert {"kalito_owed_age_seconds", "kalito_subscriptions", "kalito_injected_tokens_total"} <= found.keys()
    assert [name for name in found if "canary" in name.lower() or "oslo" in name.lower()] == []


def test_who_is_limited_to_a_part_of_a_memory_does_not_see_the_numbers_of_all(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    limits = (Limits(agent="coder"), Limits(project="shop"))
    texts = [token(database, Permission.ADMIN, limits=one) for one in limits]
    with talking(database) as (_, http):
        assert http.get("/metrics").status_code == 401
        for text in texts:
            assert http.get("/metrics", headers={"Authorization": f"Bearer {text}"}).status_code == 403


def test_a_histogram_counts_each_duration_in_all_buckets_above_it() -> None:
    times = Histogram("t", "Times.", "tool")
    for seconds in (0.001, 0.002, 7, 100):
        times.add(seconds, "a")
    lines = dict(line.rpartition(" ")[::2] for line in times.lines())
    assert lines['t_bucket{tool="a",le="0.001"}'] == "1"
    assert lines['t_bucket{tool="a",le="0.0025"}'] == "2"
    assert lines['t_bucket{tool="a",le="5.0"}'] == "2"
    assert lines['t_bucket{tool="a",le="10.0"}'] == "3"
    assert lines['t_bucket{tool="a",le="+Inf"}'] == lines['t_count{tool="a"}'] == "4"


def test_a_label_is_escaped_and_a_large_count_is_exact() -> None:
    counter = Counter("c", "Counts.", "x")
    counter.add('a"b\\c\nd', by=123_456_789)
    assert [*counter.lines()][-1] == r'c{x="a\"b\\c\nd"} 123456789'
