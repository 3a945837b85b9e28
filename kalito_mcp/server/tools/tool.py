"""Turns a function and the model of its arguments into a tool of the SDK."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, get_type_hints

from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.types import ToolAnnotations
from pydantic import BaseModel, WithJsonSchema

from kalito_mcp.domain.access import Permission
from kalito_mcp.memory.verbs.json_schemas import Schema, inlined, pruned

_UNLISTED_KEYWORDS: Final = ("title", "pattern", "maxLength")
"""Patterns and longest lengths are checked in the call. Servers of local models make a grammar of the schemas, and
refuse every tool if they cannot."""
_SENT: Final = "sent"


@cache
def schema_of(model: type[BaseModel]) -> Schema:
    """The schema of a tool's arguments with all that the listing of the tools leaves out."""
    return inlined(model.model_json_schema())


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool. `function` is called with the context and with `sent`, the model of its arguments. Its docstring is
    what models read of it, and its name the tool's.

    Models find it by its `hint`; without a hint, hosts always load it. `destroys` and `is_idempotent` are for those
    that may write. `is_text`: its answer has no structured form. `is_of_host`: the host calls it, not its model.
    """

    function: Callable[..., Any]
    title: str
    permission: Permission
    hint: str | None = None
    destroys: bool = False
    is_idempotent: bool = False
    is_text: bool = False
    is_of_host: bool = False

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.function.__name__

    @cache  # noqa: B019 - rows live as long as the process
    def as_sdk_tool(self) -> Tool:
        """The tool as the SDK serves it, the same in every server of the process: all of them take 50 to 90 ms."""
        is_read = self.permission is Permission.READ
        meta: dict[str, Any] = {"anthropic/searchHint": self.hint} if self.hint else {"anthropic/alwaysLoad": True}
        tool = Tool.from_function(
            self.function,
            title=self.title,
            description=" ".join((inspect.getdoc(self.function) or "").split()),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=is_read,
                destructive_hint=self.destroys,
                idempotent_hint=self.is_idempotent or is_read,
                open_world_hint=False,
            ),
            meta={"ui": {"visibility": ["app"]}} if self.is_of_host else meta,
            structured_output=False if self.is_text else None,
        )
        model: type[BaseModel] = get_type_hints(self.function)[_SENT]
        tool.parameters = pruned(schema_of(model), _UNLISTED_KEYWORDS, is_short=True)
        tool.parameters.pop("description", None)
        found = tool.fn_metadata
        tool.fn_metadata = _Arguments(
            arg_model=model,
            output_model=found.output_model,
            output_schema=pruned(found.output_schema, _UNLISTED_KEYWORDS, is_short=True),
        )
        return tool


class _Arguments(FuncMetadata):
    """The SDK's parser of arguments, for a function that takes all of them as one model."""

    arg_model: Annotated[type[BaseModel], WithJsonSchema(None)]  # type: ignore[assignment]

    def validate_arguments(self, arguments_to_validate: dict[str, Any]) -> dict[str, Any]:
        return {_SENT: self.arg_model.model_validate(arguments_to_validate)}
