"""The shapes of the tools' arguments and answers, as hosts show them to models and check them."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from kalito_mcp.memory.verbs.shapes import Hit, PastQuestion, Pin, SessionName, Summary

SessionId = Annotated[
    SessionName | None, Field(description="As record_messages returned it. Leave it out if the host names it.")
]
Project = Annotated[
    str | None, Field(description="Its folder or name, or `personal`; default: the host's.", max_length=1_000)
]
ReadProject = Annotated[
    str | None,
    Field(
        description="Its folder or name: what is of it, and what is personal. `*`: all. Default: the host's, or all.",
        max_length=1_000,
    ),
]


def _plainly(kind: str, description: str) -> WithJsonSchema:
    """List a part without its fields, which no model needs in advance: every host pays tokens for each field."""
    items = {"items": {"type": "object"}} if kind == "array" else {}
    return WithJsonSchema({"type": kind, **items, "description": description})


Listed = Annotated[list[str] | None, WithJsonSchema({"type": "array"})]
"""Ids, or kinds, without a word on their items."""

_UNLISTED: Final = "unlisted"
More = Annotated[Mapping[str, int] | None, WithJsonSchema({_UNLISTED: True})]
"""By field, how many of a long list are left out."""

Unlisted = Annotated[str | None, WithJsonSchema({_UNLISTED: True})]
UnlistedNumber = Annotated[int | None, WithJsonSchema({_UNLISTED: True})]
UnlistedFlag = Annotated[bool | None, WithJsonSchema({_UNLISTED: True})]
UnlistedNames = Annotated[list[str] | None, WithJsonSchema({_UNLISTED: True})]
"""Ids, or kinds of what was removed."""


def _undescribed(schema: dict[str, Any]) -> None:
    """Drop what only costs every host tokens: the docstring, defaults of None, which an answer leaves out, and fields
    that explain themselves where they occur."""
    schema.pop("description", None)
    schema["properties"] = {name: one for name, one in schema["properties"].items() if not one.get(_UNLISTED)}
    for field in schema["properties"].values():
        if "default" in field and field["default"] is None:
            del field["default"]


class Output(BaseModel):
    """Part of a tool's answer. Docstrings are for readers of this file: models see the descriptions of the fields and
    of the tool."""

    model_config = ConfigDict(frozen=True, json_schema_extra=_undescribed)


class RecordedMessages(Output):
    """What record_messages did."""

    session_id: str
    project: str | None = None
    recorded: int
    duplicates: int
    message_ids: list[str]
    total_messages: int
    erased_before: int | None = None
    left_out: int | None = None
    hidden: Listed = None
    brought_back: Listed = None
    redacted: UnlistedNames = None
    continues: Unlisted = None
    note: Unlisted = None


class CreatedPin(Output):
    """What create_pin did."""

    pin: Annotated[
        Pin, _plainly("object", "id, session_id, scope, content, source_message_id, importance_score, pin_type.")
    ]
    known_already: UnlistedFlag = None
    space: Unlisted = None
    shared_as: Unlisted = None
    """The id of the copy in the space."""
    redacted: UnlistedNames = None


LastSummaries = Annotated[list[Summary], _plainly("array", "The last ten of the new ones.")]


class SummarizedSession(Output):
    """What summarize_session did."""

    session_id: str
    summaries_made: int
    summaries: LastSummaries
    summarized_messages: int
    total_messages: int
    pinned: UnlistedNames = None
    closed: UnlistedNames = None
    note: Unlisted = None
    redacted: UnlistedNames = None


class FinalizedSession(Output):
    """What finalize_session did, or would do if `dry_run` is true."""

    session_id: str
    state: Literal["OPEN", "FINALIZING", "FINALIZED"]
    dry_run: bool
    questions_merged: int | None = None
    questions_kept: int | None = None
    answers_kept: int | None = None
    snapshot: str | None = None
    summaries_made: int
    summaries: LastSummaries
    total_messages: int
    total_summaries: int
    total_pins: int


class RecordedFeedback(Output):
    """What record_feedback did."""

    feedback_id: str
    target_id: str
    label: Literal["up", "down", "retry"]
    redacted: UnlistedNames = None


class SearchResult(Output):
    """What search_memory found."""

    hits: Annotated[
        list[Hit],
        _plainly(
            "array",
            "record_id, type, space, session_id, session_title, role, name, text, created_at, score, "
            "origin, revision (if edited), status, due_date, same (ids of records that say the same), valid_until and "
            "superseded_by (no longer true); with `explain` parts of the score, and why.",
        ),
    ]
    past_answers: Annotated[
        list[PastQuestion],
        _plainly("array", "Similar questions: question, answers, message_ids, similarity, up, down, retry."),
    ]
    next_cursor: str | None = None
    note: str | None = None


class RememberedRecords(Output):
    """What remember did. A document has a record for each part: `record_ids` are the first ten. `revision` is that of
    the first."""

    type: Unlisted = None
    id: Annotated[str, Field(description="Names all parts of a document.")]
    project: str | None = None
    records: int
    record_ids: list[str]
    more: More = None
    revision: int
    known_already: UnlistedFlag = None
    origin: Unlisted = None
    """Whose words a note repeats."""
    redacted: UnlistedNames = None


class StillSaying(Output):
    """A pin in somebody's own words, made from a message that was changed or forgotten."""

    record_id: str
    made_from: str
    text: str


StillSays = Annotated[list[StillSaying] | None, WithJsonSchema({"type": "array"})]
"""Pins that still say the old words."""


class ChangedRecords(Output):
    """What update_memory or restore did. `record_ids` are the first ten; `revision` and `text` are those of the first.
    `rewritten` are the summaries that changed with it, `version` is the one that was restored."""

    record_ids: list[str]
    more: More = None
    revision: int
    text: Unlisted = None
    version: UnlistedNumber = None
    rewritten: UnlistedNames = None
    still_says: StillSays = None
    note: Unlisted = None
    redacted: UnlistedNames = None


class TaskList(Output):
    """Tasks, the earliest due first."""

    tasks: list[dict[str, Any]]


class ForgottenRecords(Output):
    """What forget did. Of each list, the first ten."""

    found: Listed = None
    count: int | None = None
    token: str | None = None
    forgotten: Listed = []
    erased: Listed = []
    rewritten: Listed = []
    more: More = None
    still_says: StillSays = None
    note: Unlisted = None
    not_reached: Annotated[dict[str, str], WithJsonSchema({"type": "object"})] = {}
    """Places that may still contain erased words, and what to do there."""


class RecordHistory(Output):
    """A record and its edits."""

    record: dict[str, Any]
    around: Annotated[list[dict[str, Any]] | None, WithJsonSchema({_UNLISTED: True})] = None
    edits: Annotated[list[dict[str, Any]], Field(description="Oldest first; empty with `as_of` or `version`.")]
