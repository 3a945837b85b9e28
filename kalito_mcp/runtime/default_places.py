"""Where data, configuration and cache are if nobody says otherwise. Standard library alone: a hook looks here, and its
host waits for it."""

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """The user's data directory for kalito: where the operating system keeps such files."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return base / "kalito"


def default_config() -> Path:
    """`config.toml` in the user's configuration directory; it need not exist."""
    if sys.platform in ("win32", "darwin"):
        return data_folder() / "config.toml"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kalito" / "config.toml"


def default_cache() -> Path:
    """Where files are kept that can be made again."""
    if sys.platform == "win32":
        return data_folder() / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kalito"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kalito"
