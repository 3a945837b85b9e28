"""The shapes of what all faces are sent and answer alike. Fields are named as the specification names them."""

from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)
from pydantic_core import PydanticCustomError

from kalito_mcp.domain.search import MOST_ALSO
from kalito_mcp.domain.time import moment_as_text
from kalito_mcp.domain.validation import checked_name
from kalito_mcp.domain.wording import camel_case
from kalito_mcp.errors import InvalidInput

RoleName = Literal["user", "assistant", "system"]
TypeName = Literal["message", "thought", "document", "task", "pin", "summary"]
FoundTypeName = Literal[TypeName, "note"]
OriginName = Literal["user", "assistant", "tool", "document", "import"]
ReachName = Literal["session", "project", "person"]
KindName = Literal["rule", "decision", "fact", "open", "outcome", "plan", "change"]
PinTypeName = Literal["manual", "auto", "code", "concept", "system"]
Redacted = Annotated[list[str] | None, Field(description="What was removed and not stored: kinds of secrets.")]

KnownAlready = Annotated[Literal[True] | None, Field(description="Nothing was stored: this says the same.")]


REFUSED: Final = "refused"
"""The type of an error whose message is a whole sentence."""


def _session_name(name: str) -> str:
    try:
        return checked_name(name, "session_id")
    except InvalidInput as error:
        raise PydanticCustomError(REFUSED, "{words}", {"words": str(error)}) from None


SessionName = Annotated[
    str,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": r"^[^\x00-\x1f\x7f]+$"}),
    AfterValidator(_session_name),
]
AgentName = Annotated[
    str | None,
    Field(description="Which agent's memory; default: the session's, or `default`.", min_length=1, max_length=200),
]
RecordName = Annotated[str, Field(min_length=1, max_length=200)]
RecordId = Annotated[RecordName, Field(description="As returned: `msg_45`, `task_…`.")]
MessageName = Annotated[
    str,
    Field(description="As returned: `msg_45`.", min_length=1, max_length=40),
    BeforeValidator(lambda given: str(given) if type(given) is int else given),
]
"""The id of a message, or its number."""
Confirmed = Annotated[
    bool, Field(description="The user has confirmed it. Needed for the words of a tool or a document.")
]
ClientKey = Annotated[
    str | None,
    Field(description="Your own id for it; a resend is not stored twice.", min_length=1, max_length=200),
]
MomentText = Annotated[
    str,
    Field(min_length=1, max_length=100),
    BeforeValidator(moment_as_text),
]
"""A moment as a text, or as a number of seconds or milliseconds since 1970 (`domain.time`)."""
Version = Annotated[int, Field(ge=1, le=1_000_000_000)]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Also = Annotated[
    list[str] | None,
    Field(
        description="Always send it: 2 to 4 other ways the user may have said it, in their words, names and "
        'languages, one a sentence that answers. For "What did Kirsty charge?": '
        '`["Kirsty charged me ... pounds", "vet bill for the dog", "paid, receipt, kennel cough"]`.',
        json_schema_extra={"maxItems": MOST_ALSO},
    ),
]
"""The search takes the first four. A fifth is no reason to refuse a call."""


class Input(BaseModel):
    """What is sent. A field may be named in snake_case or in camelCase."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(name, camel_case(name))),
    )


class Repeatable(Input):
    """What may be sent again without effect. Some faces take the caller's own id for it."""

    @property
    def own_key(self) -> str | None:
        """The caller's own id for it."""
        return None


class Output(BaseModel):
    """A part of an answer. Fields that are None are left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pin(Output):
    """The specification's SemanticPin. `scope` says which contexts show it."""

    id: str
    session_id: str | None = None
    content: str
    scope: ReachName
    source_message_id: str | None = None
    importance_score: float
    pin_type: PinTypeName
    created_at: str
    redacted: Redacted = None
    known_already: KnownAlready = None


class Summary(Output):
    """The specification's ConversationSummary, of the messages `first_message` to `last_message`, counted from 1."""

    id: str
    session_id: str
    summary: str
    message_count: int
    start_message_id: str
    end_message_id: str
    importance_score: float
    created_at: str
    level: int
    first_message: int
    last_message: int
    method: Literal["caller", "model", "extractive"]
    model_id: str | None = None
    note: Annotated[str | None, Field(description="Said once, if a model was asked in vain.")] = None
    redacted: Redacted = None


class TurnOfHit(Output):
    """A turn just before or after a hit, shown with it. A long text is cut."""

    record_id: str
    role: RoleName | None = None
    name: str | None = None
    text: str


class Hit(Output):
    """A record that was found. `parts` and `why` explain its score, if that was asked for."""

    record_id: str
    type: TypeName
    space: str | None = None
    shared_by: str | None = None
    project: str | None = None
    session_id: str | None = None
    session_title: str | None = None
    role: RoleName | None = None
    name: str | None = None
    text: str
    created_at: str
    score: float
    client_key: str | None = None
    origin: OriginName
    revision: Annotated[int | None, Field(description="Left out over MCP if it is 1.")] = None
    status: str | None = None
    due_date: str | None = None
    same: list[str] | None = None
    parts: dict[str, float] | None = None
    why: str | None = None
    turns: list[TurnOfHit] | None = None
    valid_until: str | None = None
    superseded_by: str | None = None


class PastAnswer(Output):
    """One answer. `feedback` is a sum: up +1, down -1, retry -0.5."""

    text: str
    message_ids: list[str]
    given_at: str
    feedback: float


class PastQuestion(Output):
    """A similar question that was asked before. `up`, `down` and `retry` count the feedback on it and its answers."""

    question: str
    answers: list[PastAnswer]
    message_ids: list[str]
    similarity: float
    up: int
    down: int
    retry: int


class SleepCluster(Output):
    """Similar questions that became one."""

    anchor_id: str
    merged_node_ids: list[str]
    summary: str
    before_rank: float
    after_rank: float
    freed_nodes: int


class Sleep(Output):
    """What the sleep cycle of a session's graph merged."""

    trigger: Literal["session-finalize", "eviction", "interval"]
    inspected: int
    freed_capacity: int
    clusters: Annotated[list[SleepCluster], Field(description="The largest, at most ten.", max_length=10)]
    clusters_in_all: int
    timestamp: str


class Promoted(Output):
    """What went into the agent's long-term graph. `answers` and `entities` count links to them."""

    questions: int
    merged_with_known: int
    answers: int
    entities: int
