"""Folders of any kind of machine, by their paths alone: nothing is looked up. Standard library alone: for hooks."""

from pathlib import PurePath, PurePosixPath, PureWindowsPath


def is_foreign(folder: str) -> bool:
    """Whether this is the whole path of a folder on another kind of machine: one of Windows on Linux or macOS."""
    return not PurePath(folder).is_absolute() and any(
        kind(folder).is_absolute() for kind in (PurePosixPath, PureWindowsPath)
    )


def is_within(folder: str, above: str) -> bool:
    """Whether a folder is this one, or below it. On Windows, `C:\\Work` and `c:\\work` are one folder."""
    if PurePosixPath(above).is_absolute() or not PureWindowsPath(above).is_absolute():
        return folder == above or folder.startswith(above.rstrip("/") + "/")
    return PureWindowsPath(folder).is_relative_to(above)
