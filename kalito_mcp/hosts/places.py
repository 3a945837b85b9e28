"""Where a person's files are, on each operating system. It asks nobody but its arguments, and touches no file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class Places:
    """A machine: `platform` as in sys.platform, the home folder and the environment. Paths are of that platform."""

    platform: str
    home: PurePath
    environment: Mapping[str, str]

    @property
    def is_windows(self) -> bool:
        """Whether paths and commands have the form of Windows."""
        return self.platform == "win32"

    def named(self, variable: str, otherwise: PurePath) -> PurePath:
        """The folder that an environment variable names, or else this one."""
        given = self.environment.get(variable)
        return type(self.home)(given) if given else otherwise

    def config(self) -> PurePath:
        """Where programs made for Unix keep settings: $XDG_CONFIG_HOME or ~/.config, on every platform."""
        return self.named("XDG_CONFIG_HOME", self.home / ".config")

    def application_support(self) -> PurePath:
        """Where desktop programs keep settings: %APPDATA%, ~/Library/Application Support, or as `config`."""
        if self.is_windows:
            return self.named("APPDATA", self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.config()

    def shown(self, path: PurePath) -> str:
        """The path as a person writes it: with ~ for the home folder."""
        return str(type(self.home)("~") / path.relative_to(self.home)) if path.is_relative_to(self.home) else str(path)
