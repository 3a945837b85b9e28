"""Records as lines: what is overdue, and what a line never contains."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.cli.record_lines import (
    hit_line,
    is_overdue,
    nothing_lines,
    one_line,
    record_lines,
    task_lines,
    why_lines,
)
from kalito_mcp.cli.session_lines import project_names
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.search import Hit

TASK = MemoryRecord(
    id="task_1",
    type=RecordType.TASK,
    agent_id="default",
    session_id=None,
    content={"text": "Call Ann.", "importance_score": 0.5, "status": "pending", "priority": "medium"},
    origin=Origin.USER,
    client=None,
    created_at=0,
    recorded_at=0,
    revision=1,
)
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_a_task_is_overdue_when_its_day_or_moment_is_over_and_it_is_not() -> None:
    for fields, is_so in (
        ({}, False),
        ({"due_date": "2026-03-03"}, True),
        ({"due_date": "2026-03-04"}, False),
        ({"due_date": "2026-03-04T11:59:00.000Z"}, True),
        ({"due_date": "2026-03-04T12:01:00.000Z"}, False),
        ({"due_date": "2026-03-03", "status": "in_progress"}, True),
        ({"due_date": "2026-03-03", "status": "completed"}, False),
        ({"due_date": "2026-03-03", "status": "failed"}, False),
    ):
        task = replace(TASK, content={**TASK.content, **fields})
        assert is_overdue(task, NOW) is is_so
        assert (" overdue " in task_lines([task], NOW)[1]) is is_so


def test_a_record_says_how_often_it_was_used_and_when_last() -> None:
    for count, words in ((1, "used  once, last 1970-01-02"), (7, "used  7 times, last 1970-01-02")):
        assert words in "\n".join(record_lines(replace(TASK, usage_count=count, last_used=86_400_000)))
    assert "used" not in "\n".join(record_lines(TASK))


HIT = Hit("msg_1", RecordType.MESSAGE, "s", Role.USER, None, "Apples.", 0, 0.5, None)


def test_the_parts_of_a_score_are_aligned_and_what_weighs_most_comes_first() -> None:
    parts = {"words": 0.21, "assistant": -0.3, "meaning": 0.04321}
    assert why_lines(replace(HIT, parts=parts, why="says apples")) == [
        "  because: says apples",
        "    assistant  -0.3000",
        "    words      +0.2100",
        "    meaning    +0.0432",
    ]
    assert why_lines(HIT) == []


def test_a_reason_is_one_line_whatever_it_quotes() -> None:
    [line] = why_lines(replace(HIT, why="says a\nb\x1b[31m " + "c" * 5000))
    assert line.startswith("  because: says a b\\u{1b}[31m ccc")
    assert len(line) < 1100


def test_a_hit_says_how_many_others_are_like_it() -> None:
    assert hit_line(replace(HIT, same=("msg_2", "msg_3"))) == (
        "msg_1  message  1970-01-01  user: Apples.  (and 2 more like it)"
    )
    assert hit_line(HIT).endswith("user: Apples.")


def test_a_hit_shows_the_place_that_the_query_found_and_the_last_part_of_its_project() -> None:
    told = (
        "First we spoke of the weather for a long while, and nobody knew. " * 3 + "Then Ines sold the red kayak. " * 2
    )
    line = hit_line(
        replace(HIT, text=told, project="/home/ann/shop"), "who sold the kayak", names={"/home/ann/shop": "shop"}
    )
    assert line.startswith("msg_1  message  1970-01-01  of shop  user: …Then Ines sold the red kayak.")
    assert len(line) < 160


def test_a_project_is_called_by_its_last_part_unless_two_share_it() -> None:
    assert project_names(["/home/ann/shop", "/home/ann/app", "/home/ann/web/app", "boats"]) == {
        "/home/ann/shop": "shop",
        "/home/ann/app": "/home/ann/app",
        "/home/ann/web/app": "/home/ann/web/app",
        "boats": "boats",
    }


def test_an_empty_result_says_what_to_try() -> None:
    assert nothing_lines(None, []) == ["nothing found", "  try other words for it (--also), a name or a date"]
    assert nothing_lines("2 weak hits", ["--tag", "--now"]) == [
        "nothing found",
        "  2 weak hits",
        "  try without --tag or --now",
    ]


@given(st.text(max_size=300))
def test_a_cell_is_one_short_line_without_anything_unseen(text: str) -> None:
    line = one_line(text)
    assert "\n" not in line
    assert not {*line} & {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0))}
