"""Days are the user's: over the real command line and the real server, east and west of the date line."""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.campaign import first_of
from tests.server import prepared
from tests.server.wire import Wire, call, clean_environment, served

SESSION = "days"
NOW = "2026-07-15T05:00:00Z"
"""July 15, 17:00 in Auckland; July 14, 22:00 in Los Angeles."""

SAID = {
    "fern": "2026-07-13T11:30:00Z",
    "gull": "2026-07-14T02:00:00Z",
    "heron": "2026-07-14T12:30:00Z",
    "ibis": "2026-07-15T04:00:00Z",
    "june": "2026-07-01T05:00:00Z",
}
"""What is said when. In Auckland and in Los Angeles that is, for fern: July 13, 23:30, and 04:30; gull: July 14, 14:00,
and July 13, 19:00; heron: July 15, 00:30, and July 14, 05:30; ibis: July 15, 16:00, and July 14, 21:00; june: July 1,
17:00, and June 30, 22:00."""

DAYS: dict[str, dict[str, set[str]]] = {
    "Pacific/Auckland": {
        "today": {"heron", "ibis"},
        "yesterday": {"gull"},
        "2026-07-13": {"fern"},
        "July": {"fern", "gull", "heron", "ibis", "june"},
    },
    "America/Los_Angeles": {
        "today": {"heron", "ibis"},
        "yesterday": {"fern", "gull"},
        "2026-07-13": {"fern", "gull"},
        "July": {"fern", "gull", "heron", "ibis"},
    },
    "UTC": {
        "today": {"ibis"},
        "yesterday": {"gull", "heron"},
        "2026-07-13": {"fern"},
        "July": {"fern", "gull", "heron", "ibis", "june"},
    },
}


