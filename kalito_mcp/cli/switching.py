"""`kalito-mcp pause`, `resume` and `exclude`: when and where nothing is remembered."""

import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from kalito_mcp.cli.options import reader_settings_of, with_settings
from kalito_mcp.cli.terminal import tell
from kalito_mcp.domain.folders import is_foreign
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.projects import spelled
from kalito_mcp.switch import FOR_EVER, Switch, keep_switch, read_switch

_DURATION: Final = re.compile(r"(\d{1,4})\s*([mhd])", re.IGNORECASE)
_SECONDS: Final = {"m": 60, "h": 3_600, "d": 86_400}


@click.command(name="pause")
@click.option("--for", "duration", metavar="TIME", help="Such as 30m, 2h or 1d. Without it: until `resume`.")
@with_settings
def pause(database: str | None, config: Path | None, duration: str | None) -> None:
    """Remember nothing for a while. What is remembered can still be found.

    It holds for every host and every conversation, at once.
    """
    until = FOR_EVER
    if duration is not None:
        found = _DURATION.fullmatch(duration.strip())
        if found is None or not int(found[1]):
            raise click.BadParameter("write a number and m, h or d, such as 30m", param_hint="--for")
        until = time.time_ns() // 1_000_000 + int(found[1]) * _SECONDS[found[2].lower()] * 1_000
    file = reader_settings_of(database, config).database.files.switch
    switch = replace(read_switch(file), paused_until=until)
    keep_switch(file, switch)
    tell([paused_line(switch)])


@click.command(name="resume")
@with_settings
def resume(database: str | None, config: Path | None) -> None:
    """End a pause."""
    file = reader_settings_of(database, config).database.files.switch
    try:
        before = read_switch(file)
    except ConfigurationError:
        before = Switch(FOR_EVER)
        tell(["the list of excluded folders could not be read and is empty now"])
    keep_switch(file, replace(before, paused_until=None))
    is_paused = before.is_paused(time.time_ns() // 1_000_000)
    tell(["remembering again" if is_paused else "was not paused"])


@click.command(name="exclude")
@click.argument("folders", metavar="[FOLDER]...", nargs=-1)
@click.option("--remove", "is_removed", is_flag=True, help="Remember again what is said in these folders.")
@with_settings
def exclude(database: str | None, config: Path | None, folders: tuple[str, ...], is_removed: bool) -> None:
    """Remember nothing in these folders and below. Without a folder: list them.

    What is remembered of them already stays; `kalito-mcp forget` takes it away.
    """
    file = reader_settings_of(database, config).database.files.switch
    before = read_switch(file)
    spellings = [spelled(one) for one in folders]
    named = [one if is_foreign(one) else os.path.realpath(Path(one).expanduser()) for one in spellings]
    unknown = [one for one in named if one not in before.excluded]
    if is_removed and unknown:
        raise click.UsageError(f"{unknown[0]} is not excluded; `kalito-mcp exclude` lists what is")
    if named:
        kept = [one for one in before.excluded if one not in named]
        keep_switch(file, replace(before, excluded=tuple(kept if is_removed else [*kept, *dict.fromkeys(named)])))
    here = () if is_removed else (one for one in named if not is_foreign(one))
    missing = [one for one in here if not Path(one).is_dir()]
    notes = [f"there is no folder {one} yet: if that is a slip, `exclude --remove` takes it back" for one in missing]
    tell([*(read_switch(file).excluded or ["no folder is excluded"]), *notes])


def paused_line(switch: Switch) -> str:
    """A sentence on what a pause means, and how to end it."""
    return f"{switch.pause()}: nothing is remembered; `kalito-mcp resume` ends it"
