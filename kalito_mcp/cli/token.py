"""`kalito-mcp token`: who may connect over HTTP."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kalito_mcp.cli.options import (
    Commands,
    every_project,
    settings_of,
    settings_of_existing,
    settings_to_read,
    with_settings,
)
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.terminal import tell
from kalito_mcp.domain.access import Permission, Token, TokenKind
from kalito_mcp.domain.scope import Limits
from kalito_mcp.domain.sign_in import Grant
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.zone import DAY_MS

if TYPE_CHECKING:
    from kalito_mcp.access.tokens import NewToken
    from kalito_mcp.memory import Memory

with_permission = click.option(
    "--permission",
    type=click.Choice([*map(str, Permission)]),
    default=str(Permission.WRITE),
    show_default=True,
    help="read: find and show. write: also record, correct and forget. admin: also erase, export and manage tokens.",
)
with_lifetime = click.option(
    "--days", type=click.IntRange(1, 36_500), help="How long it may be used. Default: until it is revoked."
)


def lifetime_ms(days: int | None) -> int | None:
    """What `with_lifetime` gives, in milliseconds."""
    return None if days is None else days * DAY_MS


@click.group(name="token", cls=Commands)
def command() -> None:
    """Make, list and revoke the tokens of programs that connect over HTTP.

    A program sends its token as `Authorization: Bearer kal_...` with every request.
    """


@command.command()
@click.argument("name")
@with_permission
@click.option("--owner", help="Which owner's memory. Default: the setting `owner`.")
@click.option("--agent", help="Only this agent's.")
@click.option("--project", callback=every_project, help="Only what is of this project, and what is personal.")
@with_lifetime
@with_settings
def create(
    database: str | None,
    config: Path | None,
    name: str,
    permission: str,
    owner: str | None,
    agent: str | None,
    project: str | None,
    days: int | None,
) -> None:
    """Make a token for the program NAME, and show it. It is not shown again."""

    async def made(memory: "Memory") -> "NewToken":
        return await memory.access.create_token(
            Permission(permission),
            owner=owner,
            name=name,
            limits=Limits(agent, project),
            lifetime_ms=lifetime_ms(days),
        )

    found = with_memory(settings_of(database, config), made)
    click.echo(found.text)
    click.echo(f"{found.token.id}: keep it like a password; it is not shown again", err=True)


@command.command(name="list")
@with_settings
def list_all(database: str | None, config: Path | None) -> None:
    """List the tokens, and the programs that were let in on the sign-in page, the newest first."""
    lines = with_memory(settings_to_read(database, config), token_lines)
    tell(lines or ["no tokens; `kalito-mcp token create NAME` makes one"])


@command.command()
@click.argument("token_id", metavar="ID")
@with_settings
def revoke(database: str | None, config: Path | None, token_id: str) -> None:
    """Revoke the token ID, or the program that was let in as ID. It counts at once."""
    revoked: Sequence[str] = with_memory(
        settings_of_existing(database, config), lambda memory: memory.access.revoke_token(token_id)
    )
    tell([f"revoked {', '.join(revoked)}"])


async def token_lines(memory: "Memory", owner: str | None = None) -> list[str]:
    """A line for each token of an owner, or of all, and for each program that was let in."""
    now_ms = time.time_ns() // 1_000_000
    tokens = await memory.access.tokens(owner)
    grants = await memory.access.sign_in.consents.all(owner)
    return [_line(token, now_ms) for token in tokens if token.kind is TokenKind.STATIC] + [
        _line_of_grant(one) for one in grants
    ]


def _line(token: Token, now_ms: int) -> str:
    limits = [
        f"{name} {value}" for name, value in (("agent", token.limits.agent), ("project", token.limits.project)) if value
    ]
    if token.revoked_at:
        state = "revoked"
    elif token.expires_at:
        state = f"{'expired' if token.is_expired(now_ms) else 'until'} {to_iso(token.expires_at)}"
    else:
        state = "valid"
    about = ", ".join([token.permission, f"owner {token.owner}", *limits, state, _used(token.last_used_at)])
    return f"{token.id}  {token.prefix}...  {token.name}  {about}"


def _line_of_grant(grant: Grant) -> str:
    state = "revoked" if grant.revoked_at else "signed in" if grant.is_usable else "signed out"
    about = ", ".join([grant.permission, f"owner {grant.owner}", state, _used(grant.last_used_at)])
    return f"{grant.id}  {grant.client_name}  {about}"


def _used(last_used_at: int | None) -> str:
    return f"used {to_iso(last_used_at)}" if last_used_at else "never used"
