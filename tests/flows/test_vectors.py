"""Vectors from end to end: a real embedding server on loopback, the server over stdio, and the command line."""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any, Final

import anyio
import pytest

from kalito_mcp import CreatePinRequest, NewMessage, Role, Settings, open_memory
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.storage.sqlite.inspection import inspect
from tests.scripted_embedder import ScriptedEmbedder, hashed_vector
from tests.server import prepared
from tests.server.wire import COVERED, PATIENCE_S, Wire, call, clean_environment, served
from tests.stored import talk

SMALL, LARGE = "ollama:small", "ollama:large"
_DIMENSIONS: Final = {"small": 64, "large": 96}
_SAME: Final = {"brillig": "gloaming"}
"""Words that mean the same to the models, and that nothing else knows."""
FACTS: Final = ("Supper is at brillig.", "The cat sleeps on the printer.", "We fly to Oslo in May.")


class Embeddings(ThreadingHTTPServer):
    """Ollama's `/api/embed` and `/api/tags`. Texts of one meaning have one vector. `texts` are the embedded ones."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.texts: list[str] = []
        self.is_down = False
        self.answers_left: int | None = None
        self.is_waiting = threading.Event()
        self._goes_on = threading.Event()

    def wait_after(self, answers: int) -> None:
        """Answer so many times more, and then not before `go_on`."""
        self.answers_left = answers
        self.is_waiting.clear()
        self._goes_on.clear()

    def go_on(self) -> None:
        self.answers_left = None
        self._goes_on.set()

    def vectors(self, model: str, texts: list[str]) -> list[list[float]] | None:
        """None: the server dies."""
        if self.is_down:
            return None
        if self.answers_left == 0:
            self.is_waiting.set()
            self._goes_on.wait(PATIENCE_S)
        elif self.answers_left is not None:
            self.answers_left -= 1
        self.texts += texts
        return [hashed_vector(_meaning(text), _DIMENSIONS[model]).tolist() for text in texts]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever was killed does not read its answer."""


class _Answers(BaseHTTPRequestHandler):
    server: Embeddings

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        vectors = self.server.vectors(asked["model"], asked["input"])
        if vectors is None:
            return
        self._send({"model": asked["model"], "embeddings": vectors})

    def do_GET(self) -> None:
        self._send({"models": [{"name": name} for name in _DIMENSIONS]})

    def _send(self, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


def _meaning(text: str) -> str:
    words = text.lower().replace(".", "").split()
    return " ".join(_SAME.get(word, word) for word in words)


@pytest.fixture
def embeddings() -> Iterator[Embeddings]:
    with Embeddings() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.go_on()
        server.shutdown()
        thread.join()


def config(embeddings: Embeddings, folder: Path, model: str) -> str:
    """The path of a configuration by which this model embeds, two texts at a time."""
    path = folder / f"{model}.toml"
    path.write_text(
        f'[models]\nembedder = "home"\nembedding_model = "{model}"\nbatch = 2\n'
        f'[[servers]]\nname = "home"\nkind = "ollama"\nurl = "{embeddings.url}"\nmodels = ["none"]\nmax_retries = 0\n',
        encoding="utf-8",
    )
    return str(path)


@contextmanager
def memory(database: Path, configuration: str) -> Iterator["Served"]:
    """A memory over stdio."""
    with served(database, KALITO_CONFIG=configuration) as wire:
        yield Served(wire)


class Served:
    """What is asked of one server, call by call."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._calls = 0

    def tell(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self._calls += 1
        self._wire.send(call(self._calls, tool, **arguments))
        result: dict[str, Any] = self._wire.answer(self._calls)["result"]
        assert not result.get("isError"), result
        return result

    def record(self, *texts: str) -> None:
        self.tell("record_messages", session_id="trip", messages=[{"role": "user", "text": text} for text in texts])

    def found(self, query: str) -> list[str]:
        return [hit["text"] for hit in self.tell("search_memory", query=query)["structuredContent"]["hits"]]

    def until(self, is_so: Callable[[], bool]) -> None:
        """Ask for something else until it is so: the server works on meanwhile."""
        deadline = monotonic() + PATIENCE_S
        while not is_so():
            assert monotonic() < deadline
            self.tell("build_context", session_id="trip")


def indexes(database: Path) -> dict[str, tuple[str, int]]:
    """State, and number of vectors, of what each embedder made."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            "SELECT fingerprint, state, (SELECT count(*) FROM record_vectors v WHERE v.index_key = i.key) "
            "FROM vector_indexes i"
        )
        return {row[0]: (row[1], row[2]) for row in rows}


