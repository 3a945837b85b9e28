"""Which records state facts, and the rows of their statements. Runs no SQL."""

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from kalito_mcp.domain.facts import ANY, Polarity, StatedFact, Statement
from kalito_mcp.domain.records import Origin, RecordType, Role, message_record_id
from kalito_mcp.domain.validation import message_number
from kalito_mcp.facts.statements import HERE, statements
from kalito_mcp.storage.sqlite.failures import intact_rows

SUPERSEDES: Final = "supersedes"
"""The field of a record that names the records which it makes outdated."""

STATED_COLUMNS: Final = """
    f.record_key, r.id, f.subject, f.attribute, f.value, f.polarity, f.first, f.last, f.ordered_at,
    coalesce(r.recorded_at, r.created_at), f.superseded_at, coalesce(n.recorded_at, n.created_at), f.superseded_by,
    n.id, f.conflict_key, c.id,
    CASE WHEN f.superseded_by IS NOT NULL THEN coalesce((
        SELECT g.record_key FROM facts g
        WHERE g.agent_key = f.agent_key AND g.project_key = f.project_key AND g.subject = f.subject
            AND g.attribute = f.attribute AND g.superseded_by IS NULL AND g.polarity = 'is' AND g.is_echo = 0
        ORDER BY g.ordered_at DESC, g.record_key DESC LIMIT 1
    ), f.superseded_by) END
"""
_STATING_TYPES: Final = frozenset({RecordType.MESSAGE, RecordType.PIN, RecordType.DOCUMENT})
_LONGEST_NOTE: Final = 1_000
"""Characters of a document that counts as a note. A longer one is a text about something."""

_SPEAKER: Final = 60


def fact_within(alias: str) -> str:
    """The condition that a fact is of a line within the limits: that of a project may be stated by a personal pin."""
    return f"""(:limit_project IS NULL OR {alias}.project_key = 0 OR {alias}.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :limit_project
    ))"""


def standing(alias: str, fact_is_known: str = "true") -> str:
    """The condition that not all of what a record states has ended, as far as its facts `f` are known."""
    return f"""
        {alias}.key NOT IN (
            SELECT f.record_key FROM facts f
            WHERE f.record_key = {alias}.key AND {fact_is_known}
            GROUP BY f.record_key HAVING min(f.superseded_by IS NOT NULL) = 1
        ) AND NOT EXISTS (SELECT 1 FROM superseded_records n WHERE n.record_key = {alias}.key)
    """


class Source(NamedTuple):
    """What facts are made from."""

    key: int
    agent_key: int
    project_key: int | None
    session_key: int | None
    type: str
    role: str | None
    name: str | None
    text: str
    created_at: int
    recorded_at: int | None
    origin: str | None
    is_internal: int
    deleted_at: int | None
    attributes: str | None

    @property
    def is_stating(self) -> bool:
        """Whether its words count: a user's message, a note or pin of the user's or the assistant's, or a note that
        another memory program kept."""
        if self.deleted_at is not None or self.is_internal or self.type not in _STATING_TYPES:
            return False
        if self.type == RecordType.MESSAGE:
            return self.role == Role.USER and self.origin in (None, Origin.USER)
        if self.type == RecordType.DOCUMENT:
            is_note = self.origin in (None, Origin.USER, Origin.ASSISTANT, Origin.IMPORT)
            return is_note and len(self.text) <= _LONGEST_NOTE
        return self.origin in (None, Origin.USER, Origin.ASSISTANT)

    @property
    def is_echo(self) -> bool:
        """Whether it is a pin of a message, which states the same: it was said then, and is never the current one."""
        return self.said_key != self.key

    @property
    def said_key(self) -> int:
        """The key of the message that a pin was made of; of any other record, its own."""
        if self.type != RecordType.PIN or self.attributes is None:
            return self.key
        message_id = json.loads(self.attributes).get("source_message_id")
        return self.key if message_id is None else message_number(message_id)

    @property
    def is_live(self) -> bool:
        """Whether it was stored when it was said."""
        return self.recorded_at is None and not self.is_echo


