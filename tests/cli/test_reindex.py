"""`kalito-mcp reindex`: the text index and, with an embedder, the vectors.

The next run continues an interrupted one.
"""

import sys
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import anyio
import pytest

from kalito_mcp import wiring
from kalito_mcp.cli.reindex import VectorProgress
from kalito_mcp.config.settings import Settings
from kalito_mcp.errors import ModelUnavailable
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep.vector_worker import VectorWorker
from tests.cli.conftest import Invoke, Terminal
from tests.scripted_embedder import ScriptedEmbedder


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> ScriptedEmbedder:
    """What the wiring would have made of the settings."""
    scripted = ScriptedEmbedder()

    async def reindex_vectors(settings: Settings, progress: Callable[[int, int], None], *, is_anew: bool) -> None:
        store = await SqliteStore.open(settings.database.path, settings.storage)
        try:
            await VectorWorker(store, scripted, settings.vectors).rebuild(progress, is_anew=is_anew)
        finally:
            await store.close()

    monkeypatch.setattr(wiring, "has_embedder", lambda settings: True)
    monkeypatch.setattr(wiring, "reindex_vectors", reindex_vectors)
    return scripted


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.toml"
    path.write_text('[models]\nembedder = "auto"\nbatch = 1\n', encoding="utf-8")
    return str(path)


def count(database: Path) -> list[tuple[str, bool, int]]:
    """Fingerprint, whether it is served, and how many vectors it has, of each index."""

    async def counted() -> list[tuple[str, bool, int]]:
        store = await SqliteStore.open(database)
        async with store.view() as view:
            found = [
                (one.fingerprint, one.is_active, await view.vectors.count(one.fingerprint))
                for one in await view.vectors.indexes()
            ]
        await store.close()
        return found

    return anyio.run(counted)


def test_without_an_embedder_only_the_text_index_is_built(invoke: Invoke, remembered: Path) -> None:
    outcome = invoke("reindex", "--database", str(remembered))
    assert (outcome.code, outcome.out, outcome.err) == (0, "indexed 4 records\n", "")
    assert count(remembered) == []


def test_the_option_vectors_without_an_embedder_is_refused(invoke: Invoke, remembered: Path) -> None:
    outcome = invoke("reindex", "--vectors", "--database", str(remembered))
    assert (outcome.code, outcome.out) == (1, "")
    assert "models.embedder" in outcome.err


def test_with_an_embedder_it_builds_both_and_is_quiet_without_a_terminal(
    invoke: Invoke, remembered: Path, config: str, embedder: ScriptedEmbedder
) -> None:
    outcome = invoke("reindex", "--database", str(remembered), "--config", config)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "indexed 4 records\nvectors complete: 4 records\n"
    assert count(remembered) == [(embedder.fingerprint, True, 4)]


def test_all_rebuilds_existing_vectors_too(
    invoke: Invoke, remembered: Path, config: str, embedder: ScriptedEmbedder
) -> None:
    arguments = ("reindex", "--vectors", "--database", str(remembered), "--config", config)
    for options, texts in (((), 4), ((), 0), (("--all",), 4)):
        embedder.asked = []
        assert invoke(*arguments, *options).out == "vectors complete: 4 records\n"
        assert len(embedder.asked) == texts + 1, "one tells their length"
    assert count(remembered) == [(embedder.fingerprint, True, 4)]


def test_vectors_of_a_database_that_is_not_there_are_refused_and_make_none(invoke: Invoke, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[models]\nembedder = "home"\nembedding_model = "m"\n'
        '[[servers]]\nname = "home"\nkind = "ollama"\nurl = "http://127.0.0.1:9"\nmodels = ["*"]\n',
        encoding="utf-8",
    )
    outcome = invoke("reindex", "--vectors", "--database", str(tmp_path / "memory.db"), "--config", str(config))
    assert (outcome.code, outcome.out) == (1, "")
    assert "does not exist" in outcome.err
    assert list(tmp_path.iterdir()) == [config]


def test_a_run_that_failed_is_gone_on_with(
    invoke: Invoke, remembered: Path, config: str, embedder: ScriptedEmbedder
) -> None:
    def lost(texts: Sequence[str]) -> None:
        if len(embedder.asked) == 3:
            raise ModelUnavailable("start the model server, and run this again")

    embedder.before = lost
    arguments = ("reindex", "--vectors", "--database", str(remembered), "--config", config)
    outcome = invoke(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert "run this again" in outcome.err
    assert count(remembered) == [(embedder.fingerprint, True, 2)]
    embedder.before, embedder.asked = lambda texts: None, []
    assert invoke(*arguments).out == "vectors complete: 4 records\n"
    assert len(embedder.asked) == 3


def test_a_bar_shows_how_far_it_is_on_a_terminal_and_once_there_is_something_to_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with VectorProgress() as progress:
        progress(2, 4)
        progress(3, 4)
        progress(4, 4)
    assert progress.done == 4
    assert "vectors" in screen.getvalue()
    assert "2/4" in screen.getvalue()
    assert "4/4" in screen.getvalue()
    for quiet in (Terminal(), StringIO()):
        monkeypatch.setattr(sys, "stderr", quiet)
        with VectorProgress() as progress:
            if not quiet.isatty():
                progress(1, 1)
        assert quiet.getvalue() == ""
