"""What callers send, in the form that a schema asks for. Pure. For MCP's tools and for REST alike.

Models fill in what they could leave out, and hosts write lists and objects as JSON strings. None of that is a reason to
refuse a call whose meaning is clear.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.arguments import mended_json
from kalito_mcp.domain.wording import did_you_mean, shown
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs.json_schemas import REMOVES_BY_NULL, Schema, is_record_field

_ALSO: Final[Mapping[str, Sequence[str]]] = {
    "k": ("limit", "top_k", "max_results"),
    "until": ("as_of", "before"),
    "since": ("after",),
    "text": ("content",),
    "content": ("text",),
}
"""Other names of an argument, which most search tools and chats use."""
_SPEAKERS: Final[Mapping[str, str]] = {
    "human": "user",
    **dict.fromkeys(("ai", "bot", "model"), "assistant"),
    **dict.fromkeys(("tool", "function", "developer"), "system"),
}
"""What other programs call the roles. The words of a tool are those of `system`: its origin is not a person."""
_BY_COMMAS: Final = ("tags",)
"""Lists that people write as one text, with commas."""
_NOT_ALIKE: Final = re.compile(r"[\s_-]+")
_SHOWN: Final = 5
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
"""What may be half of a pair: as an escape, or as bytes."""


def tidied(given: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The arguments, under the names of the schema, in the form that it asks for. It must be `inlined`.

    "", null and an empty list are left out where they may be, and null even where it may not: also in lists, and in
    objects whose fields the schema names, unless null removes something there (`REMOVES_BY_NULL`). A list or an object
    that comes as a JSON string is read. One text or object is a list of one, and tags may be one text with commas.
    Texts in blocks, as chats send them, are one text. A choice may be in any case, and a role may have the name that
    other programs give it. camelCase, and names such as `limit` for `k`, are renamed. Half of a surrogate pair becomes
    U+FFFD. Validation reports what is still wrong.

    Raises:
        InvalidInput: JSON is nested too deeply.
    """
    return _object(mended_json(given), schema)


def unknown_arguments(given: Mapping[str, Any], schema: Schema) -> str | None:
    """Describes unknown argument names; None if all are known."""
    properties = schema["properties"]
    unknown = sorted(set(given) - set(properties))
    faults = [f"unknown argument {shown(name)}{where_it_belongs(name, schema)}" for name in unknown[:_SHOWN]]
    return "; ".join(faults) or None


def where_it_belongs(name: str, schema: Schema) -> str:
    """Which argument was probably meant. A field of a record belongs into the argument that takes fields."""
    properties = schema.get("properties", {})
    free = next((one for one, part in properties.items() if _is_free(part)), None)
    if free is not None and name == "metadata":
        return f"; put what is in it into {free}"
    if free is not None and is_record_field(name):
        return f"; put it into {free}"
    return did_you_mean(name, list(properties))


def mended_body(raw: bytes) -> bytes:
    """JSON with U+FFFD for each half of a surrogate pair: hosts cut texts in the middle of an emoji, and who reads JSON
    strictly refuses all of it. The bytes themselves if nothing was to mend, or the id of a message."""
    if _HALF.search(raw) is None:
        return raw
    try:
        content = json.loads(raw.decode(errors="surrogatepass"))
        mended = mended_json(content)
    except (ValueError, RecursionError, InvalidInput):
        return raw
    has_other_id = isinstance(content, dict) and content.get("id") != mended.get("id")
    return raw if mended is content or has_other_id else json.dumps(mended).encode()


