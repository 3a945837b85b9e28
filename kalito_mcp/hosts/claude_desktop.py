"""Claude Desktop. It has no hooks."""

from pathlib import PurePath
from typing import Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import EntryFile, Host, standard_entry
from kalito_mcp.hosts.places import Places


def _folder(places: Places) -> PurePath:
    return places.application_support() / "Claude"


def _servers(places: Places) -> PurePath:
    return _folder(places) / "claude_desktop_config.json"


HOST: Final = Host(
    key="claude-desktop",
    name="Claude Desktop",
    signs=(_folder,),
    entry=EntryFile(_servers, jsonc, ("mcpServers",), standard_entry),
    confirm=("quit it and start it again; Settings, Developer lists kalito",),
)
