"""The readers and writers of one transaction. Implements `ports.store.ReadView` and `WriteTransaction`."""

import aiosqlite

from kalito_mcp.ports.vector_points import VectorPoints
from kalito_mcp.storage.access import AccessQueries, AccessStatements
from kalito_mcp.storage.audit import AuditQueries
from kalito_mcp.storage.conversations import ConversationQueries, ConversationStatements
from kalito_mcp.storage.given import GivenQueries, GivenStatements
from kalito_mcp.storage.graphs import GraphQueries, GraphStatements
from kalito_mcp.storage.imports import ImportQueries, ImportStatements
from kalito_mcp.storage.record_changes import RecordStatements
from kalito_mcp.storage.records import RecordQueries
from kalito_mcp.storage.sign_in import SignInQueries, SignInStatements
from kalito_mcp.storage.spaces import SpaceQueries, SpaceStatements
from kalito_mcp.storage.sqlite import statements
from kalito_mcp.storage.sqlite.archive import ArchiveQueries, ArchiveStatements
from kalito_mcp.storage.sqlite.audit import AuditStatements
from kalito_mcp.storage.sqlite.people import PeopleQueries, PeopleStatements
from kalito_mcp.storage.sqlite.queries import Transaction
from kalito_mcp.storage.sqlite.search import ColumnCaches, SearchQueries
from kalito_mcp.storage.sqlite.session_changes import SessionStatements
from kalito_mcp.storage.sqlite.sessions import SessionQueries
from kalito_mcp.storage.sqlite.sweeping import SweepStatements
from kalito_mcp.storage.sqlite.text_index import TextIndexStatements
from kalito_mcp.storage.sqlite.text_rebuild import TextRebuildStatements
from kalito_mcp.storage.sqlite.transfer import TransferQueries, TransferStatements
from kalito_mcp.storage.sqlite.vector_caches import VectorCaches
from kalito_mcp.storage.sqlite.vector_moves import VectorMoveStatements
from kalito_mcp.storage.sqlite.vectors import VectorQueries, VectorStatements
from kalito_mcp.storage.timeline import TimelineQueries


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
        transaction = Transaction(connection, statements)
        self.sessions = SessionQueries(transaction)
        self.conversations = ConversationQueries(transaction)
        self.search = SearchQueries(connection, columns, query_s)
        self.graphs = GraphQueries(transaction)
        self.records = RecordQueries(transaction)
        self.imports = ImportQueries(transaction)
        self.vectors = VectorQueries(connection, vectors, points)
        self.archive = ArchiveQueries(connection)
        self.access = AccessQueries(transaction)
        self.sign_in = SignInQueries(transaction)
        self.audit = AuditQueries(transaction)
        self.transfer = TransferQueries(connection)
        self.timeline = TimelineQueries(transaction)
        self.given = GivenQueries(transaction)
        self.people = PeopleQueries(connection)
        self.spaces = SpaceQueries(transaction)
        self.connection = connection


class WriteTransactionOfSqlite:
    """One write transaction."""

    def __init__(self, connection: aiosqlite.Connection, points: VectorPoints | None = None) -> None:
        transaction = Transaction(connection, statements)
        self.sessions = SessionStatements(transaction)
        self.conversations = ConversationStatements(transaction)
        self.text = TextIndexStatements(transaction)
        self.text_rebuild = TextRebuildStatements(connection)
        self.sweep = SweepStatements(connection)
        self.graphs = GraphStatements(transaction)
        self.records = RecordStatements(transaction)
        self.imports = ImportStatements(transaction)
        self.vectors = VectorStatements(connection, points)
        self.vector_moves = VectorMoveStatements(connection)
        self.archive = ArchiveStatements(connection)
        self.access = AccessStatements(transaction)
        self.sign_in = SignInStatements(transaction)
        self.audit = AuditStatements(transaction)
        self.transfer = TransferStatements(connection)
        self.given = GivenStatements(transaction)
        self.people = PeopleStatements(connection)
        self.spaces = SpaceStatements(transaction)
