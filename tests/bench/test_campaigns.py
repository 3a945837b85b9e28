"""Servers that are killed, stopped or robbed of their files, and power cuts: the short forms of bench's campaigns."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from bench import (
    canaries,
    copies,
    cut_purges,
    failover,
    formats,
    kill,
    power_cut,
    replaced_files,
    snapshot_races,
    spaces,
    workday,
    workers,
)
from bench.disk_images import STRACE
from tests.postgres import shared_server
from tests.server.wire import COVERED

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def _untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in COVERED:
        monkeypatch.delenv(name)


def kept_its_promises(found: dict[str, Any]) -> bool:
    assert found["first_violations"] == []
    return bool(found["violations"] == 0)


def test_nothing_acknowledged_is_lost_doubled_or_half_done_when_servers_are_killed() -> None:
    found = kill.campaign(rounds=1, callers=2, seed=18)

    assert kept_its_promises(found)
    assert found["first_log_lines"] == []
    assert found["kills"] == 1
    assert found["acknowledged_changes"] > 5


@pytest.mark.campaign
def test_a_power_cut_loses_nothing_acknowledged_and_brings_no_erased_word_back() -> None:
    if shutil.which(STRACE[0]) is None:
        pytest.skip("strace is missing, so no power cut can be tried")
    found = power_cut.campaign(recordings=1, calls=20, points=6)

    assert kept_its_promises(found)
    assert found["images"] == 30


@pytest.mark.campaign
def test_what_is_erased_while_another_process_finalizes_is_in_no_snapshot() -> None:
    found = snapshot_races.campaign(rounds=2)

    assert kept_its_promises(found)
    assert found["found"]["together"] == 1


@pytest.mark.campaign
def test_a_purge_that_was_cut_short_is_finished() -> None:
    found = cut_purges.campaign(rounds=2)

    assert kept_its_promises(found)


@pytest.mark.campaign
def test_nothing_acknowledged_is_lost_or_doubled_when_a_standby_takes_over() -> None:
    shared_server()  # skips where there is no PostgreSQL
    found = failover.campaign(rounds=1)

    assert kept_its_promises(found)
    assert found["acknowledged"] > 8


@pytest.mark.campaign
def test_what_is_erased_while_others_write_is_in_no_file() -> None:
    found = canaries.campaign(processes=2, steps=40)

    assert kept_its_promises(found)
    assert found["found_before"] > 1


@pytest.mark.campaign
def test_no_write_is_acknowledged_that_is_not_in_the_database_s_place() -> None:
    found = replaced_files.campaign(deeds=["renamed over", "cut in half"], rounds=1)

    assert kept_its_promises(found)


@pytest.mark.campaign
def test_what_two_hosts_tell_is_recorded_once_and_in_its_project_though_a_server_is_killed() -> None:
    found = workday.campaign(prompts=12)

    assert kept_its_promises(found)
    assert found["prompts_and_replies"] == 24


@pytest.mark.campaign
def test_no_damaged_file_stops_an_import_or_is_half_taken_in_or_left_out_without_a_word() -> None:
    found = formats.campaign(mutations=40, seed=3)

    assert kept_its_promises(found)
    assert found["mutations"] > 40 * 30


@pytest.mark.campaign
@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_nobody_is_shown_or_refused_in_a_space_what_the_model_says_otherwise(store: str) -> None:
    if store == "postgres":
        shared_server()  # it skips the test where no server runs
    found = spaces.campaign(store, spaces.Size(300, processes=2, users=6, spaces=3))

    assert kept_its_promises(found)
    for verb in ("share", "search", "purge"):
        assert found["calls"].get(verb, 0) + found["overlapping_calls"].get(verb, 0) > 3


@pytest.mark.campaign
def test_clients_of_four_processes_on_one_server_lose_nothing_and_nothing_is_done_twice(tmp_path: Path) -> None:
    found = workers.campaign(tmp_path, seconds=5, thinking_s=0.5)

    assert found["first"] == {}
    assert found["acknowledged"]["messages"] > 5
    assert found["connections"] <= found["limit"]


@pytest.mark.campaign
def test_copies_of_a_conversation_in_every_format_are_stored_once_though_imports_are_killed() -> None:
    found = copies.campaign(conversations=13, batches=2, seed=3)

    assert kept_its_promises(found)
    assert found["formats"] == 13
    assert found["events"] == 6
    assert found["messages"] == 80
