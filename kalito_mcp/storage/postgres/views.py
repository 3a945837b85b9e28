"""The readers and writers of one transaction. Implements `ports.store.ReadView` and `WriteTransaction`."""

from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.storage.postgres.archive import ArchiveQueries, ArchiveStatements
from kalito_mcp.storage.postgres.graphs import GraphQueries, GraphStatements
from kalito_mcp.storage.postgres.session_changes import SessionStatements
from kalito_mcp.storage.postgres.sessions import SessionQueries
from kalito_mcp.storage.postgres.transactions import Transaction


class Caches:
    """What a process remembers of committed data, for all transactions."""


class ReadViewOfPostgres:
    """One read transaction."""

    def __init__(self, transaction: Transaction, caches: Caches, policy: StoragePolicy) -> None:
        self.transaction = transaction
        self.archive = ArchiveQueries(transaction)
        self.graphs = GraphQueries(transaction)
        self.sessions = SessionQueries(transaction)


class WriteTransactionOfPostgres:
    """One write transaction."""

    def __init__(self, transaction: Transaction, caches: Caches, policy: StoragePolicy) -> None:
        self.transaction = transaction
        self.archive = ArchiveStatements(transaction)
        self.graphs = GraphStatements(transaction)
        self.sessions = SessionStatements(transaction)
