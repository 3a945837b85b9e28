"""Whether our plugin of a host is enabled: the host's own file says so."""

from pathlib import Path
from typing import Final

from kalito_mcp.hosts.documents import value_at
from kalito_mcp.hosts.facts import SERVER_NAME, Host
from kalito_mcp.hosts.files import read_document
from kalito_mcp.hosts.places import Places

TWICE: Final = "its plugin is enabled, too, and with both, replies are recorded twice"
NOT_ON_PATH: Final = "is not on the PATH, where the plugin looks for it; install it with pipx or `uv tool install`"


def enabling_file(host: Host, places: Places) -> Path | None:
    """The file that enables our plugin; None if it is not enabled, or if this host has no plugin.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    if host.plugin is None:
        return None
    path = Path(host.plugin.where(places))
    switches = value_at(read_document(path, host.plugin.writer), host.plugin.switches)
    enabled = [name for name, is_on in switches.items() if is_on] if isinstance(switches, dict) else []
    return path if any(name.partition("@")[0] == SERVER_NAME for name in enabled) else None
