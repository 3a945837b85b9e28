"""`kalito-mcp doctor`: what it finds, and that it never changes anything."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp.capture.spool import Outcome, Spool
from kalito_mcp.runtime.database_address import LocalFiles
from tests.cli.conftest import Invoke


def findings(out: str) -> dict[str, str]:
    """Each check and its verdict."""
    rows = [line.partition(": ")[0].split(maxsplit=1) for line in out.splitlines()[2:]]
    return {check: verdict for verdict, check in rows}


def test_a_sound_database_passes_every_check(invoke: Invoke, remembered: Path) -> None:
    outcome = invoke("doctor", "--deep", "--database", str(remembered))
    assert (outcome.code, outcome.err) == (0, "")
    checks = findings(outcome.out)
    assert {"sqlite", "access", "structure", "references", "row hashes", "counters", "text index"} <= checks.keys()
    assert set(checks.values()) == {"ok"}


def test_a_model_server_that_is_configured_and_dead_is_a_fault(invoke: Invoke, remembered: Path) -> None:
    config = remembered.with_name("config.toml")
    config.write_text('[[servers]]\nname = "ollama"\nkind = "ollama"\nurl = "http://127.0.0.1:9"\nmodels = ["*"]\n')
    outcome = invoke("doctor", "--database", str(remembered), "--config", str(config))
    assert outcome.code == 1
    assert findings(outcome.out)["models"] == "FAILED"
    assert "check that the server runs" in outcome.out


def test_a_missing_database_is_no_fault_and_is_not_created(invoke: Invoke, tmp_path: Path) -> None:
    outcome = invoke("doctor", "--deep", "--database", str(tmp_path / "memory.db"))
    assert outcome.code == 0
    assert "does not exist yet" in outcome.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["a folder", "no database", "cut short"])
def test_a_file_that_is_no_database_fails_without_a_traceback(invoke: Invoke, remembered: Path, kind: str) -> None:
    path = remembered.with_name("other.db")
    if kind == "a folder":
        path.mkdir()
    else:
        path.write_bytes(b"Dear diary, " * 1000 if kind == "no database" else remembered.read_bytes()[:5000])
    outcome = invoke("doctor", "--database", str(path))
    assert (outcome.code, outcome.err) == (1, "")
    assert "FAILED" in findings(outcome.out).values()


def test_only_the_deep_look_finds_a_changed_word_and_names_the_record(invoke: Invoke, remembered: Path) -> None:
    with closing(sqlite3.connect(remembered)) as other:
        other.execute("UPDATE records SET text = 'We fly on May 4.' WHERE text = 'We fly on May 3.'")
        other.commit()
    assert invoke("doctor", "--database", str(remembered)).code == 0
    before = remembered.read_bytes()
    outcome = invoke("doctor", "--deep", "--database", str(remembered))
    assert outcome.code == 1
    assert findings(outcome.out)["row hashes"] == "FAILED"
    assert remembered.read_bytes() == before


def test_a_text_index_that_lost_a_record_is_found_and_mended_by_reindex(invoke: Invoke, remembered: Path) -> None:
    with closing(sqlite3.connect(remembered)) as other:
        other.execute("INSERT INTO records_text (records_text) VALUES ('delete-all')")
        other.commit()
    outcome = invoke("doctor", "--deep", "--database", str(remembered))
    assert outcome.code == 1
    assert "run `kalito-mcp reindex`" in outcome.out
    assert invoke("reindex", "--database", str(remembered)).out == "indexed 4 records\n"
    assert invoke("doctor", "--deep", "--database", str(remembered)).code == 0


def test_a_database_that_others_may_read_is_a_warning_with_its_remedy(invoke: Invoke, remembered: Path) -> None:
    remembered.chmod(0o644)
    outcome = invoke("doctor", "--database", str(remembered))
    assert outcome.code == 0
    assert findings(outcome.out)["access"] == "warning"
    assert f"chmod 600 {remembered}" in outcome.out


def test_events_that_could_not_be_recorded_are_counted_with_their_place(invoke: Invoke, remembered: Path) -> None:
    spool = Spool(LocalFiles(remembered).spool)
    spool.put({"payload": {"prompt": "My zebra."}}, at_ms=1, event_id="x")
    for one in spool.take():
        one.outcome = Outcome.BROKEN
    outcome = invoke("doctor", "--database", str(remembered))
    assert outcome.code == 0
    assert "hooks: 1 event could not be recorded" in outcome.out
    assert "*.broken" in outcome.out
    assert "zebra" not in outcome.out