class Stated(NamedTuple):
    """What a record states, and the ids of the records that it supersedes as a whole."""

    statements: list[Statement]
    superseded_ids: list[str]


_INSERTED: Final = tuple(
    """key agent_key session_key type id seq end_seq level is_covered role name text importance tokens created_at
    client_key attributes hash origin client recorded_at is_internal is_critical tags caused_by source document_id
    project_key reach""".split()
)
"""The columns of INSERT_RECORD."""

SOURCE_COLUMNS: Final = ", ".join(f"r.{name}" for name in Source._fields)


def source_of(row: Mapping[str, Any]) -> Source:
    """The source of a row by column."""
    return Source(*(row[name] for name in Source._fields))


_PLACES: Final = itemgetter(*(_INSERTED.index(name) for name in Source._fields if name != "deleted_at"))


def source_of_parameters(row: Sequence[Any]) -> Source:
    """The source of the parameters of INSERT_RECORD. A new record is not forgotten."""
    fields = _PLACES(row)
    return Source._make((*fields[:-1], None, fields[-1]))


def read_source(source: Source) -> Stated:
    """Read a record."""
    return Stated(_statements(source), _superseded_ids(source))


def _statements(source: Source) -> list[Statement]:
    """What a record states; nothing if its words do not count. `I` in a pin that names a speaker is that speaker."""
    if not source.is_stating:
        return []
    speaker = source.name if source.type == RecordType.MESSAGE else None
    text = source.text
    shift = 0
    if source.type == RecordType.PIN:
        name, colon, rest = text.partition(": ")
        if colon and len(name) <= _SPEAKER and name.istitle() and len(name.split()) <= 2:  # noqa: PLR2004
            speaker, text, shift = name, rest, len(name) + 2
    found = statements(text, speaker)
    return [
        Statement(
            f"{one.subject} {source.session_key}" if one.subject.startswith(HERE) else one.subject,
            one.attribute,
            one.value,
            one.shown,
            one.start + shift,
            one.end + shift,
            one.polarity,
            one.is_change,
        )
        for one in found
    ]


def _superseded_ids(source: Source) -> list[str]:
    """The ids of the records that this one supersedes as a whole."""
    if source.deleted_at is not None or source.attributes is None or SUPERSEDES not in source.attributes:
        return []
    return list(json.loads(source.attributes).get(SUPERSEDES) or ())


def polarity_of(stored: str) -> Polarity:
    """The polarity of a row. Raises UnreadableRow if it is none."""
    with intact_rows():
        return Polarity(stored)


def fact(row: Sequence[Any]) -> StatedFact:
    """A row of STATED_COLUMNS."""
    key, record_id, subject, attribute, value, polarity, first, last, ordered_at, known_from, *ended = row
    superseded_at, known_until, superseded_by, superseding_id, conflict_key, conflict_id, current_key = ended
    return StatedFact(
        record_key=key,
        record_id=record_id or message_record_id(key),
        subject=subject,
        attribute=attribute,
        value=value,
        polarity=polarity_of(polarity),
        start=first,
        end=last,
        valid_from=ordered_at,
        known_from=known_from,
        valid_until=superseded_at,
        known_until=known_until,
        superseded_by=None if superseded_by is None else superseding_id or message_record_id(superseded_by),
        superseded_by_key=superseded_by,
        current_key=current_key,
        conflicts_with=None if conflict_key is None else conflict_id or message_record_id(conflict_key),
    )


def whole_record(row: Sequence[Any]) -> StatedFact:
    """A row of SELECT_SUPERSEDED as a fact of the record's whole text."""
    key, record_id, length, created_at, known_from, by_key, by_id, ordered_at, known_until = row
    return StatedFact(
        record_key=key,
        record_id=record_id or message_record_id(key),
        subject=ANY,
        attribute=ANY,
        value=ANY,
        polarity=Polarity.IS,
        start=0,
        end=length,
        valid_from=created_at,
        known_from=known_from,
        valid_until=ordered_at,
        known_until=known_until,
        superseded_by=by_id or message_record_id(by_key),
        superseded_by_key=by_key,
        current_key=by_key,
    )
