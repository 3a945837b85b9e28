"""The composition root: settings to an opened `Memory`. With `reading`, the only importer of storage and inference."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio

from kalito_mcp.access.sign_in import SignIn
from kalito_mcp.access.tokens import Tokens
from kalito_mcp.access.users import check_user
from kalito_mcp.capture.spool import Spool
from kalito_mcp.config.settings import Settings, checked
from kalito_mcp.contexts.injector import Injector
from kalito_mcp.contexts.manager import MemoryManager
from kalito_mcp.domain.backups import Backup
from kalito_mcp.domain.graph import GraphScope
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.domain.sizes import StoredFiles
from kalito_mcp.domain.sleep import SleepCycleReport, SleepCycleSummarizer
from kalito_mcp.editing.cascade import Cascade
from kalito_mcp.editing.editor import RecordEditor
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.editing.files import FileEditor
from kalito_mcp.editing.forgetter import Forgetter
from kalito_mcp.editing.person_eraser import PersonEraser
from kalito_mcp.editing.snapshot_eraser import SnapshotEraser
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from kalito_mcp.inference.registry import ModelRegistry, ModelServer
from kalito_mcp.inference.tokens import token_counter
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.memory import Memory
from kalito_mcp.memory.part import Services
from kalito_mcp.memory.place import Place
from kalito_mcp.orchestrator.agent_graphs import AgentGraphs
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.observer import Observer
from kalito_mcp.orchestrator.orchestrator import OrchestratorConfig, new_graph
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.pins.collector import PinCollector
from kalito_mcp.pins.digest_pins import DigestPinner
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.embedder import Embedder
from kalito_mcp.ports.store import OpenedStore, Store
from kalito_mcp.records.historian import Historian
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.runtime.system import RandomIds, SystemClock
from kalito_mcp.storage.on_server import COPIES, open_on_server
from kalito_mcp.storage.qdrant.points import configured_points
from kalito_mcp.storage.sqlite import backups as backup_files
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.environment import stored_files as files_of_database
from kalito_mcp.summaries.digester import Digester
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.summaries.rewriter import SummaryRewriter
from kalito_mcp.summaries.summarizer import Summarizer
from kalito_mcp.switch import Switch, keep_switch, read_switch
from kalito_mcp.upkeep.answer_log import AnswerLog
from kalito_mcp.upkeep.consolidator import Consolidator
from kalito_mcp.upkeep.finalizer import Finalizer
from kalito_mcp.upkeep.owed_worker import OwedWorker
from kalito_mcp.upkeep.store_layers import Auditing, CallsFirst, OncePerKey, Pausing, Reporting
from kalito_mcp.upkeep.vector_worker import VectorWorker


@asynccontextmanager
async def open_memory(
    database: Path | str | None = None,
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    summarizer: SleepCycleSummarizer | None = None,
    emit: Callable[[GraphScope, SleepCycleReport], None] | None = None,
) -> AsyncIterator[Memory]:
    """Open a memory, with its background work, for the block.

        async with open_memory("memory.db") as memory:
            await memory.record_messages("trip", [NewMessage(Role.USER, "We fly to Oslo on May 3.")])

    `database` wins over `settings.database`; without either it is the user's own. `summarizer` sums up the questions
    that a sleep cycle merges, and `emit` gets the report of each cycle. What was acknowledged is on disk at any moment;
    leaving the block only ends the background work.

    Raises:
        ConfigurationError: a setting cannot be used, or an extra that it needs is not installed.
        InvalidInput: the owner of the settings has nothing yet, and looks like somebody who has.
        StorageError: the file cannot be opened, or a newer release wrote it.
    """
    settings = settings or Settings()
    if database is not None:
        settings = replace(settings, database=address_of(database))
    clock = clock or SystemClock()
    opened = await _open_store(settings, clock)
    try:
        if settings.owner != LOCAL_OWNER:
            await check_user(opened, settings.owner)
        async with memory_over(opened, settings, clock=clock, ids=ids, summarizer=summarizer, emit=emit) as memory:
            yield memory
    finally:
        with anyio.CancelScope(shield=True):
            await opened.close()


@asynccontextmanager
async def memory_over(
    opened: Store,
    settings: Settings,
    *,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    summarizer: SleepCycleSummarizer | None = None,
    emit: Callable[[GraphScope, SleepCycleReport], None] | None = None,
) -> AsyncIterator[Memory]:
    """A memory over an opened store, with its background work, for the block. The store stays open.

    Raises:
        ConfigurationError: a setting cannot be used, or an extra that it needs is not installed.
    """
    clock, files = clock or SystemClock(), settings.database.files
    registry = registry_of(settings, clock)
    try:
        embedder = registry.embedder(settings.vectors)
        switch = partial(read_switch, files.switch)
        calls = CallsFirst(Auditing(OncePerKey(opened), clock.now_ms))
        store = Reporting(Pausing(calls, lambda: switch().check_not_paused(clock.now_ms())))
        vectors = None
        if embedder is not None and not opened.is_read_only:
            vectors = VectorWorker(opened, embedder, settings.vectors, give_way=calls.calls_first)
            store.watch(vectors.nudge)
        snapshots = SnapshotFolder(settings.snapshots)
        orchestrators = _orchestrators(store, settings, clock, snapshots, summarizer, emit)
        memory, owed, consolidator, answers = await _assemble(
            store,
            settings,
            registry=registry,
            clock=clock,
            ids=ids or RandomIds(),
            orchestrators=orchestrators,
            snapshots=snapshots,
            embedder=embedder,
            vectors=vectors,
            switch=switch,
            sign_in=SignIn.over(calls, clock),  # it goes on while the memory is paused
        )
        async with anyio.create_task_group() as tasks:
            if not opened.is_read_only:
                store.watch(owed.nudge)
                tasks.start_soon(owed.run)
                tasks.start_soon(consolidator.run)
                tasks.start_soon(answers.run)
            if vectors is not None:
                tasks.start_soon(vectors.run)
            yield memory
            tasks.cancel_scope.cancel()
        await answers.flush()
    except BaseExceptionGroup as group:
        # The workers raise nothing, so this is what the block raised: pass it on without the group.
        raise group.exceptions[0] from group.exceptions[0].__cause__
    finally:
        with anyio.CancelScope(shield=True):
            await registry.aclose()


async def _open_store(settings: Settings, clock: Clock) -> OpenedStore:
    points = configured_points(settings.vectors, clock.steady_s)
    if settings.database.server is not None:
        if points is not None:
            raise ConfigurationError("PostgreSQL keeps the vectors itself; take models.qdrant out of the settings")
        return await open_on_server(settings.database.server, settings.storage)
    return await SqliteStore.open(settings.database.path, settings.storage, points=points)


def registry_of(settings: Settings, clock: Clock) -> ModelRegistry:
    """The configured model servers. Opens no connection."""
    servers = [
        checked(ModelServer, server, f"servers[{place}].{{}}".format) for place, server in enumerate(settings.servers)
    ]
    return ModelRegistry(servers, clock)


async def _assemble(
    store: Store,
    settings: Settings,
    *,
    registry: ModelRegistry,
    clock: Clock,
    ids: IdSource,
    orchestrators: Orchestrators,
    snapshots: SnapshotFolder,
    embedder: Embedder | None,
    vectors: VectorWorker | None,
    switch: Callable[[], Switch],
    sign_in: SignIn,
) -> tuple[Memory, OwedWorker, Consolidator, AnswerLog]:
    zone = settings.time.zone_of_user(os.environ.get("TZ"))
    counter = token_counter(settings.tokens.counter, safety_factor=settings.tokens.safety_factor)
    judge = SentenceJudge(registry.sentence_model(settings.vectors))
    digester = Digester(judge)
    summarizer = Summarizer(registry, digester, settings.summaries)
    searcher = Searcher(store, settings.search, clock, embedder, zone)
    summaries = SummaryKeeper(
        *(store, summarizer, counter, clock, ids),
        max_per_level=settings.context.summaries,
        window=settings.window,
        limits=settings.limits,
    )
    fence_secret = await store.secret()
    manager = MemoryManager(
        *(store, summaries, summarizer, searcher, counter, clock, ids, judge),
        context=settings.context,
        cache=settings.cache,
        importance=settings.importance,
        limits=settings.limits,
        fence_secret=fence_secret,
        zone=zone,
        owner=settings.owner,
    )
    pins = PinCollector(store, judge, counter, clock, ids, settings.pins)
    observer = Observer(store, orchestrators.cache, settings.graph)
    rewriter = SummaryRewriter(counter, digester)
    cascade = Cascade(store, orchestrators.cache, rewriter, pins, observer, clock)
    spool = Spool(settings.database.files.spool)
    eraser = Eraser(
        store,
        cascade,
        SnapshotEraser(snapshots, store, is_pretty=settings.checkpoint.pretty),
        clock,
        erase_events=spool.erase,
        forget_judged=judge.forget,
        elsewhere=COPIES if settings.database.server else (),
    )
    people = PersonEraser(
        *(store, eraser, snapshots, clock),
        erase_events=lambda owner: spool.erase_all() if owner == settings.owner else 0,
    )
    most, threshold = settings.context.summaries, settings.window.threshold
    consolidator = Consolidator(store, orchestrators, clock, settings.graph)
    owed = OwedWorker(
        *(store, summaries, pins, eraser), max_per_level=most, threshold=threshold, worked_for=consolidator.nudge
    )
    editor = RecordEditor(store, cascade, counter, clock, ids, limits=settings.limits, chunking=settings.chunking)
    answers = AnswerLog(store, clock, settings.usage)
    injector = Injector(searcher, counter, settings.injection, fence_secret=fence_secret, zone=zone)
    services = Services(
        manager=manager,
        recorder=Recorder(store, counter, clock, settings.limits, settings.importance),
        summaries=summaries,
        searcher=searcher,
        injector=injector,
        finalizer=Finalizer(store, summaries, pins, observer, orchestrators, clock),
        orchestrators=orchestrators,
        graphs=AgentGraphs(store, orchestrators, settings.graph),
        owed=owed,
        editor=editor,
        eraser=eraser,
        people=people,
        forgetter=Forgetter(store, editor, eraser, clock),
        files=FileEditor(store, counter, clock, ids, limits=settings.limits),
        historian=Historian(store),
        tokens=Tokens(store, clock),
        sign_in=sign_in,
        answers=answers,
        judge=judge,
        digests=DigestPinner(store, judge, counter, clock, ids),
        ids=ids,
        keep_switch=partial(keep_switch, settings.database.files.switch),
        zone=zone,
        vectors=vectors,
    )
    memory = Memory(Place(store, clock, settings.projects, switch, settings.owner), services)
    return memory, owed, consolidator, answers


def _orchestrators(
    store: Store,
    settings: Settings,
    clock: Clock,
    snapshots: SnapshotFolder,
    summarizer: SleepCycleSummarizer | None,
    emit: Callable[[GraphScope, SleepCycleReport], None] | None,
) -> Orchestrators:
    config = OrchestratorConfig(
        session_graph=settings.session_graph,
        agent_graph=settings.agent_graph,
        graph=settings.graph,
        promotion=settings.promotion,
        checkpoint=settings.checkpoint,
        sleep=settings.sleep,
        run_on_finalize=settings.graph.sleep_on_finalize,
        summarizer=summarizer,
        emit=emit,
    )
    cache = GraphCache(store, lambda scope: new_graph(config, scope, clock))
    return Orchestrators(config, store=store, cache=cache, snapshots=snapshots, clock=clock)


async def reindex(settings: Settings) -> int:
    """Rebuild the text index; the number of records in it."""
    store = await _open_store(settings, SystemClock())
    try:
        return await store.reindex()
    finally:
        await store.close()


def has_embedder(settings: Settings) -> bool:
    """Whether there is an embedder. Loads nothing.

    Raises:
        ConfigurationError: one is configured that cannot be used.
    """
    return registry_of(settings, SystemClock()).embedder(settings.vectors) is not None


async def reindex_vectors(settings: Settings, progress: Callable[[int, int], None], *, is_anew: bool = False) -> None:
    """Make the missing vectors of the configured embedder, or all of them with `is_anew`, and serve them once complete.

    `progress` gets the number of records that have a vector, and of all records.

    Raises:
        ConfigurationError: there is no embedder that can be used.
        ModelError: the embedder failed; the vectors made so far stay, and the next call continues.
        VectorsUnreachable: Qdrant does not answer; the vectors made so far stay, and the next call continues.
    """
    registry = registry_of(settings, SystemClock())
    try:
        embedder = registry.embedder(settings.vectors)
        if embedder is None:
            raise ConfigurationError('there is no embedder; set models.embedder = "auto"')
        store = await _open_store(settings, SystemClock())
        try:
            await VectorWorker(store, embedder, settings.vectors).rebuild(progress, is_anew=is_anew)
        finally:
            with anyio.CancelScope(shield=True):
                await store.close()
    finally:
        with anyio.CancelScope(shield=True):
            await registry.aclose()


def backups(settings: Settings) -> tuple[Path, list[Backup]]:
    """The folder of the backups, and those in it, the newest first."""
    return backup_files.backup_folder(settings.database.path), backup_files.backups(settings.database.path)


def stored_files(settings: Settings) -> StoredFiles:
    """The files of the memory with their sizes. Opens the database for reading."""
    return files_of_database(settings.database.path)


def back_up(settings: Settings, keep: int) -> tuple[Backup, list[Path]]:
    """Write a checked copy of the database while others write, and keep the newest `keep`. The copy, and the files that
    were removed. Raises StorageError."""
    timeout_s = settings.storage.busy_timeout_s
    return backup_files.back_up(settings.database.path, now_ms=SystemClock().now_ms(), keep=keep, timeout_s=timeout_s)


async def restore_backup(settings: Settings, backup: Path) -> tuple[Backup, Path | None]:
    """Put a backup in the place of the database. The backup, and the new name of the replaced database, if any.

    Raises:
        Conflict: a process has the database open; nothing was changed.
        StorageError: the backup is not whole, or a newer release wrote it; nothing was changed.
    """
    return await backup_files.restore_backup(
        settings.database.path, backup, now_ms=SystemClock().now_ms(), timeout_s=settings.storage.busy_timeout_s
    )
