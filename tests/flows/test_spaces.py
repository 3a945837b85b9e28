"""Three people with keys of their own share a space over HTTP: what one pins for all, the next conversation of the
others begins with, and the audit log says who did what."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp import Client
from mcp.types import CallToolResult

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.spaces import Role
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.server.token_client import connected
from tests.server.web import web

pytestmark = pytest.mark.anyio
ROLES: Final = {"ann": Role.WRITER, "ben": Role.READER, "cora": Role.CURATOR}
RULE: Final = "We deploy to production only on Tuesdays."


async def call(client: Client, tool: str, **arguments: Any) -> tuple[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    return " ".join(getattr(part, "text", "") for part in result.content), result.structured_content


async def keys_of_members(database: Path) -> Mapping[str, str]:
    """A key for each person. Each is a member of `backend`."""
    async with open_memory(lay_empty_database(database)) as memory:
        await memory.spaces.create("backend")
        keys: dict[str, str] = {}
        for user, role in ROLES.items():
            await memory.spaces.set_member("backend", user, role)
            keys[user] = (await memory.access.create_token(Permission.ADMIN, owner=user)).text
        return keys


async def test_what_one_pins_for_the_space_all_know_and_only_who_may_takes_it_back(tmp_path: Path) -> None:
    keys = await keys_of_members(tmp_path / "m.db")
    with web("http", tmp_path / "m.db", login=True) as server:
        async with connected(server.url, keys["ann"], mode="auto") as ann:
            said, pinned = await call(ann, "create_pin", content=RULE, space="backend")
        copy = pinned["shared_as"]
        assert pinned["space"] == "backend"
        assert f"Shared in backend as {copy}." in said
        async with connected(server.url, keys["ben"], mode="auto") as ben:
            context, _ = await call(ben, "build_context", query="When may I deploy?")
            assert f'shared in "backend" by "ann", noted by the assistant: {RULE}' in context
            said, found = await call(ben, "search_memory", query="deploy to production")
            assert [(one["record_id"], one["space"]) for one in found["hits"]] == [(copy, "backend")]
            assert "shared in backend by ann" in said
            refused, _ = await call(ben, "forget", record_ids=[copy])
            assert "you are a reader; ask a curator" in refused
            refused, _ = await call(ben, "create_pin", content="Mine.", space="backend")
            assert "cannot share in 'backend'; you are a member of: backend (reader)" in refused
        address = server.url.removesuffix("/mcp") + "/api"
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {keys['cora']}"}) as cora:
            mine = (await cora.get(f"{address}/spaces")).json()
            assert [(one["space"], one["role"]) for one in mine["spaces"]] == [("backend", "curator")]
            history = (await cora.get(f"{address}/records/{copy}/history")).json()
            assert history["edits"][0]["editor_id"].startswith("ann by ")
            assert (await cora.get(f"{address}/records/{copy}")).json()["space"] == "backend"
            answer = await cora.delete(f"{address}/records/{copy}", headers={"If-Match": '"1"'})
            assert answer.status_code == 200, answer.text
        async with connected(server.url, keys["ben"], mode="auto") as ben:
            assert not (await call(ben, "search_memory", query="deploy to production"))[1]["hits"]
    async with open_memory(tmp_path / "m.db") as memory:
        log = [one.said for one in await memory.access.audit(all_owners=True)]
    changes = [(one.owner, one.action, change) for one in log for change in one.changes]
    assert any(copy in one.ids for owner, action, one in changes if (owner, action) == ("ann", "create_pin"))
    [forgotten] = [one for owner, _, one in changes if (owner, one.what) == ("cora", "forgotten")]
    assert forgotten.ids == (copy,)
    assert RULE not in repr(log)
