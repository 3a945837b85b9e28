"""Sends changes to the home, in order: first those that wait. A change that the home cannot take now waits.

Nothing is said to be kept before it is on disk here or there. Everything may be sent twice, because the home recognises
it by its keys.

The calls of one process take turns, in the order in which they arrived. A call that the home cannot take is put into
the outbox before the next one has its turn, so no call overtakes it. A call that cannot wait is put there at once,
behind earlier calls, even if those are being sent.
"""

import itertools
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.to_thread

from kalito_mcp.bridge.home import Caller, Home
from kalito_mcp.bridge.outbox import Entry, Outbox
from kalito_mcp.bridge.replies import HomeAway, HomeFailed, HomePaused, Progress, RequestRefused, not_kalito
from kalito_mcp.errors import KalitoError

_log: Final = logging.getLogger("kalito.bridge")
ALREADY: Final = "already_taken_in"
"""The error code by which the home says that it already has the call."""
_FAILED: Final = "internal"
_TRY_AGAIN: Final = frozenset(
    """storage storage_full storage_busy storage_read_only storage_damaged storage_replaced configuration
    schema_too_new schema_unknown""".split()
)
"""Error codes that mean a fault of the home, not of the request."""
_PAUSED: Final = "conflict: the memory is paused"
_MOST_FAILURES: Final = 20
"""Failures after which an entry is put aside (about five minutes), so that it cannot block the others."""
_LOOK_EVERY_S: Final = 1.0
_POLL_S: Final = 0.05
_AT_ONCE: Final = 100
_MOST_WAITING_S: Final = 5.0
"""How long a call waits for the outbox to be delivered before it joins it."""
_MOST_CATCHING_UP_S: Final = 1.0
_MOST_BETWEEN_S: Final = 15.0
_LONGEST_REST_S: Final = 60.0
"""The longest pause, even if Retry-After is longer."""
_LONGEST_TURN_S: Final = 1.0
"""How long a delivery holds the turn, apart from the entry on its way, before a call may have it."""
_METHOD: Final = "tools/call"
_LATE: Final[Mapping[str, Any]] = {"kalito/late": True}
_NOT_YET: Final = "what waits for it is being delivered"


@dataclass(frozen=True, slots=True)
class Change:
    """A call of a tool that changes the memory. `meta` is what it says besides its caller."""

    params: Mapping[str, Any]
    caller: Caller
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class _Pending:
    """A change that this process is passing on, or that waits for its turn. `entry` is its copy in the outbox."""

    make_copy: Callable[[], Change]
    entry: Entry | None = None


