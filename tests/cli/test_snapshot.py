"""`kalito-mcp snapshot`: save, show, compare and restore what an agent learnt."""

import json
import sys
from pathlib import Path

import anyio
import pytest

from kalito_mcp.config.settings import Settings, load_settings
from kalito_mcp.domain.graph import CheckpointPolicy
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke, Outcome, Terminal

QUESTION = "How do I restart the printer in the hall?"
OTHER = "What is the capital of Norway?"
WRONG_NAMES = ("../x", "a/b", "/etc/passwd", "", "x" * 200, "a\0b", "..", ".hidden", "end.", "a b")


@pytest.fixture
def learnt(tmp_path: Path) -> Path:
    """A database whose default agent knows one question and its answer, and has its own snapshot of that."""
    database = tmp_path / "memory.db"
    learn(database, "monday", QUESTION, "Hold its power button.")
    return database


def learn(database: Path, session_id: str, question: str, answer: str, **environment: str) -> None:
    """Finalize a session in which one question was answered."""

    async def finalize() -> None:
        async with open_memory(database, load_settings(environment)) as memory:
            turn = [NewMessage(Role.USER, question), NewMessage(Role.ASSISTANT, answer)]
            await memory.record_messages(session_id, turn)
            await memory.finalize_session(session_id)

    anyio.run(finalize)


def known(invoke: Invoke, database: Path) -> list[str]:
    """The questions that the agent knows, read from a snapshot taken now."""
    snapshot(invoke, database, "save", "now")
    shown = json.loads(snapshot(invoke, database, "show", "now", "--json").out)
    return [node["text"] for node in shown["top_queries"]]


def snapshot(invoke: Invoke, database: Path, *arguments: str) -> Outcome:
    """A command that succeeds."""
    outcome = invoke("snapshot", *arguments, KALITO_DATABASE=str(database))
    assert (outcome.code, outcome.err) == (0, "")
    return outcome


def refused(invoke: Invoke, database: Path, *arguments: str) -> str:
    """The one line of a command that is refused."""
    outcome = invoke("snapshot", *arguments, KALITO_DATABASE=str(database))
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("kalito-mcp: ")
    assert outcome.err.count("\n") == 1
    return outcome.err


def test_saving_says_where_the_snapshot_is(invoke: Invoke, learnt: Path) -> None:
    path = learnt.with_name("memory.db.snapshots") / "before.json"
    saved = snapshot(invoke, learnt, "save", "before").out
    assert saved == f"before  {path.stat().st_size:,} bytes  {path}\n"
    assert json.loads(path.read_text())["graph"]["nodes"]


def test_the_snapshots_are_listed_with_their_sizes(invoke: Invoke, learnt: Path) -> None:
    snapshot(invoke, learnt, "save", "before")
    listed = [line.split() for line in snapshot(invoke, learnt, "list").out.splitlines()]
    assert {line[-1] for line in listed} == {"default", "before"}
    size = learnt.with_name("memory.db.snapshots").joinpath("before.json").stat().st_size
    assert {line[-3] for line in listed} == {f"{size:,}"}


def test_showing_tells_what_is_in_a_snapshot(invoke: Invoke, learnt: Path) -> None:
    head, nodes, edges, *queries = snapshot(invoke, learnt, "show", "default").out.splitlines()
    assert head.startswith("default  ")
    assert "1 answer" in nodes
    assert "1 responded_with" in edges
    assert [line.endswith(QUESTION) for line in queries] == [True]
    shown = json.loads(snapshot(invoke, learnt, "show", "default", "--json").out)
    assert (shown["name"], shown["nodes"]) == ("default", sum(shown["nodes_by_type"].values()))
    assert [query["text"] for query in shown["top_queries"]] == [QUESTION]


def test_restoring_brings_back_what_was_known(invoke: Invoke, learnt: Path) -> None:
    snapshot(invoke, learnt, "save", "before")
    learn(learnt, "tuesday", OTHER, "Oslo.")
    assert sorted(known(invoke, learnt)) == sorted([QUESTION, OTHER])
    assert snapshot(invoke, learnt, "restore", "before", "--yes").out.startswith("restored before: ")
    assert known(invoke, learnt) == [QUESTION]


