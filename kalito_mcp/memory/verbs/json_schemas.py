"""JSON schemas of the models, in the forms that readers of them need. Pure."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.records.schemas import field_names, fields_schema

Schema = Mapping[str, Any]
REMOVES_BY_NULL: Final = "x-removes-by-null"
"""In the schema of an object: a field that is null or empty is not the same as one that is left out."""


def is_record_field(name: str) -> bool:
    """Whether records of some type may be given a field of this name."""
    return name in field_names()


def fields_given(*types: RecordType, removes_by_null: bool = False) -> dict[str, Any]:
    """The schema of an object with the fields that a caller may give records of these types."""
    properties: dict[str, Any] = {}
    for one in types:
        properties = {**inlined(fields_schema(one))["properties"], **properties}
    return {"properties": properties, **({REMOVES_BY_NULL: True} if removes_by_null else {})}


def inlined(schema: Schema) -> dict[str, Any]:
    """The schema without $ref and $defs: many hosts do not resolve them."""
    definitions: Schema = schema.get("$defs", {})

    def written_out(part: Any) -> Any:
        if isinstance(part, list):
            return [written_out(one) for one in part]
        if not isinstance(part, Mapping):
            return part
        named = definitions.get(part.get("$ref", "").rpartition("/")[2], {})
        return {name: written_out(one) for name, one in {**named, **part}.items() if name not in ("$ref", "$defs")}

    found: dict[str, Any] = written_out(schema)
    return found


def pruned(schema: Any, dropped: Collection[str] = ("title",), *, is_short: bool = False) -> Any:
    """The schema without these keywords, such as the titles that pydantic derives from names.

    `is_short` also drops the null of optional fields, defaults of null, `minLength` 1, and the properties of objects
    that take any.
    """
    if isinstance(schema, list):
        return [pruned(one, dropped, is_short=is_short) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = _shortened(schema) if is_short else schema
    # A title is a string; a property of that name is a schema.
    return {
        key: pruned(value, dropped, is_short=is_short)
        for key, value in kept.items()
        if key not in dropped or isinstance(value, dict)
    }


def _shortened(schema: dict[str, Any]) -> dict[str, Any]:
    kept = dict(schema)
    choices = [one for one in kept.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) == 1:
        kept = {**choices[0], **{key: value for key, value in kept.items() if key != "anyOf"}}
    if kept.get("default", ...) is None:
        del kept["default"]
    if kept.get("minLength") == 1:
        del kept["minLength"]
    if kept.get("additionalProperties") is True:
        kept.pop("properties", None)
        kept.pop(REMOVES_BY_NULL, None)
    return kept
