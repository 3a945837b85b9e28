"""`--about` and `--identifier` of `forget` and `purge`: what matches is shown first, and the person asked."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from kalito_mcp.cli.record_lines import found_lines
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.terminal import EXCERPT_CHARS, ask, tell
from kalito_mcp.domain.erasing import ForgetRequest, FoundRecord

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings


_SHOWN: Final = 20


def with_subject(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --about, --identifier, --agent and --yes."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--agent", "agent_id", metavar="ID", help="Which agent's memory. Default: `default`."),
        click.option(
            "--identifier", metavar="TEXT", help="Everything with this number, key or email, however written."
        ),
        click.option("--about", metavar="SUBJECT", help="Everything that speaks of this person, thing or topic."),
    ):
        command = option(command)
    return command


def confirmed_session(settings: "Settings", session_id: str, *, is_agreed: bool) -> Sequence[str]:
    """Show what a conversation has, and ask unless `is_agreed`. The ids of its records; none if nothing is left of it.

    Raises:
        SessionNotFound: no such session.
        Conflict: there is no terminal to ask on. click.Abort: the person did not say yes.
    """
    found = with_memory(settings, lambda memory: memory.conversations.transcript(session_id))
    said = [FoundRecord(one.record_id, " ".join(one.text.split())[:EXCERPT_CHARS]) for one in found.messages]
    others = [FoundRecord(one.id, " ".join(one.text.split())[:EXCERPT_CHARS]) for one in found.records[::-1]]
    listed = [*said, *others]
    if not listed:
        tell(["nothing is left of this conversation; nothing was forgotten"])
    elif not is_agreed:
        tell([f"To be forgotten ({len(listed)}):", *found_lines(listed[:_SHOWN])])
        if len(listed) > _SHOWN:
            tell([f"  and {len(listed) - _SHOWN:,} more"])
        ask("Forget these?", undone="nothing was forgotten")
    return [one.id for one in listed]


def subject_request(
    record_ids: Sequence[str], about: str | None, identifier: str | None, *, is_purge: bool
) -> ForgetRequest | None:
    """The request that the options make; None without them. Raises click.UsageError if there are ids as well."""
    if about is None and identifier is None:
        return None
    if record_ids:
        raise click.UsageError("give IDs, or --about and --identifier, not both")
    return ForgetRequest(about, identifier, is_purge=is_purge)


def confirmed_token(
    settings: "Settings", request: ForgetRequest, agent_id: str | None, *, is_agreed: bool
) -> str | None:
    """Show what matches, and ask unless `is_agreed`. The token of that list, or None if nothing matches.

    Raises:
        Conflict: there is no terminal to ask on. click.Abort: the person did not say yes.
    """
    preview = with_memory(settings, lambda memory: memory.records.preview_forgetting(request, agent_id=agent_id))
    done = "erased for good" if request.is_purge else "forgotten"
    if preview.token is None:
        tell([f"nothing matches; nothing was {done}"])
        return None
    if not is_agreed:
        tell([f"To be {done} ({len(preview.records)}):", *found_lines(preview.records)])
        ask(f"{'Erase' if request.is_purge else 'Forget'} these?", undone=f"nothing was {done}")
    return preview.token
