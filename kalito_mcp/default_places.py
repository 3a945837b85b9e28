"""Where the database and its configuration are if nobody says otherwise. Standard library alone: a hook looks here, and
its host waits for it."""

import os
import sys
from pathlib import Path


def default_database() -> Path:
    """`memory.db` in the user's data directory: where the operating system keeps such files."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return base / "kalito" / "memory.db"


def default_config() -> Path:
    """`config.toml` in the user's configuration directory; it need not exist."""
    if sys.platform in ("win32", "darwin"):
        return default_database().with_name("config.toml")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kalito" / "config.toml"