@pytest.fixture(scope="module", params=first_of(DAYS, 2))
def zone(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def variables(zone: str) -> dict[str, str]:
    """The environment of somebody there. Auckland is said by the setting, on a machine that is elsewhere."""
    if zone == "Pacific/Auckland":
        return {"TZ": "Asia/Tokyo", "KALITO_MEMORY_ZONE": zone}
    return {"TZ": zone, "KALITO_MEMORY_ZONE": "system"}


@pytest.fixture(scope="module")
def server(variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    database = tmp_path_factory.mktemp("days") / "memory.db"
    with served(database, **variables) as wire:
        said = [{"role": "user", "text": f"The word is {word}.", "created_at": at} for word, at in SAID.items()]
        tool(wire, "record_messages", session_id=SESSION, messages=said)
        yield wire


def tool(wire: Wire, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call, or its text."""
    number = f"{name}-{len(wire.lines)}"
    wire.send(call(number, name, **arguments))
    result = wire.answer(number)["result"]
    assert not result.get("isError"), result
    return result.get("structuredContent") or {"text": result["content"][0]["text"]}


def found(wire: Wire, query: str, **arguments: Any) -> set[str]:
    hits = tool(wire, "search_memory", query=query, now=NOW, k=50, types=["message"], **arguments)["hits"]
    return words("\n".join(hit["text"] for hit in hits))


def words(text: str) -> set[str]:
    return {word for word in SAID if f"The word is {word}." in text}


@pytest.mark.parametrize("name", ["today", "yesterday", "2026-07-13", "July"])
def test_a_named_day_is_one_of_the_user(server: Wire, zone: str, name: str) -> None:
    assert found(server, "word", since=name, until=name) == DAYS[zone][name]
    assert found(server, f"what happened {'in ' if name == 'July' else ''}{name}?") >= DAYS[zone][name]


def test_a_context_labels_each_message_with_its_day(server: Wire, zone: str) -> None:
    text = tool(server, "build_context", session_id=SESSION)["text"]
    for word, at in SAID.items():
        [line] = [one for one in text.splitlines() if f"The word is {word}." in one and one.startswith("user")]
        assert datetime.fromisoformat(at).astimezone(ZoneInfo(zone)).date().isoformat() in line


def test_an_explanation_names_the_same_day(server: Wire, zone: str) -> None:
    hits = tool(server, "search_memory", query="which word on July 13?", now=NOW, explain=True, k=50)["hits"]
    reasons = {word: hit["why"] for hit in hits for word in words(hit["text"]) if "said on" in hit["why"]}
    for word, why in reasons.items():
        day = datetime.fromisoformat(SAID[word]).astimezone(ZoneInfo(zone)).date().isoformat()
        assert f"said on {day}" in why
    assert reasons.keys() >= DAYS[zone]["2026-07-13"]


def test_stored_moments_stay_in_utc(server: Wire) -> None:
    hits = tool(server, "search_memory", query="word", k=50, types=["message"])["hits"]
    assert {hit["created_at"] for hit in hits} == set(SAID.values())


def test_a_moment_without_an_offset_is_one_of_the_user(server: Wire, zone: str) -> None:
    sent = {"role": "user", "text": "Sent at noon.", "created_at": "2020-07-13T12:00:00"}
    tool(server, "record_messages", session_id="noon", messages=[sent])
    [hit] = tool(server, "search_memory", query="noon", session_id="noon", types=["message"])["hits"]
    noon = datetime.fromisoformat("2020-07-13T12:00:00").replace(tzinfo=ZoneInfo(zone))
    assert datetime.fromisoformat(hit["created_at"]) == noon


def test_the_offset_of_now_says_where_the_user_is(server: Wire) -> None:
    there = {"query": "word", "since": "today", "types": ["message"], "k": 50, "session_id": SESSION}
    for now, zone in (
        ("2026-07-15T17:00:00+12:00", "Pacific/Auckland"),
        ("2026-07-14T22:00:00-07:00", "America/Los_Angeles"),
        ("2026-07-15T05:00:00+00:00", "UTC"),
    ):
        hits = tool(server, "search_memory", now=now, **there)["hits"]
        assert words("\n".join(hit["text"] for hit in hits)) == DAYS[zone]["today"]


def test_the_next_page_has_the_days_of_the_first(server: Wire) -> None:
    asked = {"query": "word", "since": "today", "types": ["message"], "k": 1, "session_id": SESSION}
    page = tool(server, "search_memory", now="2026-07-14T22:00:00-07:00", **asked)
    pages = [page, tool(server, "search_memory", cursor=page["next_cursor"], **asked)]
    assert words("\n".join(one["hits"][0]["text"] for one in pages)) == DAYS["America/Los_Angeles"]["today"]


@pytest.mark.parametrize("zone", ["America/Los_Angeles"])
def test_the_command_line_has_the_same_days(zone: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    environment = clean_environment(KALITO_DATABASE=str(path), TZ=zone, KALITO_MEMORY_ZONE="system")
    today = datetime.now(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "kalito_mcp", *arguments]
        return prepared.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    with served(path, TZ=zone, KALITO_MEMORY_ZONE="system") as wire:
        moments = {"late": today - timedelta(minutes=1), "early": today + timedelta(seconds=1)}
        said = [{"role": "user", "text": f"A bird, {w}.", "created_at": at.isoformat()} for w, at in moments.items()]
        tool(wire, "record_messages", session_id="birds", messages=said)
    [line] = run("search", "bird", "--since", "today", "--type", "message").splitlines()
    assert f"{today.date()}  user: A bird, early." in line
    run("snapshot", "save")
    assert run("list").startswith(f"{today:%Y-%m-%d %H:%M}")
    here = datetime.now(ZoneInfo(zone)).replace(tzinfo=None)
    assert abs(here - datetime.fromisoformat(run("snapshot", "list").strip()[:16])) < timedelta(minutes=10)
    later = run("search", "bird", "--since", "today", "--now", f"{NOW[:10]}T17:00:00+12:00", "--type", "message")
    assert "A bird, early." in later


def test_an_unknown_zone_is_refused_at_the_start(tmp_path: Path) -> None:
    environment = clean_environment(KALITO_DATABASE=str(tmp_path / "memory.db"), KALITO_MEMORY_ZONE="Pacific/Aukland")
    command = [sys.executable, "-m", "kalito_mcp", "remember", "A note."]
    ran = prepared.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "setting memory.zone='Pacific/Aukland' is not a time zone; did you mean 'Pacific/Auckland'" in ran.stderr