def command(database: Path, configuration: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """`kalito-mcp` with these arguments, begun."""
    return prepared.start(
        [sys.executable, "-m", "kalito_mcp", *arguments],
        env=clean_environment(KALITO_DATABASE=str(database), KALITO_CONFIG=configuration, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said(database: Path, configuration: str, *arguments: str, **environment: str) -> tuple[int | None, str]:
    """Exit code and words of a command."""
    with command(database, configuration, *arguments, **environment) as process:
        return process.wait(PATIENCE_S), process.stdout.read() if process.stdout else ""


def warnings(database: Path) -> list[str]:
    """What the server said of vectors on stderr."""
    lines = database.with_suffix(".stderr").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "vectors" in line]


def test_what_is_recorded_gets_its_vector_and_is_found_by_its_meaning(embeddings: Embeddings, tmp_path: Path) -> None:
    database, small = tmp_path / "memory.db", config(embeddings, tmp_path, "small")
    with memory(database, small) as one:
        one.record(*FACTS)
        one.until(lambda: indexes(database) == {SMALL: ("active", 3)})
        assert one.found("gloaming")[0] == FACTS[0]
        assert one.found("brillig")[0] == FACTS[0]
    assert warnings(database) == []
    code, report = said(database, small, "doctor", "--deep")
    assert code == 0
    assert f"ok  vectors: every record has one, made by {SMALL}" in report
    assert "ok  vectors' records" in report


def test_without_its_embedder_it_records_and_finds_words_and_pays_when_it_is_back(
    embeddings: Embeddings, tmp_path: Path
) -> None:
    database, small = tmp_path / "memory.db", config(embeddings, tmp_path, "small")
    embeddings.is_down = True
    with memory(database, small) as one:
        one.record(*FACTS)
        one.until(lambda: len(warnings(database)) == 1)
        assert one.found("printer") == [FACTS[1]]
        one.record("Filed.")
    assert len(warnings(database)) == 1
    assert indexes(database) == {}
    embeddings.is_down = False
    code, report = said(database, small, "doctor", **COVERED)
    assert (code, "vectors: none yet" in report) == (0, True)
    with memory(database, small) as one:
        one.until(lambda: indexes(database) == {SMALL: ("active", 4)})


def test_another_embedders_vectors_take_over_when_they_are_complete_also_after_a_kill(
    embeddings: Embeddings, tmp_path: Path
) -> None:
    database = tmp_path / "memory.db"
    small, large = (config(embeddings, tmp_path, model) for model in ("small", "large"))
    with memory(database, small) as old:
        old.record(*FACTS, "It rains.", "The tax is filed.")
        old.until(lambda: indexes(database) == {SMALL: ("active", 5)})
        code, report = said(database, large, "doctor")
        assert code == 1
        assert f"vectors: made by {SMALL}, but {LARGE} is configured" in report
        # One tells how long its vectors are.
        embeddings.wait_after(2)
        with command(database, large, "reindex", "--vectors") as killed:
            assert embeddings.is_waiting.wait(PATIENCE_S)
            killed.kill()
        embeddings.go_on()
        assert indexes(database) == {SMALL: ("active", 5), LARGE: ("building", 2)}
        old.record("Late.")
        old.until(lambda: indexes(database)[SMALL] == ("active", 6))
        assert old.found("gloaming")[0] == FACTS[0]
        embeddings.texts.clear()
        code, report = said(database, large, "reindex", "--vectors", **COVERED)
        assert (code, report) == (0, "vectors complete: 6 records\n")
        assert len(embeddings.texts) == 1 + 4, "what was made before the kill is not made again"
        assert indexes(database) == {LARGE: ("active", 6)}
        assert old.found("printer") == [FACTS[1]]
    with memory(database, large) as new:
        assert new.found("gloaming")[0] == FACTS[0]
    assert said(database, large, "doctor", "--deep")[0] == 0


def test_a_server_with_another_embedder_finds_words_and_says_once_what_to_run(
    embeddings: Embeddings, tmp_path: Path
) -> None:
    database = tmp_path / "memory.db"
    with memory(database, config(embeddings, tmp_path, "small")) as old:
        old.record(*FACTS)
        old.until(lambda: indexes(database) == {SMALL: ("active", 3)})
    with memory(database, config(embeddings, tmp_path, "large")) as new:
        new.until(lambda: len(warnings(database)) == 1)
        new.record("Late.")
        assert new.found("printer") == [FACTS[1]]
        assert new.found("gloaming") == []
    [warning] = warnings(database)
    assert "kalito-mcp reindex" in warning
    assert (SMALL in warning, LARGE in warning) == (True, True)
    assert indexes(database) == {SMALL: ("active", 3)}


def test_whatever_is_written_by_any_verb_has_its_vector(embeddings: Embeddings, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    server = {"name": "home", "kind": "ollama", "url": embeddings.url, "models": ["none"]}
    settings = Settings(vectors=VectorPolicy("home", "small", batch=8), servers=(server,))

    def has_all() -> bool:
        """Every record that is not gone has its vector, and no other."""
        found = list(inspect(database, is_deep=True, embedder=ScriptedEmbedder(SMALL)))
        assert [one for one in found if one.verdict is not Verdict.OK] == []
        return any("every record has one" in one.detail for one in found)

    async def live() -> None:
        async with open_memory(database, settings) as memory:
            recorded = await memory.record_messages("trip", talk(20))
            await memory.settled()
            assert has_all(), "the summaries and pins that it owed, too"
            pin = await memory.create_pin(CreatePinRequest("trip", "The Oslo flight is SK 4711."))
            [note] = await memory.remember("note", {"text": "The cat sleeps."})
            await memory.settled()
            assert has_all()
            await memory.update_memory(note.id, {"text": "The dog barks."}, expected_revision=1)
            await memory.settled()
            assert has_all()
            assert "The dog barks." in embeddings.texts
            await memory.forget(pin.id)
            assert has_all()
            embeddings.texts.clear()
            await memory.restore(pin.id)
            await memory.settled()
            assert (has_all(), embeddings.texts) == (True, [pin.content])
            await memory.purge([recorded.message_ids[0], note.id])
            await memory.conversations.summarize("trip")
            await memory.finalize_session("trip")
            await memory.settled()
            assert has_all()

    anyio.run(live)


def test_doctor_says_that_there_are_none_yet_and_asks_no_model(embeddings: Embeddings, tmp_path: Path) -> None:
    database, small = tmp_path / "memory.db", config(embeddings, tmp_path, "small")

    async def record() -> None:
        async with open_memory(database) as memory:
            await memory.record_messages("trip", [NewMessage(Role.USER, text) for text in FACTS])
            await memory.settled()

    anyio.run(record)
    code, report = said(database, small, "doctor")
    assert (code, f"none yet; `serve` makes them with {SMALL}" in report) == (0, True)
    assert embeddings.texts == []
