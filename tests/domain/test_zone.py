"""Days of a time zone, and the names of zones."""

import os
import subprocess
import sys
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS, from_iso, last_moment, to_iso, zone_of
from kalito_mcp.domain.zone import DAY_MS, UTC_ZONE, Zone
from kalito_mcp.domain.zone_names import TimePolicy, system_zone, zone_named
from kalito_mcp.errors import InvalidInput

HOUR_MS = 3_600_000
AUCKLAND, LOS_ANGELES, BERLIN = map(zone_named, ("Pacific/Auckland", "America/Los_Angeles", "Europe/Berlin"))
ZONES = ["UTC", "Pacific/Auckland", "America/Los_Angeles", "Europe/Berlin", "Asia/Kathmandu", "+05:45", "-11"]


def day(text: str) -> int:
    return datetime.fromisoformat(text).toordinal()


def test_a_day_begins_and_ends_when_clocks_say_so() -> None:
    for zone, date, begins, hours in (
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00.000Z", 23),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00.000Z", 25),
        ("Pacific/Auckland", "2026-09-27", "2026-09-26T12:00:00.000Z", 23),
        ("Pacific/Auckland", "2026-04-05", "2026-04-04T11:00:00.000Z", 25),
        ("America/Los_Angeles", "2026-07-04", "2026-07-04T07:00:00.000Z", 24),
        # Clocks are moved at midnight: the day begins at 01:00, or has two hours before 01:00.
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00.000Z", 23),
        ("America/Havana", "2026-11-01", "2026-11-01T04:00:00.000Z", 25),
        ("+05:45", "2026-07-04", "2026-07-03T18:15:00.000Z", 24),
    ):
        found = zone_named(zone)
        first, last = found.first_ms(day(date)), found.last_ms(day(date))
        assert to_iso(first) == begins
        assert last - first + 1 == hours * HOUR_MS
        assert [found.date(moment) for moment in (first, (first + last) // 2, last)] == [date] * 3
        assert found.day(first - 1) == day(date) - 1
        assert found.day(last + 1) == day(date) + 1


def test_a_day_that_clocks_skipped_has_one_moment() -> None:
    samoa = zone_named("Pacific/Apia")
    first = samoa.first_ms(day("2011-12-30"))
    assert samoa.last_ms(day("2011-12-30")) == first
    assert samoa.date(first) == "2011-12-31"


@given(st.sampled_from(ZONES), st.integers(OLDEST_MS, NEWEST_MS))
def test_every_moment_is_in_its_day(name: str, moment: int) -> None:
    zone = zone_named(name)
    found = zone.day(moment)
    assert zone.first_ms(found) <= moment <= zone.last_ms(found)


@pytest.mark.parametrize("name", ["Pacific/Auckland", "Europe/Berlin"])
def test_the_clock_of_the_operating_system_gives_the_same_days(name: str) -> None:
    script = (
        "from kalito_mcp.domain.zone import Zone\n"
        "zone = Zone(None)\n"
        "print([(zone.first_ms(day), zone.last_ms(day), zone.date(zone.first_ms(day))) "
        "for day in range(739000, 739800)])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "TZ": name}, capture_output=True, text=True, check=True
    )
    zone = Zone(ZoneInfo(name))
    days = range(739_000, 739_800)
    assert ran.stdout.strip() == str([(zone.first_ms(n), zone.last_ms(n), zone.date(zone.first_ms(n))) for n in days])


def test_a_minute_is_as_clocks_show_it() -> None:
    assert AUCKLAND.minute(from_iso("2026-11-22T11:30:59Z")) == "2026-11-23 00:30"
    assert UTC_ZONE.minute(OLDEST_MS) == LOS_ANGELES.minute(OLDEST_MS) == "0001-01-01 00:00"


def test_the_first_and_the_last_moment_have_a_day() -> None:
    for name in ZONES:
        assert [zone_named(name).date(moment)[:4] for moment in (OLDEST_MS, NEWEST_MS)] == ["0001", "9999"]


def test_a_time_without_an_offset_is_one_of_the_zone() -> None:
    assert to_iso(from_iso("2026-11-22T10:00", zone=AUCKLAND)) == "2026-11-21T21:00:00.000Z"
    assert to_iso(from_iso("2026-11-22T10:00+01:00", zone=AUCKLAND)) == "2026-11-22T09:00:00.000Z"
    assert to_iso(from_iso("2026-11-22", zone=LOS_ANGELES)) == "2026-11-22T08:00:00.000Z"
    assert to_iso(last_moment("2026-10-25", "until", BERLIN)) == "2026-10-25T22:59:59.999Z"
    assert to_iso(last_moment("2026-11-22T10", "until", BERLIN)) == "2026-11-22T09:59:59.999Z"


def test_an_offset_says_where_somebody_is_and_z_does_not() -> None:
    for now, expected in (
        ("2026-07-04T10:00:00+09:00", Zone(timezone(timedelta(hours=9)))),
        ("2026-07-04T10:00:00+00:00", UTC_ZONE),
        ("2026-07-04T10:00:00+02:00", BERLIN),
        ("2026-07-04T10:00:00Z", BERLIN),
        ("2026-07-04T10:00:00", BERLIN),
        ("2026-07-04", BERLIN),
    ):
        moment = from_iso(now, "now", BERLIN)
        assert zone_of(now, moment, BERLIN).offset_ms(moment) == expected.offset_ms(moment)
        # A known zone also knows its winter.
        winter = moment + 180 * DAY_MS
        assert zone_of(now, moment, BERLIN).offset_ms(winter) == expected.offset_ms(winter)


def test_an_unknown_zone_is_refused_with_near_names() -> None:
    for name, near in (
        ("Europe/Berln", "'Europe/Berlin'"),
        ("berlin", "'Europe/Berlin'"),
        ("new york", "'America/New_York'"),
        ("qqqqqq", "write a name such as Europe/Berlin"),
        ("+25:00", "write a name such as Europe/Berlin"),
        ("../etc/passwd", "write a name such as Europe/Berlin"),
        ("Europe", "did you mean"),
    ):
        with pytest.raises(InvalidInput) as refused:
            TimePolicy(name)
        assert str(refused.value).startswith(f"zone={name!r} is not a time zone; ")
        assert near in str(refused.value)


def test_a_machine_without_a_database_of_zones_still_works(monkeypatch: pytest.MonkeyPatch) -> None:

    def nothing(key: str) -> ZoneInfo:
        raise zoneinfo.ZoneInfoNotFoundError(key)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", nothing)
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    assert system_zone("Europe/Berlin") == Zone(None)
    assert TimePolicy("UTC").zone == "UTC"
    assert zone_named("-03:30").offset_ms(0) == -12_600_000
    with pytest.raises(InvalidInput, match=r"install the package tzdata, or write an offset"):
        TimePolicy("Europe/Berlin")


def test_the_system_zone_is_that_of_tz_and_else_of_the_system() -> None:
    for variable, expected in (
        ("Pacific/Auckland", AUCKLAND),
        (":Europe/Berlin", BERLIN),
        ("UTC", Zone(UTC)),
        ("", Zone(UTC)),
        ("NZST-12NZDT,M9.5.0,M4.1.0/3", Zone(None)),
        (None, Zone(None)),
    ):
        assert system_zone(variable) == expected
