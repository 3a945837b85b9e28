"""The comparison with other memory servers: what a server is told and asked, and what becomes of one that fails."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.peer_servers import KALITO, PEERS, Call, Peer, Turn, is_inside_project, keys_in
from bench.peer_table import drawn, table
from bench.peers import Contest, Question, real_turns, synthetic_questions
from bench.process_tree import children_of, cpu_s, tree_of, tree_rss_mb
from bench.report import ROOT
from tests.bench.test_growth import ASKED

pytestmark = pytest.mark.anyio
TURNS = [Turn(f"turn-{place:06}", "c", "user", "Ines", f"The {word} is late.") for place, word in enumerate(["tram"])]


@pytest.fixture
def busy_child() -> Iterator[subprocess.Popen[str]]:
    """A process with a child of its own, which has used processor time."""
    grandchild = "sum(range(3_000_000)); print('ready', flush=True); input()"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.write("\n")
        process.stdin.close()


@pytest.mark.campaign
async def test_this_server_is_measured_with_what_it_found_and_wrote(tmp_path: Path) -> None:
    row = await Contest((), (), most_questions=10).of_peer(KALITO, tmp_path, 60, starts=1)
    assert "why" not in row, row
    assert row["question"]["found"] == 100.0
    assert row["question"]["n"] == row["keyword"]["n"] == row["asked"] == 10
    assert row["disk_mb"] > 0.06
    assert {file.name for file in (tmp_path / "kalito-mcp").iterdir()} == {"bytecode", "data", "stderr.log"}
    head, _, line = table([row])
    assert line.count("|") == head.count("|")
    assert "kalito-mcp" in drawn([row])


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"registry": "pypi", "package": "./no-such-folder", "program": "bin/x"}, "not installed: "),
        ({"arguments": ("-c", "raise SystemExit(3)")}, "stopped: "),
        ({"store": lambda turns: ("no_such_tool", {})}, "stopped: "),
    ],
)
async def test_a_server_that_fails_is_a_row_that_says_why(tmp_path: Path, changed: dict[str, object], why: str) -> None:
    peer: Peer = replace(KALITO, **changed)  # type: ignore[arg-type]  # each case has its own types
    row = await Contest((), (), most_questions=1).of_peer(peer, tmp_path, 10, starts=1)
    assert row["why"].startswith(why)
    assert str(tmp_path) not in row["why"]
    assert list(table([row]))[2].startswith(f"| kalito-mcp | {why}")


def test_every_server_is_told_the_text_and_the_key_of_a_turn() -> None:
    for peer in PEERS:
        told = str(peer.store(TURNS))
        assert keys_in(told) == {"turn-000000"}, peer.name
        assert "The tram is late." in told and "Ines" in told
        assert "late tram?" in str(peer.search("late tram?"))


def test_a_server_keeps_everything_in_its_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMORY_FILE_PATH", "/elsewhere/memory.jsonl")
    monkeypatch.setenv("KALITO_DATABASE", "/elsewhere/memory.db")
    for peer in PEERS:
        environment = peer.environment(tmp_path)
        assert environment["HOME"] == str(tmp_path)
        assert not [name for name, value in environment.items() if value.startswith("/elsewhere")]


def test_the_evidence_of_a_question_must_be_among_the_imported_turns() -> None:
    turns = real_turns([ASKED])
    places = list(turns)
    questions = [Question("first?", frozenset({turns[places[0]].key})), Question("all?", frozenset({"turn-000002"}))]
    contest = Contest(list(turns.values()), questions, most_questions=9)
    imported, singles, asked = contest.of_size(2)
    assert [turn.key for turn in imported] == ["turn-000000", "turn-000001"]
    assert [question.text for question in asked] == ["first?"]
    imported, singles, asked = contest.of_size(50)
    assert len({turn.key for turn in (*imported, *singles)}) == 50 + len(singles)
    assert sorted(question.text for question in asked) == ["all?", "first?"]


def test_a_keyword_is_the_longest_word_that_says_something() -> None:
    assert Question("Where would the lighthouse have been?", frozenset()).keyword == "lighthouse"
    assert Question("What was that?", frozenset()).keyword


def test_a_synthetic_question_names_words_of_its_turn() -> None:
    [question] = synthetic_questions(TURNS, 5)
    assert question == Question("What was that about tram and late?", frozenset({"turn-000000"}))


def test_the_scratch_folder_must_not_be_in_the_project(tmp_path: Path) -> None:
    assert is_inside_project(ROOT / "bench" / ".." / "scratch")
    assert not is_inside_project(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_a_tree_counts_the_children_of_children(busy_child: subprocess.Popen[str]) -> None:
    [grandchild] = children_of(busy_child.pid)
    assert tree_of(busy_child.pid) == {busy_child.pid, grandchild}
    whole, part = cpu_s(busy_child.pid), cpu_s(grandchild)
    assert whole is not None and part is not None and whole >= part > 0
    rss, rss_of_part = tree_rss_mb(busy_child.pid), tree_rss_mb(grandchild)
    assert rss is not None and rss_of_part is not None and rss > rss_of_part
    assert cpu_s(2**30) is None


@pytest.mark.campaign
async def test_a_text_that_a_server_has_already_is_counted_and_not_a_failure(tmp_path: Path) -> None:
    turns = [*(Turn(f"turn-{place:06}", "c", "user", "user", f"Tram {place}.") for place in range(20)), *TURNS]
    contest = Contest(turns, [Question("Which tram?", frozenset({"turn-000003"}))], most_questions=1)

    def store(told: Sequence[Turn]) -> Call:
        is_refused = any(turn.key == "turn-000007" for turn in told)
        return KALITO.store(told) if not is_refused else ("record_messages", {"session_id": "", "messages": []})

    refusing = replace(KALITO, store=store, batch=1)
    assert (await contest.of_peer(refusing, tmp_path, 20, starts=1))["why"].startswith("stopped: Refused: ")
    forgiven = replace(refusing, already="record_messages")
    assert (await contest.of_peer(forgiven, tmp_path, 20, starts=1))["duplicates"] == 1
