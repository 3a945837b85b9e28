"""`kalito-mcp passphrase`: what a person signs in with when a program asks for their memory."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kalito_mcp.cli.options import settings_of, with_settings
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.terminal import tell
from kalito_mcp.domain.access import HOST
from kalito_mcp.errors import InvalidInput

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_LONGEST: Final = 4_096


@click.command(name="passphrase")
@click.option("--owner", help="Which owner's memory. Default: the setting `owner`.")
@click.option(
    "--sign-out", is_flag=True, help="Also revoke all programs that this owner let in, and sign browsers out."
)
@with_settings
def command(database: str | None, config: Path | None, owner: str | None, sign_out: bool) -> None:
    """Set the passphrase for the sign-in page, by which programs such as claude.ai are let in over HTTP.

    It is asked for twice and not shown. Without a terminal, it is the first line of standard input.
    """
    settings = settings_of(database, config)
    passphrase = _passphrase()

    async def set_it(memory: "Memory") -> Sequence[str]:
        theirs = memory.of_owner(owner or memory.place.owner)
        revoked = await theirs.access.sign_in.passphrases.set(theirs.place.owner, passphrase, sign_out=sign_out)
        await theirs.access.log("passphrase", principal=replace(HOST, owner=theirs.place.owner))
        return revoked

    revoked = with_memory(settings, set_it)
    tell([f"the passphrase of {owner or settings.owner} is set"])
    if sign_out:
        tell([f"signed out: {', '.join(revoked)}" if revoked else "no program was signed in"])


def _passphrase() -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt("Passphrase", hide_input=True, confirmation_prompt="Once more", err=True)
        return typed
    try:
        return sys.stdin.readline(_LONGEST).removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise InvalidInput("standard input is not UTF-8; nothing was changed. Send it as UTF-8") from None
