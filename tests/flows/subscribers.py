"""Hosts that are subscribed, in either era, and what they hear."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import anyio
from mcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated

from tests.server.token_client import connected

PATIENCE_S: Final = 15


class Heard:
    """What one host was notified of, by address; the list of resources is `list`, the end of a stream `ended`."""

    def __init__(self) -> None:
        self.uris: list[str] = []
        self._changed = anyio.Event()

    def add(self, uri: str) -> None:
        self.uris.append(uri)
        self._changed.set()

    async def all_of(self, *uris: str, forget: bool = True) -> None:
        """Wait until each of these was heard since the last time, and forget what was."""
        with anyio.fail_after(PATIENCE_S):
            while not set(uris) <= set(self.uris):
                self._changed = anyio.Event()
                await self._changed.wait()
        if forget:
            self.uris.clear()


@asynccontextmanager
async def subscribed(
    server: Any, era: str, uris: Sequence[str], *, to_list: bool = False, token: str | None = None
) -> AsyncIterator[tuple[Client, Heard]]:
    """A client of the era that is subscribed, and what it hears. With a token, `server` is a URL."""
    heard = Heard()

    async def on_message(message: Any) -> None:
        if message.method == "notifications/resources/updated":
            heard.add(str(message.params.uri))
        elif message.method == "notifications/resources/list_changed":
            heard.add("list")

    handler = on_message if era == "legacy" else None
    async with AsyncExitStack() as stack:
        if token is None:
            client = await stack.enter_async_context(Client(server, mode=era, message_handler=handler))
        else:
            client = await stack.enter_async_context(connected(server, token, mode=era, message_handler=handler))
        if era == "legacy":
            for uri in uris:
                await client.session.subscribe_resource(uri)
            if to_list:
                await client.list_resources(cursor="sessions")
        else:
            listening = client.listen(resource_subscriptions=list(uris), resources_list_changed=to_list)
            events = await stack.enter_async_context(listening)
            tasks = await stack.enter_async_context(anyio.create_task_group())

            async def listen() -> None:
                async for event in events:
                    heard.add(event.uri if isinstance(event, ResourceUpdated) else "list")
                    assert isinstance(event, ResourceUpdated | ResourcesListChanged)
                heard.add("ended")

            tasks.start_soon(listen)
            stack.callback(tasks.cancel_scope.cancel)
        yield client, heard
