"""A part of a memory: what the place of the memory is, and who does its work."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kalito_mcp.access.sign_in import SignIn
from kalito_mcp.access.tokens import Tokens
from kalito_mcp.contexts.injector import Injector
from kalito_mcp.contexts.manager import MemoryManager
from kalito_mcp.domain.counts import Counts
from kalito_mcp.domain.zone import Zone
from kalito_mcp.editing.editor import RecordEditor
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.editing.files import FileEditor
from kalito_mcp.editing.forgetter import Forgetter
from kalito_mcp.editing.person_eraser import PersonEraser
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.memory.place import Place
from kalito_mcp.orchestrator.agent_graphs import AgentGraphs
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.pins.digest_pins import DigestPinner
from kalito_mcp.ports.clock import IdSource
from kalito_mcp.records.historian import Historian
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.switch import Switch
from kalito_mcp.upkeep.answer_log import AnswerLog
from kalito_mcp.upkeep.finalizer import Finalizer
from kalito_mcp.upkeep.owed_worker import OwedWorker
from kalito_mcp.upkeep.vector_worker import VectorWorker


@dataclass(frozen=True, slots=True)
class Services:
    """The services of an opened memory, for all owners."""

    manager: MemoryManager
    recorder: Recorder
    summaries: SummaryKeeper
    searcher: Searcher
    injector: Injector
    finalizer: Finalizer
    orchestrators: Orchestrators
    graphs: AgentGraphs
    owed: OwedWorker
    editor: RecordEditor
    eraser: Eraser
    people: PersonEraser
    forgetter: Forgetter
    files: FileEditor
    historian: Historian
    tokens: Tokens
    sign_in: SignIn
    answers: AnswerLog
    judge: SentenceJudge
    digests: DigestPinner
    ids: IdSource
    keep_switch: Callable[[Switch], None]
    """Stores whether and where anything is remembered on this machine. Raises ConfigurationError."""
    zone: Zone
    vectors: VectorWorker | None = None
    counts: Counts = field(default_factory=Counts)


class Part:
    """Built by `Memory`. Raises AccessDenied for what is beyond the limits of its place as a whole."""

    def __init__(self, place: Place, services: Services) -> None:
        self.place = place
        self._services = services

    @property
    def _manager(self) -> MemoryManager:
        of_owner = self._services.manager.of_owner(self.place.owner, self.place.limits)
        return of_owner.in_project(self.place.project)
