"""A record's content as the fields that an archive has of it (see `domain.archive`), and back. Pure.

SQLite's columns are the same. A record's `content` is flat. What is indexed, shown or counted has a field of its own;
all else is in `attributes`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.memory_records import DELETED_AT
from kalito_mcp.domain.records import Origin, Reach, RecordType, Role, Visibility, origin_of_role

DEFAULT_IMPORTANCE: Final = 0.5
_COMMON: Final = frozenset(
    {"text", "importance_score", "tags", "critical", "visibility", "caused_by", "project", "scope", DELETED_AT}
)
_DOCUMENT: Final = {"seq": "chunk_index", "source": "source", "document_id": "document_id"}
_SUMMARY: Final = {"level": "level", "seq": "start_seq", "end_seq": "end_seq"}
_ORIGINS: Final = {str(origin): origin for origin in Origin}
_ORIGINS_OF_ROLES: Final = {str(role): origin_of_role(role) for role in Role}


def content_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that may be edited. Fields without a value are left out.

    `cause` is the id of the cause, and `project` the id of the project.

    Raises:
        LookupError, TypeError, ValueError: a field is missing, or cannot be of a record.
    """
    kind = RecordType(fields["type"])
    content: dict[str, Any] = {
        **({} if fields["attributes"] is None else json.loads(fields["attributes"])),
        "text": fields["text"],
        "importance_score": fields["importance"],
        "tags": None if fields["tags"] is None else json.loads(fields["tags"]),
        "critical": True if fields["is_critical"] else None,
        "visibility": str(Visibility.INTERNAL) if fields["is_internal"] else None,
        "caused_by": fields["cause"],
        "project": None if fields["session_key"] is not None else fields["project"],
        "scope": fields["reach"],
        DELETED_AT: fields["deleted_at"],
        _name_of(kind): fields["name"],
        **{name: fields[field] for field, name in _places_of(kind).items()},
    }
    return {name: value for name, value in content.items() if value is not None}


def fields_of(kind: RecordType, content: Mapping[str, Any], *, has_project: bool) -> dict[str, Any]:
    """The content as fields, without the project. A thought is always internal."""
    places = _places_of(kind)
    own = {_name_of(kind), *_COMMON, *places.values()}
    attributes = {name: value for name, value in content.items() if name not in own and value is not None}
    is_internal = kind is RecordType.THOUGHT or content.get("visibility") == Visibility.INTERNAL
    return {
        **{field: content.get(name) for field, name in places.items()},
        "name": content.get(_name_of(kind)),
        "text": content["text"],
        "importance": float(content.get("importance_score", DEFAULT_IMPORTANCE)) + 0.0,  # SQLite has no -0.0
        "attributes": packed(attributes) if attributes else None,
        "deleted_at": content.get(DELETED_AT),
        "is_internal": int(is_internal),
        "is_critical": int(bool(content.get("critical"))),
        "tags": packed_list(content.get("tags")),
        "cause": content.get("caused_by"),
        "reach": stored_reach(content.get("scope"), has_project=has_project),
    }


def _name_of(kind: RecordType) -> str:
    """The field of the content that is the speaker, or the title."""
    return "title" if kind is RecordType.DOCUMENT else "name"


def _places_of(kind: RecordType) -> Mapping[str, str]:
    """The fields of the content that say where in its source or session it is, by the archive's names."""
    return {RecordType.DOCUMENT: _DOCUMENT, RecordType.SUMMARY: _SUMMARY}.get(kind, {})


def origin_of(role: str | None, origin: str | None) -> Origin:
    """The origin of a record, from its fields."""
    if origin is not None:
        return _ORIGINS[origin]
    return Origin.ASSISTANT if role is None else _ORIGINS_OF_ROLES[role]


def stored_origin(role: str | None, origin: Origin) -> str | None:
    """The field of the origin: None if the role implies the origin."""
    return None if origin is origin_of(role, None) else origin.value


def stored_reach(reach: str | None, *, has_project: bool) -> str | None:
    """The field of the reach: None for a record of its session, or of a project if it has none."""
    is_session = reach in (None, Reach.SESSION) or (reach == Reach.PROJECT and not has_project)
    return None if is_session else str(reach)


def packed(fields: Mapping[str, Any]) -> str:
    """The fields as JSON, without those that are None."""
    kept = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def packed_list(values: Sequence[str] | None) -> str | None:
    """A list as JSON; None if it is empty."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":")) if values else None