def test_restoring_asks_first_and_no_changes_nothing(
    invoke: Invoke, learnt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot(invoke, learnt, "save", "before")
    learn(learnt, "tuesday", OTHER, "Oslo.")
    for answer in ("n\n", "\n", ""):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        outcome = invoke("snapshot", "restore", "before", KALITO_DATABASE=str(learnt))
        assert outcome.code == 130
        assert "Replace the long-term graph of agent 'default' with snapshot 'before'?" in outcome.out + outcome.err
    assert sorted(known(invoke, learnt)) == sorted([QUESTION, OTHER])
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert "restored before: " in invoke("snapshot", "restore", "before", KALITO_DATABASE=str(learnt)).out
    assert known(invoke, learnt) == [QUESTION]
    monkeypatch.undo()


def test_the_rules_of_graphs_and_the_folder_of_snapshots_are_settings(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    question = "How do I restart the large printer in the hall of the third building, {}?"
    settings = {
        "KALITO_CHECKPOINT_FOLDER": str(folder),
        "KALITO_SESSION_GRAPH_MERGE_NEAR_DUPLICATES": "true",
        "KALITO_AGENT_GRAPH_MERGE_NEAR_DUPLICATES": "true",
    }
    for name in ("one.db", "two.db"):
        for place in ("room 4", "room 5"):
            learn(tmp_path / name, place, question.format(place), f"Ask in {place}.", **settings)
    assert [*tmp_path.glob("*.snapshots")] == []
    for name in ("one.db", "two.db"):
        database = {"KALITO_DATABASE": str(tmp_path / name), **settings}
        assert (folder / f"{name}.snapshots" / "default.json").is_file()
        shown = json.loads(invoke("snapshot", "show", "default", "--json", **database).out)
        assert [node["text"] for node in shown["top_queries"]] == [question.format("room 4")]


def test_snapshots_are_restored_into_a_database_that_is_not_there_yet(invoke: Invoke, learnt: Path) -> None:
    moved = learnt.with_name("moved.db")
    learnt.with_name("memory.db.snapshots").rename(moved.with_name("moved.db.snapshots"))
    snapshot(invoke, moved, "restore", "default", "--yes")
    assert known(invoke, moved) == [QUESTION]


def test_the_difference_to_now_names_what_came(invoke: Invoke, learnt: Path) -> None:
    assert snapshot(invoke, learnt, "diff", "default").out == (
        "0 nodes added, 0 removed, 0 changed; 0 edges added, 0 removed\n"
    )
    snapshot(invoke, learnt, "save", "before")
    learn(learnt, "tuesday", OTHER, "Oslo.")
    counts, *nodes = snapshot(invoke, learnt, "diff", "before").out.splitlines()
    assert ", 0 removed, 0 changed; " in counts
    assert {f"+ query    {OTHER}", "+ answer   Oslo."} <= set(nodes)


def test_the_difference_of_two_snapshots_goes_from_the_first_to_the_second(invoke: Invoke, learnt: Path) -> None:
    snapshot(invoke, learnt, "save", "before")
    learn(learnt, "tuesday", OTHER, "Oslo.")
    there = snapshot(invoke, learnt, "diff", "before", "default").out
    back = snapshot(invoke, learnt, "diff", "default", "before").out
    assert f"+ query    {OTHER}" in there
    assert f"- query    {OTHER}" in back
    assert there.replace("+", "-").splitlines()[1:] == back.splitlines()[1:]


def test_the_difference_leaves_out_what_no_snapshot_would_hold(
    invoke: Invoke, learnt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(learnt, "tuesday", OTHER, "Oslo.")
    small = Settings(database=address_of(learnt), checkpoint=CheckpointPolicy(top_k=1))
    for name in ("settings_of_existing", "settings_to_read"):
        monkeypatch.setattr(f"kalito_mcp.cli.snapshot.{name}", lambda database, config: small)
    assert snapshot(invoke, learnt, "save", "best").out
    assert snapshot(invoke, learnt, "diff", "best").out.startswith("0 nodes added, 0 removed")


def test_each_agent_has_a_graph_of_its_own(invoke: Invoke, learnt: Path) -> None:
    assert snapshot(invoke, learnt, "save", "--agent", "home/office").out.startswith("home%2Foffice  ")
    assert snapshot(invoke, learnt, "diff", "home%2Foffice", "--agent", "home/office").out.startswith("0 nodes added")
    snapshot(invoke, learnt, "restore", "default", "--agent", "home/office", "--yes")
    assert "query" in snapshot(invoke, learnt, "diff", "home%2Foffice", "--agent", "home/office").out


def test_a_missing_database_is_not_created(invoke: Invoke, tmp_path: Path) -> None:
    assert "nothing has been recorded yet" in refused(invoke, tmp_path / "none.db", "save")
    for reads in ("show", "diff"):
        outcome = invoke("snapshot", reads, "default", KALITO_DATABASE=str(tmp_path / "none.db"))
        assert (outcome.code, outcome.out) == (0, "")
        assert outcome.err.startswith("nothing is remembered yet")
    assert list(tmp_path.iterdir()) == []


def test_without_snapshots_the_list_says_where_it_looked_and_nothing_is_restored(
    invoke: Invoke, tmp_path: Path
) -> None:
    database = tmp_path / "none.db"
    assert snapshot(invoke, database, "list").out == f"no snapshots in {database}.snapshots\n"
    assert "no snapshot 'default'; there are: none yet" in refused(invoke, database, "restore", "default", "--yes")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_snapshot_can_have_is_refused_by_every_command(invoke: Invoke, learnt: Path) -> None:
    before = sorted(learnt.parent.rglob("*.json"))
    for command in (["save"], ["show"], ["restore", "--yes"], ["diff"], ["diff", "default"]):
        for name in ("../x", "x" * 200):
            assert "is not plain; use letters, digits" in refused(invoke, learnt, *command, name)
    for name in WRONG_NAMES:
        assert "is not plain" in refused(invoke, learnt, "save", name)
    assert sorted(learnt.parent.rglob("*.json")) == before


def test_an_unknown_snapshot_is_refused_with_a_list_before_any_question(invoke: Invoke, learnt: Path) -> None:
    for arguments in (["show", "nope"], ["restore", "nope"], ["diff", "nope"], ["diff", "default", "nope"]):
        assert "no snapshot 'nope'; there are: default" in refused(invoke, learnt, *arguments)


def test_a_damaged_snapshot_is_refused_and_the_graph_stays(invoke: Invoke, learnt: Path) -> None:
    folder = learnt.with_name("memory.db.snapshots")
    short = (folder / "default.json").read_text()[:-20]
    for content in ("", "{", "[]", '{"graph": {"nodes": [{}], "edges": []}}', short):
        (folder / "bad.json").write_text(content)
        for arguments in (["show", "bad"], ["restore", "--yes", "bad"], ["diff", "bad"]):
            assert refused(invoke, learnt, *arguments)
    assert known(invoke, learnt) == [QUESTION]
