"""A server with a token for each permission, and a client that speaks JSON to it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.server.web import web
from tests.server.wire import COVERED, PATIENCE_S


@dataclass(frozen=True)
class Served:
    """A running server. `tokens` are their texts by permission, all of one owner; `other` is another owner's."""

    origin: str
    database: Path
    tokens: Mapping[Permission, str]
    other: str

    @contextmanager
    def client(self, token: str | Permission | None = Permission.ADMIN) -> Iterator[httpx2.Client]:
        """A client that sends this token, or that of this permission."""
        text = self.tokens[token] if isinstance(token, Permission) else token
        headers = {"authorization": f"Bearer {text}"} if text else {}
        with httpx2.Client(
            base_url=self.origin, headers=headers, timeout=PATIENCE_S, trust_env=False, verify=False
        ) as client:
            yield client


@contextmanager
def served(folder: Path, **environment: str) -> Iterator[Served]:
    """Serve an empty memory until the block ends."""
    database = lay_empty_database(folder / "memory.db")
    tokens = {one: made_token(database, one) for one in Permission}
    other = made_token(database, Permission.ADMIN, owner="other")
    with web("http", database, login=True, **environment, **COVERED) as serving:
        yield Served(serving.url.removesuffix("/mcp"), database, tokens, other)


def made_token(database: Path, permission: Permission, *, owner: str | None = None, limits: Limits = NO_LIMITS) -> str:
    """The text of a new token."""

    async def make() -> str:
        async with open_memory(database) as memory:
            return (await memory.access.create_token(permission, owner=owner, limits=limits)).text

    return anyio.run(make)


def said(answer: httpx2.Response) -> Any:
    """The content of an answer that is no refusal."""
    assert answer.is_success, (answer.status_code, answer.text)
    return answer.json()


def record(client: httpx2.Client, session: str, *texts: str) -> list[str]:
    """Record a conversation; the ids of its messages."""
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "text": text} for place, text in enumerate(texts)]
    ids: list[str] = said(client.post(f"/api/sessions/{session}/messages", json={"messages": messages}))["message_ids"]
    return ids


def fresh(prefix: str) -> str:
    """A name that no other test uses, and that none is taken for a mistyped form of."""
    return f"{prefix}-x{os.urandom(6).hex()}"