class Delivery:
    """The way to the home for one process."""

    def __init__(self, home: Home, outbox: Outbox, is_paused: Callable[[], bool] = lambda: False) -> None:
        self.home = home
        self.outbox = outbox
        self._is_paused = is_paused
        self.away: HomeAway | None = None
        """Why the home could not be reached when it was last asked; None if it answered."""
        self._ask_again_at = 0.0
        self._turn = anyio.Lock()
        self._pending: dict[int, _Pending] = {}
        """By the places at which they arrived."""
        self._keeping = anyio.Lock()
        self._is_leaving = False

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        on_progress: Progress | None = None,
        may_repeat: bool = True,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """As `Home.request`. But while the home is away it is not asked: as long as it said, a minute at most, or 2 s
        after it kept a call waiting."""
        if self.away is not None and time.monotonic() < self._ask_again_at:
            raise type(self.away)(self.away.reason, may_be_done=False)
        try:
            result = await self.home.request(
                method, params, caller, on_progress=on_progress, may_repeat=may_repeat, meta=meta
            )
        except HomeAway as away:
            self.away = away
            self._ask_again_at = time.monotonic() + min(away.retry_after_s, _LONGEST_REST_S)
            raise
        except RequestRefused:
            self.away = None
            raise
        self.away = None
        return result

    async def pass_on(
        self,
        change: Change,
        make_copy: Callable[[], Change],
        *,
        on_progress: Progress | None = None,
        within_s: float = math.inf,
    ) -> dict[str, Any]:
        """The home's result of a change, which is sent after all that arrived before it. If the home cannot take it
        now, or has not `within_s`, waiting for its turn included, `make_copy()` goes into the outbox instead.

        Raises:
            HomePaused: the home remembers nothing now, and nothing was kept. HomeAway: it waits in the outbox.
            RequestRefused: the home refuses it for good. InvalidInput: the home is away, and would refuse it.
            StorageError: neither could take it.
        """
        place, deadline = self.outbox.next_place(), anyio.current_time() + _MOST_WAITING_S
        pending = self._pending[place] = _Pending(make_copy)
        has_turn = False
        try:
            with anyio.fail_after(within_s):
                await self._turn.acquire()
                has_turn = True
                await self._empty_outbox(deadline)
                result = await self.ask(
                    _METHOD, change.params, change.caller, meta=change.meta, on_progress=on_progress
                )
                refusal_in(result)  # raises if the home could not do it now, but would do it later
        except (HomePaused, RequestRefused):
            await self._drop_copy(pending)
            raise
        except (HomeAway, TimeoutError) as error:
            await self._keep_up_to(place)
            if isinstance(error, HomeAway):
                raise
            raise HomeAway(f"it has not answered within {within_s:g} s") from error
        except anyio.get_cancelled_exc_class():
            if not self._is_leaving:  # the host does not want it any more
                with anyio.CancelScope(shield=True):
                    await self._drop_copy(pending)
            raise
        else:
            await self._drop_copy(pending)
            return result
        finally:
            del self._pending[place]
            if has_turn:
                self._turn.release()

    async def keep_all(self) -> None:
        """Put everything that is not delivered yet into the outbox, because this process ends. Also calls on their way:
        the home recognises repetitions."""
        self._is_leaving = True
        if self._pending:
            with suppress(KalitoError):  # the host that would get the error has left
                await self._keep_up_to(max(self._pending))

    async def _keep_up_to(self, place: int) -> None:
        """Put the change at this place into the outbox, and before it those that arrived earlier. Raises StorageError
        if it cannot be kept itself."""
        async with self._keeping:
            for earlier, pending in sorted(self._pending.items()):
                was_cancelled = earlier not in self._pending  # while another one was kept
                if earlier > place or was_cancelled or pending.entry is not None:
                    continue
                try:
                    pending.entry = await self.keep(pending.make_copy(), earlier)
                except KalitoError:  # the sender of an earlier one gets its error
                    if earlier == place:
                        raise

    async def _drop_copy(self, pending: _Pending) -> None:
        async with self._keeping:
            if pending.entry is not None:
                with anyio.CancelScope(shield=True), suppress(OSError):  # sent again, it is recognised
                    await anyio.to_thread.run_sync(self.outbox.remove, pending.entry)

    async def keep(self, change: Change, place: int) -> Entry:
        """Put a change into the outbox, at the place that it got when it arrived.

        Raises:
            TextTooLarge: it is too long for the home. StorageError: it cannot be written.
        """
        caller = change.caller
        self.home.check_length(_METHOD, change.params, caller, {**change.meta, **_LATE})
        content = {
            "params": change.params,
            "client": caller.client,
            "session": caller.session,
            "project": caller.project,
            "meta": change.meta,
        }
        # Once begun it goes on: a sender without an answer sends it again, under the same key.
        with anyio.CancelScope(shield=True):
            entry = await anyio.to_thread.run_sync(self.outbox.put, content, place)
        return entry

    async def deliver_all(self, *, within_s: float = _MOST_WAITING_S) -> None:
        """Deliver what waits, after the calls that arrived before.

        Raises:
            HomeAway: it cannot be delivered now, or not in time.
        """
        deadline = anyio.current_time() + within_s
        try:
            with anyio.fail_after(within_s):
                async with self._turn:
                    await self._empty_outbox(deadline)
        except TimeoutError as error:
            raise HomeAway(_NOT_YET, may_be_done=False) from error

    async def catch_up(self) -> bool:
        """Deliver what waits, if that takes but a moment: questions are mostly about what was recorded last. Returns
        whether nothing waits any more."""
        if self._is_paused():
            return False
        try:
            await self.deliver_all(within_s=_MOST_CATCHING_UP_S)
        except HomeAway:
            return False
        return True

    async def _empty_outbox(self, deadline: float) -> None:
        """Deliver everything, even if another process is delivering. The caller holds the turn. Raises HomeAway."""
        try:
            if not await self._count():
                return
            with anyio.fail_after(max(0.0, deadline - anyio.current_time())):
                while await self._count():
                    if not await self._deliver_for_a_moment():
                        await anyio.sleep(_POLL_S)
        except TimeoutError as error:
            raise HomeAway(_NOT_YET, may_be_done=False) from error
        except OSError as error:
            raise HomeAway(f"what waits for it cannot be read: {error.strerror}", may_be_done=False) from error

    async def run(self) -> None:
        """Deliver what waits, for as long as this process runs."""
        pause_s = _LOOK_EVERY_S
        await anyio.to_thread.run_sync(self.outbox.sweep)
        while True:
            await anyio.sleep(pause_s)
            try:
                # Messages from before a pause wait for its end.
                if self._is_paused() or not await anyio.to_thread.run_sync(self.outbox.count):
                    pause_s = _LOOK_EVERY_S
                    continue
                is_more = True
                while is_more:
                    async with self._turn:
                        is_more = await self._deliver_for_a_moment()
                pause_s = _LOOK_EVERY_S
            except HomeAway as away:
                pause_s = max(min(2 * pause_s, _MOST_BETWEEN_S), min(away.retry_after_s, _LONGEST_REST_S))
                _log.debug("the home is away: %s", away.reason)
            except OSError as error:
                _log.warning("what waits for the home cannot be read: %s", error.strerror)
            except Exception:  # calls go on without it
                pause_s = _MOST_BETWEEN_S
                _log.exception("what waits for the home cannot be delivered")

    async def _deliver_for_a_moment(self) -> bool:
        """Send what waits, oldest first. Called with the turn. Returns whether more waits, unless another process is
        delivering.

        Raises:
            HomeAway: the home cannot take the next one now.
        """
        until = anyio.current_time() + _LONGEST_TURN_S
        with self.outbox.delivering() as is_ours:
            while is_ours and (entries := await self._next()):
                for entry in entries:
                    await self._deliver_one(entry)
                    if anyio.current_time() > until:
                        return True
        return False

    async def _count(self) -> int:
        return await anyio.to_thread.run_sync(self.outbox.count, self._first_pending())

    async def _next(self) -> list[Entry]:
        before = self._first_pending()
        return await anyio.to_thread.run_sync(lambda: list(itertools.islice(self.outbox.waiting(before), _AT_ONCE)))

    def _first_pending(self) -> float:
        """The place before which this process delivers. Entries behind it are copies of calls on their way, and calls
        that must not overtake them."""
        return min(self._pending, default=math.inf)

    async def _deliver_one(self, entry: Entry) -> None:
        failed: HomeFailed | None = None
        try:
            reason = refusal_in(await self._send(entry.content))
        except HomeFailed as error:
            failed, reason = error, error.reason
        except RequestRefused as refused:
            reason = refused.message
        except (AttributeError, KeyError, TypeError, ValueError):  # JSON, but not what was put there
            reason = "its file is damaged"
        with anyio.CancelScope(shield=True):
            if failed is not None and await anyio.to_thread.run_sync(self.outbox.count_failure, entry) < _MOST_FAILURES:
                raise failed
            if reason is None:
                await anyio.to_thread.run_sync(self.outbox.remove, entry)
            else:
                _log.warning("the home has refused what waited for it; it is put aside: %s", reason.partition(":")[0])
                await anyio.to_thread.run_sync(self.outbox.put_aside, entry, reason)

    async def _send(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        caller = Caller(given.get("client"), given.get("session"), given.get("project"))
        meta = {**given.get("meta", {}), **_LATE}
        return await self.ask(_METHOD, dict(given["params"]), caller, meta=meta)


def refusal_in(result: Mapping[str, Any]) -> str | None:
    """Why the result of a call is a refusal for good; None if the call was taken in.

    Raises:
        HomeAway: the home could not do it now, or the result is not one of a call.
    """
    content = result.get("content")
    if not isinstance(content, list):
        raise not_kalito()
    if not result.get("isError"):
        return None
    first = content[0] if content else None
    text = str(first.get("text", "")) if isinstance(first, dict) else ""
    code = text.partition(":")[0]
    if code == ALREADY:
        return None
    if code == _FAILED:
        raise HomeFailed(f"it fails: {text}")
    if code in _TRY_AGAIN:
        raise HomeAway(f"it answers: {text}")
    if text.startswith(_PAUSED):
        raise HomePaused(text)
    return text or "refused without a reason"
