"""What waits is delivered in the background, and what hooks report goes the same way. The home is a gate that says what
it is told to."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp.access.tokens import new_token
from kalito_mcp.bridge import delivery as delivery_module
from kalito_mcp.bridge import hooks as hooks_module
from kalito_mcp.bridge.connection import connection_to
from kalito_mcp.bridge.delivery import Delivery
from kalito_mcp.bridge.home import Home
from kalito_mcp.bridge.hooks import Hooks
from kalito_mcp.bridge.outbox import Outbox
from kalito_mcp.bridge.places import MachinePlaces
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.projects import ProjectPolicy
from tests.bridge.machines import TOKEN, Gate, until
from tests.bridge.test_passing import GONE, WAITING, answer, home, replied

__all__ = ["home"]  # the fixture
pytestmark = pytest.mark.anyio
PROMPT: Final = {"host": "claude-code", "event": "UserPromptSubmit", "payload": {"session_id": "c", "prompt": "hello"}}


@asynccontextmanager
async def delivering(folder: Path, at: Gate, *, in_background: bool = True) -> AsyncIterator[Delivery]:
    way = Home(connection_to(at.url), partial(str, TOKEN))
    async with way.open(), anyio.create_task_group() as tasks:
        one = Delivery(way, Outbox(folder))
        if in_background:
            tasks.start_soon(one.run)
        yield one
        tasks.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "_LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(delivery_module, "_MOST_BETWEEN_S", 0.02)


async def is_empty(outbox: Outbox) -> None:
    await anyio.to_thread.run_sync(until, lambda: outbox.count() == 0, "nothing waits")


async def test_what_waits_is_delivered_in_the_background_when_the_home_is_back(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = GONE
    outbox = Outbox(tmp_path)
    async with delivering(tmp_path, home):
        outbox.put(WAITING)
        await anyio.to_thread.run_sync(until, lambda: len(home.seen) > 1, "it is tried again")
        home.answers["*"] = answer("remembered")
        await is_empty(outbox)
        outbox.put(WAITING)
        await is_empty(outbox)


async def test_the_home_is_left_alone_for_as_long_as_it_says(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = (503, {"Retry-After": "60"}, b"gone")
    outbox = Outbox(tmp_path)
    async with delivering(tmp_path, home):
        outbox.put(WAITING)
        await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "it is tried")
        await anyio.sleep(0.3)
    assert len(home.seen) == 1
    assert outbox.count() == 1


@pytest.mark.parametrize("failure", [OSError("no disk"), RuntimeError("not thought of")])
async def test_delivery_goes_on_after_a_failure(
    tmp_path: Path,
    home: Gate,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    home.answers["*"] = answer("remembered")
    waiting, failures = Outbox.waiting, [failure]

    def fail_once(self: Outbox, before: float) -> Any:
        if failures:
            raise failures.pop()
        return waiting(self, before)

    monkeypatch.setattr(Outbox, "waiting", fail_once)
    outbox = Outbox(tmp_path)
    outbox.put(WAITING)
    with caplog.at_level(logging.WARNING, "kalito.bridge"):
        async with delivering(tmp_path, home):
            await is_empty(outbox)
    assert "what waits for the home cannot be" in caplog.text


def hooks_of(one: Delivery, folder: Path) -> Hooks:
    switch = folder / "switch.json"
    return Hooks(one, lambda _: MachinePlaces(switch, ProjectPolicy(), PERSONAL), switch)


@pytest.mark.parametrize(
    ("said", "told", "waiting"),
    [
        (answer("Ines is allergic to nuts."), "Ines is allergic to nuts.", 0),
        (GONE, "", 1),
        (answer("conflict: the memory is paused; nothing is recorded", is_error=True), "", 0),
        (answer("invalid_input: no", is_error=True), "", 0),
        (replied({"error": {"code": -32602, "message": "no"}}, 400), "", 0),
    ],
    ids=["answered", "away", "paused", "refused", "not understood"],
)
async def test_a_hook_gets_the_home_s_words_or_none(
    tmp_path: Path,
    home: Gate,
    monkeypatch: pytest.MonkeyPatch,
    said: tuple[int, dict[str, str], bytes],
    told: str,
    waiting: int,
) -> None:
    monkeypatch.setattr(hooks_module, "_MOST_WAIT_S", 30.0)  # on a busy machine
    home.answers = {"*": said, "server/discover": answer("kalito")}
    async with delivering(tmp_path, home, in_background=False) as one:
        assert await hooks_of(one, tmp_path).take(PROMPT) == told
    assert Outbox(tmp_path).count() == waiting


async def test_a_hook_that_came_late_waits_without_its_secrets(tmp_path: Path, home: Gate) -> None:
    token = new_token("ann", Permission.READ, now_ms=0).text
    payload = {"session_id": "c", "prompt": f"use {token} for it"}
    async with delivering(tmp_path, home, in_background=False) as one:
        assert await hooks_of(one, tmp_path).take({**PROMPT, "payload": payload, "at_ms": 5}, is_late=True) == ""
    [entry] = Outbox(tmp_path).waiting()
    report = entry.content["meta"]["kalito/report"]
    assert report["at_ms"] == 5
    assert report["payload"]["prompt"] == "use [redacted: kalito token] for it"
    assert home.seen == []
