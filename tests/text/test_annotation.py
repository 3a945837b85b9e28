"""The date behind a name of a time that depends on when it was said."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.time import DAY_MS, from_iso
from kalito_mcp.text.times.annotation import DATED, is_over, languages_of, with_dates

SAID = from_iso("2023-08-23T10:00:00")  # a Wednesday


def test_a_time_that_depends_on_the_day_gets_its_date() -> None:
    for said, dated in (
        ("I passed the interviews last Friday!", "I passed the interviews last Friday (2023-08-18)!"),
        ("Yesterday's match was great.", "Yesterday's (2023-08-22) match was great."),
        ("We fly next month.", "We fly next month (2023-09)."),
        ("I went there last week, with Ann.", "I went there last week (2023-08-14/20), with Ann."),
        ("I moved here four years ago.", "I moved here four years ago (2019)."),
        ("I began about three months ago.", "I began about three months ago (about 2023-05)."),
        ("See you tomorrow at noon.", "See you tomorrow (2023-08-24) at noon."),
        ("From last Tues to next Monday.", "From last Tues (2023-08-22) to next Monday (2023-08-28)."),
        ("I have not slept since yesterday.", "I have not slept since yesterday (2023-08-22)."),
    ):
        assert with_dates(said, SAID) == dated


def test_what_depends_on_no_day_stays() -> None:
    for said in (
        "The deadline is Friday at 17:00.",
        "We moved in May 2021.",
        "I have played for the past two years.",
        "In the last two weeks I wrote a lot.",
        "My last name is Berg.",
        "This is the last one, and it was long ago.",
        "We met yesterday (2023-08-22).",
        "",
    ):
        assert with_dates(said, SAID) == said


def test_in_other_languages_too() -> None:
    for said, dated in (
        ("Wir sind gestern nach Bergen gezogen.", "Wir sind gestern (2023-08-22) nach Bergen gezogen."),
        ("Das war letzte Woche bei uns.", "Das war letzte Woche (2023-08-14/20) bei uns."),
        ("我昨天搬到了北京。", "我昨天 (2023-08-22)搬到了北京。"),
        ("Вчера мы переехали в Казань.", "Вчера (2023-08-22) мы переехали в Казань."),
    ):
        assert with_dates(said, SAID, languages_of(said)) == dated


@given(
    st.lists(
        st.sampled_from(
            "last next this Friday week two ago yesterday the in May since , . Oslo (2023) gestern".split()
        ),
        max_size=12,
    ),
    st.integers(-(10**13), 10**14),
)
def test_only_dates_are_added_and_once(parts: list[str], said_ms: int) -> None:
    text = " ".join(parts)
    dated = with_dates(text, said_ms, ("en", "de"))
    assert re.sub(rf" {DATED}", "", dated) == re.sub(rf" {DATED}", "", text)
    assert with_dates(dated, said_ms, ("en", "de")).count("(") >= dated.count("(")


def test_what_was_for_a_time_is_over_the_day_after_it() -> None:
    for text, over_on in (
        ("We fly tomorrow (2026-03-03).", "2026-03-04"),
        ("The course is this month (2026-03).", "2026-04-01"),
        ("We are away next week (2026-03-09/15).", "2026-03-16"),
        ("Away next month (2026-04-28/05-03).", "2026-05-04"),
        ("The van comes tomorrow (2026-03-03), the rest next week (2026-03-09/15).", "2026-03-16"),
    ):
        said, over = (from_iso(f"{day}T12:00:00Z") for day in ("2026-03-02", over_on))
        assert is_over(text, said, over)
        assert not is_over(text, said, over - DAY_MS)


@pytest.mark.parametrize("text", ["We moved last week (2026-02-23/03-01).", "We fly on May 3."])
def test_what_was_past_when_it_was_said_or_names_no_day_is_never_over(text: str) -> None:
    said = from_iso("2026-03-02T12:00:00Z")
    assert not is_over(text, said, said + 3_650 * DAY_MS)
