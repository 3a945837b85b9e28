"""The readers and writers of one transaction. Implements `ports.store.ReadView` and `WriteTransaction`."""

import aiosqlite

from kalito_mcp.ports.vector_points import VectorPoints
from kalito_mcp.storage.sqlite.access import AccessQueries, AccessStatements
from kalito_mcp.storage.sqlite.archive import ArchiveQueries, ArchiveStatements
from kalito_mcp.storage.sqlite.audit import AuditQueries, AuditStatements
from kalito_mcp.storage.sqlite.conversations import ConversationQueries, ConversationStatements
from kalito_mcp.storage.sqlite.given import GivenQueries, GivenStatements
from kalito_mcp.storage.sqlite.graphs import GraphQueries, GraphStatements
from kalito_mcp.storage.sqlite.imports import ImportQueries, ImportStatements
from kalito_mcp.storage.sqlite.record_changes import RecordStatements
from kalito_mcp.storage.sqlite.records import RecordQueries
from kalito_mcp.storage.sqlite.search import ColumnCaches, SearchQueries
from kalito_mcp.storage.sqlite.session_changes import SessionStatements
from kalito_mcp.storage.sqlite.sessions import SessionQueries
from kalito_mcp.storage.sqlite.sign_in import SignInQueries, SignInStatements
from kalito_mcp.storage.sqlite.spaces import SpaceQueries, SpaceStatements
from kalito_mcp.storage.sqlite.sweeping import SweepStatements
from kalito_mcp.storage.sqlite.text_index import TextIndexStatements
from kalito_mcp.storage.sqlite.text_rebuild import TextRebuildStatements
from kalito_mcp.storage.sqlite.timeline import TimelineQueries
from kalito_mcp.storage.sqlite.vector_caches import VectorCaches
from kalito_mcp.storage.sqlite.vector_moves import VectorMoveStatements
from kalito_mcp.storage.sqlite.vectors import VectorQueries, VectorStatements


class ReadViewOfSqlite:
    """One read transaction."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        vectors: VectorCaches,
        columns: ColumnCaches,
        points: VectorPoints | None = None,
        *,
        query_s: float = 0.0,
    ) -> None:
        self.sessions = SessionQueries(connection)
        self.conversations = ConversationQueries(connection)
        self.search = SearchQueries(connection, columns, query_s)
        self.graphs = GraphQueries(connection)
        self.records = RecordQueries(connection)
        self.imports = ImportQueries(connection)
        self.vectors = VectorQueries(connection, vectors, points)
        self.archive = ArchiveQueries(connection)
        self.access = AccessQueries(connection)
        self.sign_in = SignInQueries(connection)
        self.audit = AuditQueries(connection)
        self.timeline = TimelineQueries(connection)
        self.given = GivenQueries(connection)
        self.spaces = SpaceQueries(connection)
        self.connection = connection


class WriteTransactionOfSqlite:
    """One write transaction."""

    def __init__(self, connection: aiosqlite.Connection, points: VectorPoints | None = None) -> None:
        self.sessions = SessionStatements(connection)
        self.conversations = ConversationStatements(connection)
        self.text = TextIndexStatements(connection)
        self.text_rebuild = TextRebuildStatements(connection)
        self.sweep = SweepStatements(connection)
        self.graphs = GraphStatements(connection)
        self.records = RecordStatements(connection)
        self.imports = ImportStatements(connection)
        self.vectors = VectorStatements(connection, points)
        self.vector_moves = VectorMoveStatements(connection)
        self.archive = ArchiveStatements(connection)
        self.access = AccessStatements(connection)
        self.sign_in = SignInStatements(connection)
        self.audit = AuditStatements(connection)
        self.given = GivenStatements(connection)
        self.spaces = SpaceStatements(connection)
