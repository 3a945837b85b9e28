"""The readers and writers of one transaction. Implements `ports.store.ReadView` and `WriteTransaction`."""

from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.storage.access import AccessQueries, AccessStatements
from kalito_mcp.storage.audit import AuditQueries
from kalito_mcp.storage.conversations import ConversationQueries, ConversationStatements
from kalito_mcp.storage.given import GivenQueries, GivenStatements
from kalito_mcp.storage.graphs import GraphQueries, GraphStatements
from kalito_mcp.storage.imports import ImportQueries, ImportStatements
from kalito_mcp.storage.postgres.archive import ArchiveQueries, ArchiveStatements
from kalito_mcp.storage.postgres.audit import AuditStatements
from kalito_mcp.storage.postgres.people import PeopleQueries, PeopleStatements
from kalito_mcp.storage.postgres.search import ColumnCaches, SearchQueries
from kalito_mcp.storage.postgres.seen_records import RecordQueriesOfView, SeenRecords
from kalito_mcp.storage.postgres.session_changes import SessionStatements
from kalito_mcp.storage.postgres.sessions import SessionQueries
from kalito_mcp.storage.postgres.sign_in import SignInStatements
from kalito_mcp.storage.postgres.spaces import SpaceQueries
from kalito_mcp.storage.postgres.text_index import TextIndexStatements
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.storage.postgres.transfer import TransferQueries, TransferStatements
from kalito_mcp.storage.postgres.vectors import VectorQueries, VectorStatements
from kalito_mcp.storage.record_changes import RecordStatements
from kalito_mcp.storage.sign_in import SignInQueries
from kalito_mcp.storage.spaces import SpaceStatements
from kalito_mcp.storage.timeline import TimelineQueries


class Caches:
    """What a process remembers of committed data, for all transactions."""

    def __init__(self) -> None:
        self.columns = ColumnCaches()


class ReadViewOfPostgres:
    """One read transaction."""

    def __init__(self, transaction: Transaction, caches: Caches, policy: StoragePolicy) -> None:
        self.transaction = transaction
        self.archive = ArchiveQueries(transaction)
        self.graphs = GraphQueries(transaction)
        self.sessions = SessionQueries(transaction)
        self.conversations = ConversationQueries(transaction)
        self.imports = ImportQueries(transaction)
        self.given = GivenQueries(transaction)
        self.people = PeopleQueries(transaction)
        self.spaces = SpaceQueries(transaction)
        self.timeline = TimelineQueries(transaction)
        seen = SeenRecords()
        self.records = RecordQueriesOfView(transaction, seen)
        self.access = AccessQueries(transaction)
        self.sign_in = SignInQueries(transaction)
        self.audit = AuditQueries(transaction)
        self.transfer = TransferQueries(transaction)
        self.search = SearchQueries(transaction, caches.columns, seen, policy.query_s)
        self.vectors = VectorQueries(transaction)


class WriteTransactionOfPostgres:
    """One write transaction."""

    def __init__(self, transaction: Transaction, caches: Caches, policy: StoragePolicy) -> None:
        self.transaction = transaction
        self.archive = ArchiveStatements(transaction)
        self.graphs = GraphStatements(transaction)
        self.sessions = SessionStatements(transaction)
        self.conversations = ConversationStatements(transaction)
        self.imports = ImportStatements(transaction)
        self.given = GivenStatements(transaction)
        self.people = PeopleStatements(transaction)
        self.spaces = SpaceStatements(transaction)
        self.records = RecordStatements(transaction)
        self.access = AccessStatements(transaction)
        self.sign_in = SignInStatements(transaction)
        self.audit = AuditStatements(transaction)
        self.transfer = TransferStatements(transaction)
        self.text = TextIndexStatements(transaction)
        self.vectors = VectorStatements(transaction)
