"""Passes on the reports of hooks on this machine, and answers with the home's text for the prompt.

What only this machine can know is added here: the project of a folder, the reply in a transcript, a pause. A hook waits
no longer than for a memory on this machine. A report that the home has not taken by then goes into the outbox, with the
same id.
"""

import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from kalito_mcp.bridge.delivery import Change, Delivery, refusal_in
from kalito_mcp.bridge.home import Caller
from kalito_mcp.bridge.places import MachinePlaces
from kalito_mcp.bridge.replies import HomeAway, HomePaused, RequestRefused
from kalito_mcp.capture.capturer import storable
from kalito_mcp.capture.events import read_event
from kalito_mcp.capture.fields import FOLDER
from kalito_mcp.capture.spool import cleaned_report
from kalito_mcp.capture.transcripts import with_reply
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.switch import is_off

_log: Final = logging.getLogger("kalito.bridge")
_MOST_WAIT_S: Final = 0.25
_CALL: Final[Mapping[str, Any]] = {"name": "hook_event", "arguments": {}}
_NOBODY: Final = Caller()


class Hooks:
    """Takes reports of hooks, as `capture.capturer.Capture` does for a memory on this machine. `switch` is the file of
    the machine's switch."""

    def __init__(self, delivery: Delivery, places: Callable[[str | None], MachinePlaces], switch: Path) -> None:
        self._delivery = delivery
        self._places = places
        self._switch = switch
        self.heard: Callable[[str], object] = lambda _: None
        """Called with the host of each report that is passed on."""
        self.catch_up: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None
        """Waits until what was kept of the same conversation before this report is passed on."""
        self.keep: Callable[[Mapping[str, Any]], object] | None = None
        """Keeps a report whose conversation could not catch up in time, to be taken later."""

    async def take(self, report: Mapping[str, Any], *, is_late: bool = False) -> str:
        """Pass on what a hook reports. Returns what the host reads from the hook's stdout.

        Raises:
            StorageError: neither the home nor the outbox could take it.
        """
        completed = self._report_for_home(report, is_late=is_late)
        if completed is None:
            return ""
        if not is_late and self.catch_up is not None and self.keep is not None:
            with anyio.move_on_after(_MOST_WAIT_S) as limit:
                await self.catch_up(report)
            if limit.cancelled_caught:
                self.keep(report)
                return ""
        host = completed["host"]
        self.heard(host)
        change = Change(_CALL, _NOBODY, {"kalito/report": completed})
        if is_late:
            await self._delivery.keep(_without_secrets(change), self._delivery.outbox.next_place())
            return ""
        try:
            result = await self._delivery.pass_on(change, partial(_without_secrets, change), within_s=_MOST_WAIT_S)
            return _text_for_host(host, result)
        except HomePaused:
            pass
        except HomeAway as away:
            _log.debug("an event of %s waits for the home: %s", host, away.reason)
        except RequestRefused as refused:
            _log.warning("the home refuses an event of %s: %s", host, refused.message)
        except InvalidInput as error:
            _log.warning("the home would refuse an event of %s: %s", host, error)
        return ""

    def _report_for_home(self, report: Mapping[str, Any], *, is_late: bool) -> dict[str, Any] | None:
        """The report with what only this machine knows; None if it is not kept."""
        host, name, payload = str(report.get("host")), str(report.get("event")), report.get("payload")
        given: Mapping[str, Any] | None = payload if isinstance(payload, dict) else {}
        if is_late and host == "copilot":
            given = with_reply(name, given or {})
        event = None if given is None else read_event(host, name, given)
        now_ms = time.time_ns() // 1_000_000
        if event is None or given is None or (not is_late and is_off(self._switch, event.folder, now_ms)):
            return None
        places = self._places(event.folder)
        try:
            places.check_remembered(is_pause_over=is_late)
        except Conflict:
            return None
        kept = {
            # The memory cuts such a text, too. Whole, it could be longer than a request may be.
            field: storable(value, LimitsPolicy().max_text_bytes) if isinstance(value, str) else value
            for field, value in given.items()
            if field not in FOLDER
        }
        at_ms, report_id = report.get("at_ms"), report.get("id")
        return {
            "host": host,
            "event": name,
            "payload": {**kept, "cwd": places.project or PERSONAL},
            "at_ms": at_ms if isinstance(at_ms, int) else now_ms,
            "id": report_id if isinstance(report_id, str) and report_id else secrets.token_hex(8),
        }


def _without_secrets(change: Change) -> Change:
    return replace(change, meta={"kalito/report": cleaned_report(change.meta["kalito/report"])})


def _text_for_host(host: str, result: Mapping[str, Any]) -> str:
    """The home's answer. A final refusal is not reported to the host."""
    refusal = refusal_in(result)
    if refusal is not None:
        _log.warning("the home refuses an event of %s: %s", host, refusal.partition(":")[0])
        return ""
    return "".join(str(one.get("text", "")) for one in result.get("content", []) if isinstance(one, dict))
