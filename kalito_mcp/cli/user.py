"""`kalito-mcp user`: the people who share a database. It is for the operator, who needs no key."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kalito_mcp.cli.options import Commands, settings_of, settings_of_existing, settings_to_read, with_settings
from kalito_mcp.cli.records import with_json
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.terminal import tell, tell_json
from kalito_mcp.cli.token import lifetime_ms, token_lines, with_lifetime, with_permission
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.people import ErasedPerson, Person
from kalito_mcp.domain.time import to_iso
from kalito_mcp.errors import Conflict, NotFound
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.access.tokens import NewToken
    from kalito_mcp.memory import Memory

_NOUNS: Final = {
    "sessions": "conversation",
    "records": "record",
    "memory_edits": "earlier version",
    "access_tokens": "key",
    "oauth_grants": "login",
    "passphrases": "passphrase",
}
"""What tables have, as people call it."""


@click.group(name="user", cls=Commands)
def command() -> None:
    """Give people keys, list who has a memory here, and erase a person.

    Each person has a memory of their own in the database, and reaches it with a key of their own over HTTP.
    """


@command.command()
@click.argument("name")
@with_permission
@click.option("--key", "key_name", metavar="LABEL", help="What the key is for, such as laptop. Default: key.")
@with_lifetime
@with_settings
def add(
    database: str | None, config: Path | None, name: str, permission: str, key_name: str | None, days: int | None
) -> None:
    """Make a key for the person NAME, such as anna or anna@example.org, and show it. It is not shown again.

    Their memory begins with the first thing that is recorded with it. Somebody may have several keys.
    """
    settings = settings_of(database, config)

    async def made(memory: "Memory") -> "NewToken":
        return await memory.access.create_token(
            Permission(permission), owner=name, name=key_name or "key", lifetime_ms=lifetime_ms(days)
        )

    found = with_memory(settings, made)
    url = settings.http.public_url.rstrip("/") or "http://127.0.0.1:8765"
    click.echo(found.text)
    for line in (
        f"{found.token.id}: the key of {name}; it is not shown again",
        f"an assistant uses it at {url}/mcp with the header  Authorization: Bearer KEY",
        f"on their machine, hooks and all:  kalito-mcp connect {url}",
    ):
        click.echo(line, err=True)


@command.command(name="list")
@with_json
@with_settings
def list_all(database: str | None, config: Path | None, is_json: bool) -> None:
    """List everybody with a memory or a key: how much they have, their keys, their spaces, and when they were here."""

    async def read(memory: "Memory") -> Sequence[Person]:
        return await memory.people.all()

    people = with_memory(settings_to_read(database, config), read)
    if is_json:
        tell_json(one.to_dict() for one in people)
    else:
        tell(map(_line, people) if people else ["nobody yet; `kalito-mcp user add NAME` makes a key"])


@command.command()
@click.argument("name")
@with_settings
def keys(database: str | None, config: Path | None, name: str) -> None:
    """List the keys of the person NAME, also ended ones. `kalito-mcp token revoke ID` ends one."""

    async def read(memory: "Memory") -> list[str]:
        await _person(memory, name)
        return await token_lines(memory, name)

    tell(with_memory(settings_of_existing(database, config), read) or [f"{name} has no keys"])


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for the name again.")
@with_json
@with_settings
def erase(database: str | None, config: Path | None, name: str, yes: bool, is_json: bool) -> None:
    """Erase the person NAME for good, with everything of theirs, and report where something of them still is.

    What they said and kept, what was made of it, keys, logins, what they shared in spaces. It cannot be undone. If it
    is interrupted, run it again.
    """
    settings = settings_of_existing(database, config)
    if not yes:
        tell([f"To be erased for good: {_line(with_memory(settings, lambda memory: _person(memory, name)))}"])
        if not sys.stdin.isatty():
            raise Conflict("nothing was erased: there is no terminal to ask on; add --yes to go ahead")
        if click.prompt("It cannot be undone. The name again") != name:
            raise Conflict("nothing was erased: that is another name")
    report = with_memory(settings, lambda memory: memory.people.erase(name))
    if is_json:
        tell_json([report.to_dict()])
    else:
        tell(_report_lines(report))


def _report_lines(report: ErasedPerson) -> Iterator[str]:
    counts = [plural(report.rows[table], noun) for table, noun in _NOUNS.items() if report.rows.get(table)]
    others = sum(count for table, count in report.rows.items() if table not in _NOUNS)
    yield f"erased of {report.name}: {', '.join([*counts, *([plural(others, 'other row')] if others else [])]) or '-'}"
    for space, count in report.spaces.items():
        yield f"no longer in the space {space}; erased there: {plural(count, 'copy')}"
    yield from (f"deleted {one}" for one in report.files)
    yield from (f"could not clean {place}: {reason}" for place, reason in report.remaining.items())
    if not report.remaining:
        yield f"nothing of {report.name} remains in the memory itself"
    yield from (f"note: {one}" for one in report.kept)


async def _person(memory: "Memory", name: str) -> Person:
    """The person of this name. Raises NotFound."""
    found = next((one for one in await memory.people.all() if one.name == name), None)
    if found is None:
        raise NotFound(f"nobody is called {name!r}; `kalito-mcp user list` shows the names")
    return found


def _line(one: Person) -> str:
    about = [plural(one.sessions, "conversation"), plural(one.records, "record"), plural(one.keys, "key")]
    about += [f"{member.role} of {member.space.name}" for member in one.memberships]
    about.append("never used" if one.used_at is None else f"used {to_iso(one.used_at)}")
    return f"{one.name}  {', '.join(about)}"
