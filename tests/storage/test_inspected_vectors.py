"""`doctor` on vectors: whose they are, how many are owed, and those that should not exist."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from kalito_mcp.config.settings import Settings
from kalito_mcp.diagnosing import diagnose
from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.upkeep.vector_worker import VectorWorker
from tests.scripted_embedder import ScriptedEmbedder

OURS = "scripted:64"


@pytest.fixture
def embedded(copy: Path) -> Path:
    """The sample, each record with its vector."""

    async def embed() -> None:
        store = await SqliteStore.open(copy)
        await VectorWorker(store, ScriptedEmbedder(), VectorPolicy(batch=100)).pay()
        await store.close()

    anyio.run(embed)
    return copy


def vectors(
    database: Path, fingerprint: str | None = OURS, *, is_deep: bool = False, replaces: tuple[str, ...] = ()
) -> Finding | None:
    """What is said of vectors, or of whose they are."""
    name = "vectors' records" if is_deep else "vectors"
    embedder = None if fingerprint is None else ScriptedEmbedder(fingerprint, replaces=replaces)
    findings = inspect(database, is_deep=is_deep, embedder=embedder)
    return next((finding for finding in findings if finding.check == name), None)


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(statement)
        connection.commit()


def test_without_an_embedder_and_vectors_nothing_is_said_of_them(copy: Path) -> None:
    assert vectors(copy, None) is None
    assert vectors(copy, None, is_deep=True) is None


def test_complete_vectors_are_well(embedded: Path) -> None:
    assert vectors(embedded) == Finding(
        "vectors", Verdict.OK, f"every record has one, made by {OURS} and kept in the database"
    )
    deep = vectors(embedded, is_deep=True)
    assert deep is not None and deep.verdict is Verdict.OK


def test_vectors_that_nobody_uses_are_a_warning(embedded: Path) -> None:
    found = vectors(embedded, None)
    assert found is not None and found.verdict is Verdict.WARNING
    assert OURS in found.detail


def test_owed_vectors_are_counted(embedded: Path) -> None:
    change(embedded, "UPDATE records SET text = 'Changed.' WHERE key IN (5, 6)")
    found = vectors(embedded)
    assert found is not None and found.verdict is Verdict.WARNING
    assert "2 missing" in found.detail
    deep = vectors(embedded, is_deep=True)
    assert deep is not None and deep.verdict is Verdict.OK, "what is owed is not missing"


def test_vectors_of_another_embedder_fail_with_both_names_and_the_remedy(embedded: Path) -> None:
    found = vectors(embedded, "other:9")
    assert found is not None and found.verdict is Verdict.FAILED
    assert f"made by {OURS}, but other:9 is configured" in found.detail
    assert "run `kalito-mcp reindex`" in found.detail


def test_vectors_that_a_server_replaces_are_a_warning(embedded: Path) -> None:
    assert vectors(embedded, "better:9", replaces=("scripted",)) == Finding(
        "vectors", Verdict.WARNING, f"made by {OURS}: `serve` replaces them by vectors of better:9 in the background"
    )


@pytest.mark.parametrize(
    ("statement", "record"),
    [
        ("INSERT INTO record_vectors SELECT 9999, index_key, 9999, agent_key, NULL, vector FROM record_vectors", 9999),
        ("DELETE FROM record_vectors WHERE record_key = 7", 7),
        ("UPDATE record_vectors SET vector = x'00' WHERE record_key = 7", 7),
        ("UPDATE record_vectors SET agent_key = 99 WHERE record_key = 7", 7),
        ("UPDATE record_vectors SET session_key = NULL WHERE record_key = 7", 7),
        ("UPDATE record_vectors SET index_key = 99 WHERE record_key = 7", 7),
    ],
)
def test_vectors_of_no_record_or_another_place_and_missing_ones_are_found(
    embedded: Path, statement: str, record: int
) -> None:
    change(embedded, f"{statement} LIMIT 1" if statement.startswith("INSERT") else statement)
    assert vectors(embedded) is not None
    deep = vectors(embedded, is_deep=True)
    assert deep == Finding(
        "vectors' records",
        Verdict.FAILED,
        f"wrong: record {record}. To repair it, run `kalito-mcp reindex --vectors --all`",
    )


def test_an_unusable_embedder_is_reported_and_the_rest_is_inspected(embedded: Path) -> None:
    settings = Settings(database=address_of(embedded), vectors=VectorPolicy("nobody"))
    found = {finding.check: finding for finding in diagnose(settings, is_deep=False)}
    assert found["models"].verdict is Verdict.FAILED
    assert "'nobody' is not a model server" in found["models"].detail
    assert found["structure"].verdict is Verdict.OK
