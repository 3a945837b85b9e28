"""Cline, the extension of VS Code and its command line. Only the entry: file hooks cannot add to a prompt."""

from pathlib import PurePath
from typing import Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import EntryFile, Host, standard_entry
from kalito_mcp.hosts.places import Places


def _folder(places: Places) -> PurePath:
    return places.named("CLINE_DIR", places.home / ".cline")


def _servers(places: Places) -> PurePath:
    return _folder(places) / "data" / "settings" / "cline_mcp_settings.json"


HOST: Final = Host(
    key="cline",
    name="Cline",
    signs=(_folder,),
    programs=("cline",),
    entry=EntryFile(_servers, jsonc, ("mcpServers",), standard_entry),
    confirm=("see under MCP servers, Configure that kalito is on",),
)
