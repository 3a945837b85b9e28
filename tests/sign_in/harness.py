"""A server with its sign-in page, a person with a browser, and a program that is the SDK's own OAuth client."""

import base64
import hashlib
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import anyio
import httpx2
import uvicorn
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.types import CallToolResult
from pydantic import AnyUrl

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.exchange.archive import archive_pieces
from kalito_mcp.memory import Memory
from kalito_mcp.server.build import build_server
from kalito_mcp.server.web_app import http_app
from kalito_mcp.web.client_documents import ClientDocuments
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.scripted import ScriptedClock

PASSPHRASE: Final = "five green kites over Oslo"
REDIRECT: Final = "http://localhost:8912/callback"


def now_clock() -> ScriptedClock:
    """A clock that starts now: the SDK's handlers read the machine's."""
    return ScriptedClock(wall_ms=time.time_ns() // 1_000_000)


@dataclass
class Home:
    """A server in this process, on a real socket."""

    base: str
    memory: Memory
    clock: ScriptedClock

    @property
    def url(self) -> str:
        return f"{self.base}/mcp"


@asynccontextmanager
async def home(
    folder: Path,
    *,
    policy: HttpPolicy | None = None,
    documents: ClientDocuments | None = None,
    passphrase: str | None = PASSPHRASE,
    clock: ScriptedClock | None = None,
    **parts: Any,
) -> AsyncIterator[Home]:
    """Serve a memory until the block ends."""
    clock = clock or now_clock()
    database = lay_empty_database(folder / "memory.db")
    server = build_server(lambda: open_memory(database, clock=clock))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        async with server.opened.open(), anyio.create_task_group() as tasks:
            memory = await server.opened.memory()
            if passphrase is not None and not await memory.access.sign_in.passphrases.has_any():
                await memory.access.sign_in.passphrases.set("local", passphrase)
            app = http_app(
                server,
                "http",
                policy or HttpPolicy(),
                port,
                owner=None,
                exporter=archive_pieces,
                documents=documents,
                **parts,
            )
            serving = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
            tasks.start_soon(serving.serve, [listening])
            try:
                yield Home(f"http://127.0.0.1:{port}", memory, clock)
            finally:
                serving.should_exit = True


@dataclass
class Browser:
    """What a person does: opens the program's link, and answers the page."""

    cookies: httpx2.Cookies = field(default_factory=httpx2.Cookies)

    async def send(self, method: str, url: httpx2.URL | str, **parts: Any) -> httpx2.Response:
        """One request, with the cookies so far."""
        async with httpx2.AsyncClient(cookies=self.cookies, timeout=30) as http:
            answer = await http.request(method, url, **parts)
            self.cookies = http.cookies
            return answer

    async def open(self, link: str) -> httpx2.Response:
        """The page behind a link."""
        answer = await self.send("GET", link)
        return await self.send("GET", answer.headers["location"]) if answer.status_code == 302 else answer

    async def answer(self, page: httpx2.Response, **fields: str) -> httpx2.Response:
        """Send the page's form. Without `answer`, allow."""
        filled = {"request": handle_of(page), "answer": "allow", "owner": "local", "passphrase": PASSPHRASE}
        filled |= {"permission": "write"} | fields
        origin = f"{page.url.scheme}://{page.url.netloc.decode()}"
        return await self.send("POST", page.url.join("/sign-in"), data=filled, headers={"origin": origin})

    async def signs_in(self, link: str, **fields: str) -> dict[str, str]:
        """Open the link and allow; what the program gets."""
        answer = await self.answer(await self.open(link), **fields)
        assert answer.status_code == 303, answer.text
        return given(answer)


def handle_of(page: httpx2.Response) -> str:
    """The handle in a page's form."""
    found = re.search(r'name="request" value="([^"]+)"', page.text)
    assert found is not None, page.text
    return found[1]


def given(answer: httpx2.Response) -> dict[str, str]:
    """The parameters that a redirect carries."""
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


@dataclass
class Program:
    """The SDK's OAuth client. It keeps its tokens here, and the person signs in for it with `browser`."""

    url: str
    scope: str | None = None
    document: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    browser: Browser = field(default_factory=Browser)
    tokens: OAuthToken | None = None
    info: OAuthClientInformationFull | None = None
    links: list[str] = field(default_factory=list)
    auth: OAuthClientProvider = field(init=False)

    def __post_init__(self) -> None:
        metadata = OAuthClientMetadata(client_name="Kite", redirect_uris=[AnyUrl(REDIRECT)], scope=self.scope)
        self.auth = OAuthClientProvider(
            self.url,
            metadata,
            self,
            redirect_handler=self._follow,
            callback_handler=self._callback,
            client_metadata_url=self.document,
        )

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.info = client_info

    @asynccontextmanager
    async def connected(self, mode: str = "auto") -> AsyncIterator[Client]:
        """A connection of this program."""
        async with (
            httpx2.AsyncClient(auth=self.auth, timeout=30) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client

    async def calls(self, tool: str = "list_tasks", **arguments: Any) -> CallToolResult:
        """Call a tool over a connection of its own."""
        async with self.connected() as client:
            result = await client.call_tool(tool, arguments)
            assert isinstance(result, CallToolResult)
            return result

    async def _follow(self, link: str) -> None:
        self.links.append(link)

    async def _callback(self) -> AuthorizationCodeResult:
        back = await self.browser.signs_in(self.links[-1], **self.fields)
        return AuthorizationCodeResult(code=back["code"], state=back.get("state"), iss=back.get("iss"))


@dataclass
class Hand:
    """A client that does each step of OAuth by hand, to do one of them wrong."""

    home: Home
    client_id: str
    redirect: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    browser: Browser = field(default_factory=Browser)

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def link(self, **changed: str | None) -> str:
        """The link that the person opens. A parameter that is None is left out."""
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "state": "the state & more",
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "scope": "read write",
            "resource": self.home.url,
        } | changed
        query = httpx2.QueryParams({name: value for name, value in asked.items() if value is not None})
        return f"{self.home.base}/authorize?{query}"

    async def code(self, **fields: str) -> str:
        return (await self.browser.signs_in(self.link(), **fields))["code"]

    async def exchange(self, code: str, **changed: str | None) -> httpx2.Response:
        """Send a code to the token endpoint."""
        return await self.post(
            "/token",
            grant_type="authorization_code",
            code=code,
            redirect_uri=self.redirect,
            code_verifier=self.verifier,
            client_id=self.client_id,
            **changed,
        )

    async def renew(self, refresh_token: str, **changed: str | None) -> httpx2.Response:
        fields = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": self.client_id}
        return await self.post("/token", **fields, **changed)

    async def signed_in(self, **fields: str) -> dict[str, Any]:
        """The tokens after everything went right."""
        answer = await self.exchange(await self.code(**fields))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def post(self, path: str, **fields: str | None) -> httpx2.Response:
        sent = {name: value for name, value in fields.items() if value is not None}
        return await Browser().send("POST", f"{self.home.base}{path}", data=sent)

    async def may(self, token: str) -> bool:
        """Whether the memory answers to this token."""
        return (await calls(self.home, token)).status_code == 200


async def registered(home: Home, *redirects: str, **changed: Any) -> Hand:
    """A client that has registered itself."""
    sent = {"client_name": "Kite", "redirect_uris": [*(redirects or (REDIRECT,))], "token_endpoint_auth_method": "none"}
    async with httpx2.AsyncClient() as http:
        answer = await http.post(f"{home.base}/register", json=sent | changed)
    assert answer.status_code == 201, answer.text
    return Hand(home, answer.json()["client_id"], redirects[0] if redirects else REDIRECT)


async def calls(home: Home, token: str | None, tool: str = "list_tasks", **arguments: Any) -> httpx2.Response:
    """A tool call with a bearer token."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    body["params"]["_meta"] = {  # type: ignore[index]
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "hand", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    async with httpx2.AsyncClient(timeout=30) as http:
        return await http.post(home.url, json=body, headers=headers)
