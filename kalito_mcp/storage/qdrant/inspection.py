"""Asks a Qdrant, for `kalito-mcp doctor`. Synchronous, and changes nothing."""

from pathlib import Path

from kalito_mcp.errors import VectorsUnreachable
from kalito_mcp.storage.qdrant.points import QdrantPoints
from kalito_mcp.storage.sqlite.inspection import Finding, Verdict
from kalito_mcp.storage.sqlite.vector_check import moved_points


def inspect_points(points: QdrantPoints, database: Path) -> Finding:
    """Whether Qdrant answers, and has as many vectors of the database as it should."""
    named = moved_points(database)
    try:
        count = points.count_now("" if named is None else named[0])
    except VectorsUnreachable as error:
        detail = f"{error}. Until then, search uses words only, and new vectors wait in the database"
        return Finding("qdrant", Verdict.WARNING, detail)
    expected = 0 if named is None else named[1]
    if count != expected:
        remedy = "`serve` mends it in the background, `kalito-mcp reindex --vectors` mends it now"
        detail = f"{points.name} has {count:,} vectors of this database instead of {expected:,}: {remedy}"
        return Finding("qdrant", Verdict.WARNING, detail)
    return Finding("qdrant", Verdict.OK, f"{points.name} answers, and has all {expected:,} vectors of this database")
