"""The findings of `kalito-mcp doctor` on the database and the models."""

from collections.abc import Iterator

import anyio

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.inference.registry import why_none
from kalito_mcp.runtime.system import SystemClock
from kalito_mcp.storage.on_server import inspect_server
from kalito_mcp.storage.qdrant.points import configured_points
from kalito_mcp.storage.sqlite.environment import access, log_size, users
from kalito_mcp.storage.sqlite.inspection import inspect, wal_reset_exposure
from kalito_mcp.wiring import registry_of


def diagnose(settings: Settings, *, is_deep: bool) -> Iterator[Finding]:
    """The findings of `kalito-mcp doctor`. Changes nothing and sends no text to a model: servers that are configured
    are asked which models they have."""
    if settings.database.server is None:
        yield wal_reset_exposure()
    embedder, points = None, None
    try:
        registry = registry_of(settings, SystemClock())
        if settings.servers:
            yield from anyio.run(registry.findings, settings.vectors, settings.summaries.cloud_model)
        embedder = registry.embedder(settings.vectors)
        yield Finding("embedder", Verdict.OK, embedder.fingerprint if embedder else why_none(settings.vectors))
        points = configured_points(settings.vectors)
    except ConfigurationError as error:
        yield Finding("models", Verdict.FAILED, str(error))
    if settings.database.server is not None:
        yield from inspect_server(settings.database.server, is_deep=is_deep)
        return
    path = settings.database.path
    if not path.exists():
        yield Finding("database", Verdict.OK, "does not exist yet; `kalito-mcp serve` creates it")
        yield users(path)
        return
    yield access(path)
    yield log_size(path)
    place = None if points is None else points.name
    yield from inspect(path, is_deep=is_deep, embedder=embedder, place=place)
    if points is not None:
        yield points.inspect(path)
    yield users(path)
