"""The difference between two versions, in one line and in full."""

from collections.abc import Mapping
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from kalito_mcp.domain.memory_records import DELETED_AT
from kalito_mcp.records.diffs import MAX_SUMMARY, diff, diff_summary
from tests.scripted import START_MS

Content = Mapping[str, Any]


def test_an_edit_is_summed_up_by_its_fields_and_the_words_that_differ() -> None:
    for before, after, summary in (
        ({}, {"text": "x"}, "created"),
        ({"text": "x"}, {"text": "x"}, "nothing"),
        ({"text": "x"}, {"text": "x", DELETED_AT: 5}, "forgotten"),
        ({"text": "x", DELETED_AT: 5}, {"text": "x"}, "restored"),
        ({"text": "I live in Oslo now."}, {"text": "I live in Bergen now."}, 'text: "…Oslo…" -> "…Bergen…"'),
        ({"text": "Oslo it is"}, {"text": "Bergen it is"}, 'text: "Oslo…" -> "Bergen…"'),
        ({"text": "It is Oslo"}, {"text": "It is Bergen"}, 'text: "…Oslo" -> "…Bergen"'),
        ({"text": "Oslo"}, {"text": "Bergen"}, 'text: "Oslo" -> "Bergen"'),
        ({"text": "the lake"}, {"text": "the big lake"}, 'text: added "…big…"'),
        ({"text": "the big lake"}, {"text": "the lake"}, 'text: removed "…big…"'),
        ({"text": "a a"}, {"text": "a a a"}, 'text: added "…a"'),
        ({"text": "the lake"}, {"text": "the\n\nlake"}, "text: only white space"),
        ({"text": "a\u202eb c"}, {"text": "a\u202eb d"}, 'text: "…c" -> "…d"'),
        ({"text": "湖" * 200}, {"text": "湖" * 100 + "海" + "湖" * 99}, 'text: "…湖…" -> "…海…"'),
        ({"status": "pending"}, {"status": "completed"}, "status: pending -> completed"),
        ({"critical": True}, {"title": "Lakes"}, "critical: true -> nothing; title: nothing -> Lakes"),
        ({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, "tags: -a +c"),
        ({"title": "x"}, {"title": "x", "tags": ["a"]}, "tags: +a"),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, "tags: reordered"),
        ({"importance_score": 0.5}, {"importance_score": 0.9}, "importance_score: 0.5 -> 0.9"),
        ({"attachments": [{"a": 1}]}, {"attachments": []}, 'attachments: [{"a": 1}] -> []'),
        (
            {"ended_at": START_MS},
            {"ended_at": START_MS + 1},
            "ended_at: 2026-03-04T05:06:07.089Z -> 2026-03-04T05:06:07.090Z",
        ),
        ({"title": "a", "text": "b"}, {"title": "c", "text": "d"}, 'text: "b" -> "d"; title: a -> c'),
        ({"title": "a" * 100}, {"title": "b"}, f"title: {'a' * 59}… -> b"),
    ):
        assert diff_summary(before, after) == summary


def test_a_diff_has_the_lines_of_the_text_with_what_is_around_and_then_the_fields() -> None:
    before = {"text": "1\n2\n3\n4\n5\n6", "status": "pending", "tags": ["a"]}
    after = {"text": "1\n2\n3\nfour\n5\n6", "status": "completed", "title": "Lakes", "tags": ["a"]}
    assert diff(before, after) == [
        "@@ text @@",
        " 2",
        " 3",
        "-4",
        "+four",
        " 5",
        " 6",
        "-status: pending",
        "+status: completed",
        "+title: Lakes",
    ]


def test_places_that_lie_apart_have_a_part_each() -> None:
    lines = [str(one) for one in range(30)]
    changed = ["first", *lines[1:29], "last"]
    told = diff({"text": "\n".join(lines)}, {"text": "\n".join(changed)})
    assert told.count("@@ text @@") == 2
    assert [one for one in told if one[0] in "+-"] == ["-0", "+first", "-29", "+last"]


def test_texts_of_very_many_lines_are_not_matched_line_by_line() -> None:
    before, after = "\n".join("ab" * 50_000), "\n".join("ba" * 50_000)
    told = diff({"text": before}, {"text": after})
    assert (told.count("-a"), told.count("+a")) == (50_000, 50_000)
    assert len(diff_summary({"text": before}, {"text": after})) < MAX_SUMMARY


TEXTS = st.text(st.sampled_from("ab \n\x00\u202e湖"), max_size=40)
CONTENTS = st.fixed_dictionaries(
    {"text": TEXTS}, optional={"title": st.text(max_size=400), "tags": st.lists(st.text(max_size=90), max_size=9)}
)


@given(CONTENTS, CONTENTS)
def test_a_summary_is_one_visible_line_of_bounded_length(before: Content, after: Content) -> None:
    summary = diff_summary(before, after)
    assert len(summary) <= MAX_SUMMARY
    assert summary.isprintable()
    assert (summary == "nothing") is (before == after)


@given(TEXTS, TEXTS)
def test_the_lines_of_a_diff_are_those_taken_away_and_those_that_came(before: str, after: str) -> None:
    told = diff({"text": before}, {"text": after})
    assume(told.count("@@ text @@") <= 1)
    kept = [line[1:] for line in told if line[0] in " -"]
    come = [line[1:] for line in told if line[0] in " +"]
    assert "\n".join(kept) in before
    assert "\n".join(come) in after
    assert bool(told) is (before != after)
