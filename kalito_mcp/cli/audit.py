"""`kalito-mcp audit`: who changed what over HTTP, and whether that log is whole."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kalito_mcp.cli.options import settings_to_read, with_settings
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.terminal import tell, tell_json
from kalito_mcp.domain.audit import AuditEntry, AuditHead, Change
from kalito_mcp.domain.time import to_iso
from kalito_mcp.errors import InvalidInput, StorageDamaged
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_HEAD: Final = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")
_SHOWN_IDS: Final = 5
_MOST: Final = 100_000


@click.command(name="audit")
@click.option("--since", metavar="WHEN", help="Only from then on: 2026-03-04, 7d (days ago), 'last March'.")
@click.option("--limit", type=click.IntRange(1, _MOST), default=100, show_default=True, help="How many at most.")
@click.option("--json", "is_json", is_flag=True, help="JSON, one object a line, for programs.")
@click.option(
    "--verify", "is_check", is_flag=True, help="Check that every entry is as it was written, and say the head."
)
@click.option("--noted", metavar="HEAD", help="With --verify: an earlier head. The log must still begin with it.")
@with_settings
def command(
    database: str | None,
    config: Path | None,
    since: str | None,
    limit: int,
    noted: str | None,
    *,
    is_json: bool,
    is_check: bool,
) -> None:
    """List who did what over HTTP, the newest first: tokens, ids and counts, never what was said.

    Each entry is chained to the one before, so --verify finds one that was changed, taken out or moved. Note the head
    that it says in another place: anyone who can write the file can also forge the whole log.
    """
    settings = settings_to_read(database, config)
    if is_check:
        head = _head(noted)
        fault, found = with_memory(settings, lambda memory: memory.access.check_audit(head))
        if fault is not None:
            raise StorageDamaged(f"the audit log is not as it was written: {fault}; compare it with a backup")
        tell([f"{plural(found.count, 'entry')}, each as it was written; head {found}"])
        return

    async def read(memory: "Memory") -> tuple[Sequence[AuditEntry], int]:
        from kalito_mcp.text.times.expressions import moment_in_words  # noqa: PLC0415 - only with --since

        now_ms = memory.place.clock.now_ms()
        since_ms = since and moment_in_words(since, "since", now_ms, is_last=False, zone=memory.zone)
        entries = await memory.access.audit(since_ms=since_ms or 0, limit=limit, all_owners=True)
        if len(entries) < limit:
            return entries, len(entries)
        return entries, await memory.access.audit_count(since_ms=since_ms or 0, all_owners=True)

    entries, total = with_memory(settings, read)
    if is_json:
        tell_json(_as_json(one) for one in entries)
    else:
        tell(map(_line, entries) if entries else ["nothing was done over HTTP, and no token was made"])
    if (left := total - len(entries)) > 0:
        click.echo(f"{plural(left, 'older entry')} not shown; see more with --limit {min(total, _MOST)}", err=True)


def _head(noted: str | None) -> AuditHead | None:
    if noted is None:
        return None
    found = _HEAD.fullmatch(noted)
    if found is None:
        raise InvalidInput("--noted takes a head as `kalito-mcp audit --verify` says it: 12:5f0c...")
    return AuditHead(int(found[1]), bytes.fromhex(found[2]))


def _as_json(entry: AuditEntry) -> dict[str, Any]:
    said = entry.said
    return {
        "number": entry.number,
        "at": to_iso(said.at),
        "principal": said.principal,
        "owner": said.owner,
        "client": said.client,
        "action": said.action,
        "outcome": str(said.outcome),
        "count": said.count,
        "changes": [{"what": one.what, "count": one.count, "ids": list(one.ids)} for one in said.changes],
        "hash": entry.hash.hex(),
    }


def _line(entry: AuditEntry) -> str:
    said = entry.said
    who = said.principal if said.client is None else f"{said.principal} through {said.client}"
    times = "" if said.count == 1 else f" {said.count:,} times"
    outcome = "" if said.outcome == "done" else f" {said.outcome}"
    changes = "; ".join(_changed(said.changes))
    return f"{entry.number}  {to_iso(said.at)}  {who} ({said.owner})  {said.action}{outcome}{times}  {changes}".rstrip()


def _changed(changes: Iterable[Change]) -> Iterable[str]:
    for one in changes:
        more = one.count - min(len(one.ids), _SHOWN_IDS)
        yield f"{one.what} {', '.join(one.ids[:_SHOWN_IDS])}{f' and {more:,} more' if more else ''}"
