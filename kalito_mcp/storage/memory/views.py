"""The readers and writers of one state. Implements `ports.store.ReadView` and `WriteTransaction`."""

from kalito_mcp.storage.memory.access import AccessRead, AccessWritten
from kalito_mcp.storage.memory.archive import ArchiveRead, ArchiveWritten
from kalito_mcp.storage.memory.audit import AuditRead, AuditWritten
from kalito_mcp.storage.memory.conversations import ConversationsRead, ConversationsWritten
from kalito_mcp.storage.memory.graphs import GraphsRead, GraphsWritten
from kalito_mcp.storage.memory.imports import ImportsRead, ImportsWritten
from kalito_mcp.storage.memory.record_changes import RecordsWritten
from kalito_mcp.storage.memory.records import RecordsRead
from kalito_mcp.storage.memory.search import SearchRead
from kalito_mcp.storage.memory.sessions import SessionsRead, SessionsWritten
from kalito_mcp.storage.memory.sign_in import SignInRead, SignInWritten
from kalito_mcp.storage.memory.state import State
from kalito_mcp.storage.memory.vectors import VectorsRead, VectorsWritten


class ViewOfMemory:
    """A committed state."""

    def __init__(self, state: State) -> None:
        self.sessions = SessionsRead(state)
        self.conversations = ConversationsRead(state)
        self.search = SearchRead(state)
        self.graphs = GraphsRead(state)
        self.records = RecordsRead(state)
        self.vectors = VectorsRead(state)
        self.archive = ArchiveRead(state)
        self.imports = ImportsRead(state)
        self.access = AccessRead(state)
        self.sign_in = SignInRead(state)
        self.audit = AuditRead(state)


class TransactionOfMemory:
    """A state that nobody else sees yet."""

    def __init__(self, state: State) -> None:
        self.sessions = SessionsWritten(state)
        self.conversations = ConversationsWritten(state)
        self.graphs = GraphsWritten(state)
        self.records = RecordsWritten(state)
        self.vectors = VectorsWritten(state)
        self.archive = ArchiveWritten(state)
        self.imports = ImportsWritten(state)
        self.access = AccessWritten(state)
        self.sign_in = SignInWritten(state)
        self.audit = AuditWritten(state)
