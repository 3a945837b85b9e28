"""Times in words: the times of a text, how well a record's time fits, `since` and `until`, and questions for a time."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS, from_iso, last_moment, to_iso
from kalito_mcp.domain.zone import UTC_ZONE
from kalito_mcp.errors import InvalidInput
from kalito_mcp.text.times.expressions import (
    Span,
    date_match,
    moment_in_words,
    named_times,
)

WEDNESDAY = from_iso("2023-08-16T15:00:00Z")
MOMENTS = st.integers(OLDEST_MS, NEWEST_MS)
WORDS = st.lists(
    st.sampled_from(
        "january may May march Sept. 1 2 29 30 31 31st 5th 1999 2023 2024 0 9999 2023-02-29 2024-02-29 9999-12-31 "
        "0001-01-01 13/13/2023 1990s q1 last this next past early mid late - – , of the in a an few couple two second "
        "first half quarter week weekend month year day days weeks months years hours ago before after since until "
        "between and from to yesterday today tomorrow monday Friday sun summer winter fall Christmas new year's eve "
        "prior following beginning end 9999 1,000 $2022 2022ms".split()
    ),
    max_size=12,
).map(" ".join)


def spans(text: str, now: int | None = WEDNESDAY) -> list[str]:
    """Each as first..last day, one alone as it is; every span begins and ends with a day."""
    found = []
    for span in named_times(text, now).spans:
        first, last = to_iso(span.first), to_iso(span.last)
        assert first.endswith("T00:00:00.000Z")
        assert last.endswith("T23:59:59.999Z")
        found.append(first[:10] if first[:10] == last[:10] else f"{first[:10]}..{last[:10]}")
    return found


def test_a_date_means_itself() -> None:
    for text, expected in (
        ("May 2023", "2023-05-01..2023-05-31"),
        ("may of 2023", "2023-05-01..2023-05-31"),
        ("on October 13, 2023?", "2023-10-13"),
        ("December 1,2023", "2023-12-01"),
        ("Mar. 3, 2023", "2023-03-03"),
        ("13 October 2023", "2023-10-13"),
        ("the 13TH OF october 2023", "2023-10-13"),
        ("2023-10-13", "2023-10-13"),
        ("2023-10-13T23:00:00Z", "2023-10-13"),
        ("2023-10", "2023-10-01..2023-10-31"),
        ("10/13/2023", "2023-10-13"),
        ("13/10/2023", "2023-10-13"),
        ("5/6/2023", "2023-05-06"),
        ("5.6.2023", "2023-06-05"),
        ("What happened in 2022?", "2022-01-01..2022-12-31"),
        ("2021-2023", "2021-01-01..2023-12-31"),
        ("the 1990s", "1990-01-01..1999-12-31"),
        ("summer 2022", "2022-06-01..2022-08-31"),
        ("the winter of 2023", "2023-12-01..2024-02-29"),
        ("Q3 2022", "2022-07-01..2022-09-30"),
        ("Christmas Eve 2021", "2021-12-24"),
        ("29 February 2024", "2024-02-29"),
        ("0001-01-01", "0001-01-01"),
        ("9999-12-31", "9999-12-31"),
    ):
        assert spans(text, None) == spans(text) == [expected]


def test_parts_neighbours_and_ranges_are_reckoned_from_dates() -> None:
    for text, expected in (
        ("early June 2023", "2023-06-01..2023-06-10"),
        ("mid-June 2023", "2023-06-11..2023-06-20"),
        ("early 2023", "2023-01-01..2023-04-30"),
        ("the second half of 2023", "2023-07-01..2023-12-31"),
        ("the second week of November 2022", "2022-11-08..2022-11-14"),
        ("the last week of May 2023", "2023-05-25..2023-05-31"),
        ("the first half of September 2022", "2022-09-01..2022-09-15"),
        ("between May and July 2023", "2023-05-01..2023-07-31"),
        ("between November and January 2023", "2022-11-01..2023-01-31"),
        ("from November 2022 to January", "2022-11-01..2023-01-31"),
        ("from 2023-05-07 to 2023-05-01", "2023-05-01..2023-05-07"),
        ("August 11-15, 2023", "2023-08-11..2023-08-15"),
        ("11 to 15 August 2023", "2023-08-11..2023-08-15"),
        ("May 30 to June 2, 2023", "2023-05-30..2023-06-02"),
        ("the week before 14 August 2023", "2023-08-07..2023-08-13"),
        ("the week of 16 August 2023", "2023-08-14..2023-08-20"),
        ("the weekend of April 10, 2023", "2023-04-08..2023-04-09"),
        ("last weekend before April 9, 2023", "2023-04-01..2023-04-02"),
        ("the Sunday before October 25, 2022", "2022-10-23"),
        ("the Tuesday following October 25, 2022", "2022-11-01"),
        ("the day before March 1, 2024", "2024-02-29"),
        ("the month before June 2023", "2023-05-01..2023-05-31"),
        ("3 days prior to 2 January 2023", "2022-12-30"),
        ("before June 2023", "0001-01-01..2023-05-31"),
        ("until June 2023", "0001-01-01..2023-06-30"),
        ("before 0001-01-01", "0001-01-01"),
        ("since 9999-12-31", "9999-12-31"),
    ):
        assert spans(text, None) == spans(text) == [expected]


def test_other_names_are_read_against_now_and_left_out_without_it() -> None:
    for text, expected in (
        ("in May", "2023-05-01..2023-05-31"),
        ("in october", "2022-10-01..2022-10-31"),
        ("on Aug 15th", "2023-08-15"),
        ("on Aug 17th", "2022-08-17"),
        ("May the 4th", "2023-05-04"),
        ("Feb 29", "2020-02-29"),
        ("May last year", "2022-05-01..2022-05-31"),
        ("last March", "2023-03-01..2023-03-31"),
        ("last summer", "2022-06-01..2022-08-31"),
        ("in the summer", "2023-06-01..2023-08-31"),
        ("last Christmas", "2022-12-24..2022-12-26"),
        ("today and YESTERDAY", "2023-08-16 2023-08-15"),
        ("the day before yesterday", "2023-08-14"),
        ("last night", "2023-08-15"),
        ("last week", "2023-08-07..2023-08-13"),
        ("this year", "2023-01-01..2023-12-31"),
        ("the beginning of the year", "2023-01-01..2023-04-30"),
        ("late last week", "2023-08-11..2023-08-13"),
        ("the past week", "2023-08-09..2023-08-16"),
        ("in the last three months", "2023-05-16..2023-08-16"),
        ("last weekend", "2023-08-12..2023-08-13"),
        ("last Friday", "2023-08-11"),
        ("Monday's call", "2023-08-14"),
        ("next Tuesday", "2023-08-22"),
        ("3 days ago", "2023-08-13"),
        ("a couple of weeks ago", "2023-07-30..2023-08-05"),
        ("a month ago", "2023-07-01..2023-07-31"),
        ("40 hours ago", "2023-08-15"),
        ("since March", "2023-03-01..2023-08-16"),
        ("after 2021", "2022-01-01..2023-08-16"),
    ):
        assert spans(text) == expected.split()
        assert spans(text, None) == (["2022-01-01..9999-12-31"] if "2021" in text else [])


def test_words_and_numbers_that_name_no_time_are_left_alone() -> None:
    for text in (
        "|you may go|May I ask 2 things?|I may 5 times|we march on|march 10 miles|this may be|the last may have been|"
        "a second ago|the second one|$2022|2022ms|2022 %|v1.2022|12:2023|555-2023|ISO-2022|#2022|2022.5|room 2022|"
        "2000 words|1,2023.5|2023_x|10.5.3|1/2|9:30|10am|April said hi|I met June|the fall of Rome|spring water|"
        "he sat down|mon ami|every Monday|how many days a week|the new year|between you and me|before the meeting|"
        "end of story|2023-13-01|2023-13|13/13/2023|٢٠٢٣|１２ May|two thousand years|over a decade|2023-02-29".split(
            "|"
        )
    ):
        assert named_times(text, WEDNESDAY).spans == ()
        assert not named_times(text, WEDNESDAY).dates


def test_of_a_day_that_does_not_exist_the_month_counts() -> None:
    assert spans("31 June 2023") == spans("June 31, 2023") == ["2023-06-01..2023-06-30"]


def test_at_the_ends_of_time_there_is_no_other_year() -> None:
    assert spans("in March, last summer, last March", OLDEST_MS) == []
    assert spans("next summer, next May", NEWEST_MS) == []
    assert spans("next year and next week", NEWEST_MS) == ["9999-01-01..9999-12-31", "9999-12-31"]
    assert spans("winter of 2023 to nowhere") == ["2023-12-01..2024-02-29"]


def test_a_year_begins_within_the_week_that_ends_the_last_one() -> None:
    new_year = from_iso("2024-01-01T00:00:00Z")
    assert spans("yesterday, last week, last month, last year", new_year) == [
        "2023-12-31",
        "2023-12-25..2023-12-31",
        "2023-12-01..2023-12-31",
        "2023-01-01..2023-12-31",
    ]
    assert spans("a year ago today", from_iso("2024-02-29")) == ["2023-01-01..2023-12-31", "2024-02-29"]


@given(WORDS | st.text(), st.none() | MOMENTS | st.integers())
@example("last week, last year, two years ago, since March, before 0001-01-01", OLDEST_MS)
@example("next week, next year, tomorrow, next summer, the week after 9999-12-31", NEWEST_MS)
@example("early " * 5_000, 0)
@example("two weeks before " * 5_000 + "May", 0)
def test_named_stretches_are_in_order_and_within_the_years_1_to_9999(text: str, now: int | None) -> None:
    for span in named_times(text, now).spans:
        assert OLDEST_MS <= span.first <= span.last <= NEWEST_MS


@given(WORDS, MOMENTS, MOMENTS)
def test_a_match_is_a_share_of_one(text: str, now: int, moment: int) -> None:
    assert 0.0 <= date_match(named_times(text, now).dates, UTC_ZONE.day(moment)) <= 1.0


def test_a_message_fits_a_named_date_by_how_much_it_says_and_how_near_it_is() -> None:
    for query, moment, expected in (
        ("on October 13, 2023", "2023-10-13T23:59:59.999Z", 1.0),
        ("on October 13, 2023", "2023-10-14", 0.7),
        ("on October 13, 2023", "2023-10-18", 0.42),
        ("on October 13, 2023", "2023-10-12", 0.4),
        ("on October 13, 2023", "2023-10-30", 0.25),
        ("on October 13, 2023", "2023-03-01", 0.1),
        ("on October 13, 2023", "2021-10-13", 0.3),
        ("on October 13", "2021-10-13", 1.0),
        ("in October 2023", "2023-10-31", 0.6),
        ("in October", "1999-10-31", 0.6),
        ("in October 2023", "2022-10-05", 0.18),
        ("in December", "2022-01-01", 0.42),
        ("in 2023", "2023-07-01", 0.25),
        ("the week before 14 August 2023", "2023-08-09", 0.8),
        ("the week before 14 August 2023", "2023-08-14", 1.0),
        ("on Feb 29", "2024-02-29", 1.0),
        ("in winter 2022", "2023-02-28", 0.4),
        ("what is new?", "2023-07-01", 0.0),
    ):
        assert date_match(named_times(query).dates, UTC_ZONE.day(from_iso(moment))) == pytest.approx(expected)


def test_yesterday_has_no_other_years() -> None:
    dates = named_times("what did I say yesterday?", WEDNESDAY).dates
    assert date_match(dates, UTC_ZONE.day(from_iso("2023-08-15T12:00:00Z"))) == 1.0
    assert date_match(dates, UTC_ZONE.day(from_iso("2022-08-15T12:00:00Z"))) == 0.0
    assert not named_times("what did I say yesterday?").dates


@pytest.mark.parametrize("moment", [OLDEST_MS, NEWEST_MS])
def test_the_first_and_the_last_moment_can_be_matched(moment: int) -> None:
    dates = named_times(f"on {to_iso(moment)[:10]} and in May").dates
    assert date_match(dates, UTC_ZONE.day(moment)) == 1.0


def test_since_takes_the_first_and_until_the_last_millisecond_of_the_words() -> None:
    for text, first, last in (
        ("now", "2023-08-16T15:00:00.000Z", "2023-08-16T15:00:00.000Z"),
        ("Today", "2023-08-16T00:00:00.000Z", "2023-08-16T23:59:59.999Z"),
        ("monday", "2023-08-14T00:00:00.000Z", "2023-08-14T23:59:59.999Z"),
        ("on Wed", "2023-08-16T00:00:00.000Z", "2023-08-16T23:59:59.999Z"),
        ("March", "2023-03-01T00:00:00.000Z", "2023-03-31T23:59:59.999Z"),
        ("September", "2022-09-01T00:00:00.000Z", "2022-09-30T23:59:59.999Z"),
        ("May 2023.", "2023-05-01T00:00:00.000Z", "2023-05-31T23:59:59.999Z"),
        ("2022", "2022-01-01T00:00:00.000Z", "2022-12-31T23:59:59.999Z"),
        ("two weeks ago", "2023-08-02T00:00:00.000Z", "2023-08-02T23:59:59.999Z"),
        ("a month ago", "2023-07-16T00:00:00.000Z", "2023-07-16T23:59:59.999Z"),
        ("the beginning of the year", "2023-01-01T00:00:00.000Z", "2023-04-30T23:59:59.999Z"),
        ("Christmas", "2022-12-24T00:00:00.000Z", "2022-12-26T23:59:59.999Z"),
        ("fall", "2022-09-01T00:00:00.000Z", "2022-11-30T23:59:59.999Z"),
        ("  12H ", "2023-08-16T03:00:00.000Z", "2023-08-16T03:00:00.000Z"),
        ("45m", "2023-08-16T14:15:00.000Z", "2023-08-16T14:15:00.000Z"),
        ("7d", "2023-08-09T15:00:00.000Z", "2023-08-09T15:00:00.000Z"),
        ("an hour ago", "2023-08-16T14:00:00.000Z", "2023-08-16T14:00:00.000Z"),
        ("ten minutes ago", "2023-08-16T14:50:00.000Z", "2023-08-16T14:50:00.000Z"),
        ("999999999w", "0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00.000Z"),
    ):
        assert to_iso(moment_in_words(text, "since", WEDNESDAY, is_last=False)) == first
        assert to_iso(moment_in_words(text, "until", WEDNESDAY, is_last=True)) == last


def test_iso_8601_is_read_as_everywhere() -> None:
    for text in ("2023-05-01", "2023-05-01T10", "2023-05-01t10:05z", "20230501", "2023-W05"):
        assert moment_in_words(text, "since", WEDNESDAY, is_last=False) == from_iso(text.upper())
        assert moment_in_words(text, "until", WEDNESDAY, is_last=True) == last_moment(text.upper(), "until")


def test_what_is_no_time_is_refused_with_examples() -> None:
    for text in ("", "soon", "5", "two", "last", "yesterday evening at the lake", "-7d", "7 d 3", "x" * 10_000):
        with pytest.raises(InvalidInput, match=r"^since=.*2026-03-04.*7d.*last March") as refusal:
            moment_in_words(text, "since", WEDNESDAY, is_last=False)
        assert len(str(refusal.value)) < 300


@given(WORDS, MOMENTS)
def test_the_same_words_never_end_before_they_begin(text: str, now: int) -> None:
    try:
        first = moment_in_words(text, "since", now, is_last=False)
    except InvalidInput:
        return
    assert OLDEST_MS <= first <= moment_in_words(text, "until", now, is_last=True) <= NEWEST_MS


@given(st.sampled_from(["today", "Monday", "last week", "two weeks ago", "30d", "now", "yesterday"]), MOMENTS)
def test_a_time_in_the_past_never_begins_after_now(text: str, now: int) -> None:
    assert moment_in_words(text, "since", now, is_last=False) <= now


@given(MOMENTS)
def test_a_day_written_out_is_the_day(moment: int) -> None:
    day = to_iso(moment)[:10]
    assert named_times(day, None).spans == (Span(from_iso(day), last_moment(day, "until")),)
