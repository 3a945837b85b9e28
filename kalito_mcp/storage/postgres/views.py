"""The readers and writers of one transaction. Implements `ports.store.ReadView` and `WriteTransaction`."""

from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.storage.postgres.session_changes import SessionStatements
from kalito_mcp.storage.postgres.sessions import SessionQueries
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.storage.postgres.vectors import VectorQueries, VectorStatements


class Caches:
    """What a process remembers of committed data, for all transactions."""


class ReadViewOfPostgres:
    """One read transaction."""

    def __init__(self, transaction: Transaction, caches: Caches, policy: StoragePolicy) -> None:
        self.transaction = transaction
        self.sessions = SessionQueries(transaction)
        self.vectors = VectorQueries(transaction)


class WriteTransactionOfPostgres:
    """One write transaction."""

    def __init__(self, transaction: Transaction, caches: Caches, policy: StoragePolicy) -> None:
        self.transaction = transaction
        self.sessions = SessionStatements(transaction)
        self.vectors = VectorStatements(transaction)