def _object(given: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = schema.get("required", ())
    kept: dict[str, Any] = {}
    for sent, value in given.items():
        name = _name(sent, properties, given)
        if name not in properties:
            kept[name] = value
            continue
        is_written_out = name in _BY_COMMAS and isinstance(value, str) and value.lstrip()[:1] not in ("[", "{")
        read = _value([one.strip() for one in value.split(",")] if is_written_out else value, properties[name])
        bound = "minItems" if read == [] else "minLength"
        accepts_empty = read in ("", []) and any(one.get(bound) == 0 for one in _choices(properties[name]).values())
        may_be_empty = (name in required and read is not None) or accepts_empty or REMOVES_BY_NULL in schema
        if may_be_empty or not _is_empty(read, properties[name]):
            kept[name] = read
    return kept


def _value(value: Any, schema: Schema) -> Any:
    choices = _choices(schema)
    items = choices["array"].get("items", {}) if "array" in choices else {}
    if isinstance(value, str) and choices.keys().isdisjoint({"string", None}):
        value = _parsed(value)
        if isinstance(value, str) and value[:1] not in ("", "[", "{"):
            value = [value] if "string" in _choices(items) else [{"text": value}] if "text" in _fields(items) else value
    if isinstance(value, dict) and "array" in choices and "object" not in choices and _fields(items):
        value = [value]
    if isinstance(value, dict | list) and "string" in choices and choices.keys().isdisjoint({"array", "object"}):
        value = _text_of_blocks(value)
    if isinstance(value, str):
        value = _choice(value, [one for choice in choices.values() for one in choice.get("enum", ())])
    if "array" in choices and isinstance(value, list):
        return [read for one in value for read in (_value(one, items),) if not _is_empty(read, items)]
    if "object" in choices and isinstance(value, dict):
        return _object(value, choices["object"])
    return value


def _fields(schema: Schema) -> Mapping[str, Schema]:
    """The fields of an object of the schema; none if it asks for none."""
    fields: Mapping[str, Schema] = _choices(schema).get("object", {}).get("properties", {})
    return fields


def _text_of_blocks(value: Any) -> Any:
    """The text of `[{"type": "text", "text": ...}, ...]`, or of one such block; the value itself if it is not that."""
    blocks = value if isinstance(value, list) else [value]
    texts = [one["text"] for one in blocks if isinstance(one, dict) and isinstance(one.get("text"), str)]
    return "\n".join(texts) if texts and len(texts) == len(blocks) else value


def _choice(value: str, choices: Sequence[Any]) -> str:
    """The choice that is meant; the value itself if none is, or if any text may be sent."""
    if not choices or value in choices:
        return value
    meant = _folded(value)
    if "assistant" in choices:
        meant = _SPEAKERS.get(meant, meant)
    return next((one for one in choices if isinstance(one, str) and _folded(one) == meant), value)


def _folded(word: str) -> str:
    return _NOT_ALIKE.sub("_", word.strip().casefold())


def _parsed(text: str) -> Any:
    """The list or the object that is written in a string; else the string."""
    try:
        found = json.loads(text) if text.lstrip()[:1] in ("[", "{") else text
    except (ValueError, RecursionError):
        return text
    return mended_json(found)


def _is_empty(value: Any, schema: Schema) -> bool:
    """Whether it says nothing: null, "", or no item of a list."""
    return value is None or value == "" or (value == [] and "array" in _choices(schema))


def _choices(schema: Schema) -> Mapping[str | None, Schema]:
    """By type, the schemas that a value may fit, with what is said of all."""
    of_all = {name: one for name, one in schema.items() if name != "anyOf"}
    choices = [{**of_all, **one} for one in schema.get("anyOf", [{}])]
    return {one.get("type"): one for one in choices}


def _is_free(schema: Schema) -> bool:
    """Whether it takes an object with fields of any name."""
    choice = _choices(schema).get("object")
    return choice is not None and choice.get("additionalProperties", True) is not False


def _name(sent: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The name of the schema for `sessionId` or `limit`, if that one is known and not also given."""
    if sent in known:
        return sent
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in sent)
    meant = next((name for name, others in _ALSO.items() if snake in others and name in known), snake)
    return meant if meant in known and meant not in given else sent
