"""Times at the border: UTC, ISO 8601 with milliseconds, only the years 1 to 9999."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS, from_iso, last_moment, to_iso
from kalito_mcp.errors import InvalidInput


def test_a_text_is_this_moment_or_is_refused() -> None:
    for text, moment_ms in (
        ("1970-01-01T00:00:00Z", 0),
        ("2026-03-04T05:06:07.089Z", 1_772_600_767_089),
        ("2026-03-04T05:06:07.089999Z", 1_772_600_767_089),
        ("2026-03-04T06:06:07.089+01:00", 1_772_600_767_089),
        ("2026-03-04 05:06:07.089", 1_772_600_767_089),
        ("  2026-03-04T05:06:07.089Z\n", 1_772_600_767_089),
        ("2026-03-04", 1_772_582_400_000),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("0001-01-01T00:00:00Z", OLDEST_MS),
        ("9999-12-31T23:59:59.999Z", NEWEST_MS),
        ("0000-01-01T00:00:00Z", None),
        ("10000-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("2026-03-04T25:00:00Z", None),
        ("2026-03-04 05:06:07.089 UTC", 1_772_600_767_089),
        ("1772600767089", 1_772_600_767_089),
        ("1772600767", 1_772_600_767_000),
        ("1772600767.5", 1_772_600_767_000),
        ("17726007670", None),
        ("yesterday", None),
        ("", None),
        ("２０２６-０３-０４", None),
    ):
        if moment_ms is not None:
            assert from_iso(text) == moment_ms
            continue
        with pytest.raises(InvalidInput, match="ISO 8601"):
            from_iso(text)


def test_a_refusal_names_the_field_and_shows_no_more_than_a_piece() -> None:
    with pytest.raises(InvalidInput, match=r"^since='xxx") as refusal:
        from_iso("x" * 10_000, "since")
    assert len(str(refusal.value)) < 200


def test_a_moment_is_written_with_four_digits_of_year_and_three_of_milliseconds() -> None:
    for moment_ms, text in (
        (0, "1970-01-01T00:00:00.000Z"),
        (1_772_600_767_089, "2026-03-04T05:06:07.089Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (OLDEST_MS, "0001-01-01T00:00:00.000Z"),
        (NEWEST_MS, "9999-12-31T23:59:59.999Z"),
    ):
        assert to_iso(moment_ms) == text


@given(st.integers(OLDEST_MS, NEWEST_MS))
def test_every_moment_comes_back_from_its_text(moment_ms: int) -> None:
    assert from_iso(to_iso(moment_ms)) == moment_ms
    assert len(to_iso(moment_ms)) == 24


@given(st.lists(st.integers(OLDEST_MS, NEWEST_MS), min_size=2, max_size=5))
def test_texts_sort_as_their_moments_do(moments: list[int]) -> None:
    assert sorted(map(to_iso, moments)) == [to_iso(moment) for moment in sorted(moments)]


def test_the_last_moment_is_the_end_of_what_is_written() -> None:
    for text, last in (
        ("2026-11-21", "2026-11-21T23:59:59.999Z"),
        ("2026-W47-6", "2026-11-21T23:59:59.999Z"),
        ("2026-11-21T13", "2026-11-21T13:59:59.999Z"),
        ("2026-11-21T13:43", "2026-11-21T13:43:59.999Z"),
        ("20261121T1343", "2026-11-21T13:43:59.999Z"),
        ("2026-11-21 13:43:22", "2026-11-21T13:43:22.999Z"),
        ("2026-11-21T13:43:22Z", "2026-11-21T13:43:22.999Z"),
        ("2026-11-21T13:43+05:30", "2026-11-21T08:13:59.999Z"),
        ("2026-11-21T13:43:22.5", "2026-11-21T13:43:22.500Z"),
        ("2026-11-21T13:43:22,089Z", "2026-11-21T13:43:22.089Z"),
        ("9999-12-31T22:59-01:00", "9999-12-31T23:59:59.999Z"),
    ):
        assert to_iso(last_moment(text, "as_of")) == last


def test_a_last_moment_is_refused_as_a_moment_is() -> None:
    for text in ("yesterday", "", "2026-02-30", "9999-12-31T23:59:59-01:00"):
        with pytest.raises(InvalidInput, match=r"^as_of=.* is not an ISO 8601 time"):
            last_moment(text, "as_of")


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.none() | st.timezones()),
    st.sampled_from(["hours", "minutes", "seconds", "milliseconds"]),
)
def test_the_last_moment_ends_before_the_next_hour_minute_second_or_millisecond(moment: datetime, unit: str) -> None:
    text = moment.isoformat(timespec=unit)
    assert last_moment(text, "as_of") + 1 == from_iso(text) + timedelta(**{unit: 1}) // timedelta(milliseconds=1)


@given(st.datetimes(timezones=st.timezones()))
def test_any_offset_is_the_same_moment_in_utc(moment: datetime) -> None:
    try:
        in_utc = moment.astimezone(UTC)
    except OverflowError:
        return
    assert from_iso(moment.isoformat()) == from_iso(in_utc.isoformat())
