"""A test for each published hole of MCP servers, memories and their libraries that could be one of ours, against a
server that asks for tokens. The names are those under which the holes were published."""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx2
import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.scope import Limits
from kalito_mcp.errors import KalitoError
from kalito_mcp.version import __version__
from kalito_mcp.wiring import open_memory
from tests.server.web import Web
from tests.web.talking import Caller, talking, token

EVIL = "evil.example.org"
SECRET = "the spare key hangs in the shed"


@dataclass(frozen=True)
class Running:
    serving: Web
    http: httpx2.Client
    database: Path
    admin: str
    writer: str
    reader: str
    other: str

    def caller(self, text: str) -> Caller:
        return Caller.connect(self.http, self.serving.url, text)

    def get(self, path: str, text: str | None = None, **headers: str) -> httpx2.Response:
        sent = {"Authorization": f"Bearer {text}"} if text else {}
        return self.http.get(path, headers={**sent, **headers})

    @property
    def port(self) -> int:
        [found] = re.findall(r":(\d+)/", self.serving.url)
        return int(found)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    database = tmp_path_factory.mktemp("holes") / "memory.db"
    texts = [token(database, one) for one in (Permission.ADMIN, Permission.WRITE, Permission.READ)]
    other = token(database, Permission.ADMIN, owner="other")
    with talking(database, KALITO_HTTP_REFUSALS_PER_MINUTE="100000") as (serving, http):
        run = Running(serving, http, database, *texts, other)
        run.caller(run.admin).call(
            "record_messages", {"session_id": "kept", "messages": [{"role": "user", "text": SECRET}]}
        )
        yield run


PATHS = (
    "/mcp", "/health/live", "/health/ready", "/metrics", "/api/openapi.json", "/api/records", "/nowhere", "/token",
    "/register", "/authorize", "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server",
)  # fmt: skip


def test_cve_2025_66416_dns_rebinding_reaches_no_route(running: Running) -> None:
    for path in PATHS:
        for name in (
            EVIL,
            f"127.0.0.1.{EVIL}",
            f"localhost.{EVIL}:{running.port}",
            f"127.0.0.1:{running.port}@{EVIL}",
            "",
        ):
            assert running.get(path, running.admin, Host=name).status_code in (400, 421), (path, name)


def test_cve_2025_66414_scripts_of_other_pages_reach_no_route(running: Running) -> None:
    for path in PATHS:
        for origin in (
            f"https://{EVIL}",
            "null",
            f"http://localhost.{EVIL}",
            f"http://127.0.0.1:{running.port}.{EVIL}",
        ):
            answer = running.get(path, running.admin, Origin=origin)
            assert answer.status_code == 403, (path, origin)
            assert "access-control-allow-origin" not in answer.headers


def test_cve_2026_33010_no_page_may_read_what_needs_a_token(running: Running) -> None:
    """CORS `*` together with no login let any page read and delete memories."""
    for path in ("/mcp", "/metrics", "/api/records", "/api/export", "/nowhere"):
        for method in ("OPTIONS", "GET", "POST", "DELETE"):
            for origin in (f"https://{EVIL}", "http://localhost:1"):
                asked = {"Origin": origin, "Access-Control-Request-Method": "DELETE"}
                answer = running.http.request(method, path, headers=asked)
                assert answer.status_code in (401, 403), (method, path)
                assert answer.headers.get("access-control-allow-origin") != "*"


def test_cve_2026_52869_and_33946_a_session_is_used_by_its_own_principal_alone(running: Running) -> None:
    mine = running.caller(running.writer)
    for stranger in (running.other, running.admin, running.reader):
        headers = {**mine.headers, "Authorization": f"Bearer {stranger}"}
        ping = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
        stolen = running.http.post(running.serving.url, headers=headers, json=ping)
        unknown = running.http.post(running.serving.url, headers={**headers, "Mcp-Session-Id": "0" * 32}, json=ping)
        assert (stolen.status_code, stolen.text) == (unknown.status_code, unknown.text)
        assert stolen.status_code == 404
        assert (
            running.http.get(running.serving.url, headers={**headers, "Accept": "text/event-stream"}).status_code == 404
        )
        assert running.http.delete(running.serving.url, headers=headers).status_code == 404
    assert mine.send({"jsonrpc": "2.0", "id": 6, "method": "ping"}).status_code == 200


def test_cve_2026_35568_who_has_no_token_gets_no_session(running: Running) -> None:
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
    answer = running.http.post(running.serving.url, json=hello)
    assert answer.status_code == 401
    assert "mcp-session-id" not in answer.headers


def test_cve_2026_29787_health_says_no_path_no_version_and_nothing_of_the_memory(running: Running) -> None:
    for path in ("/health/live", "/health/ready"):
        answer = running.get(path)
        assert answer.status_code == 200
        assert "server" not in answer.headers
        assert str(running.database.parent) not in answer.text
        assert __version__ not in answer.text
    ready = {"status", "store", "migration", "known_migration", "owed_s"}
    assert running.get("/health/ready").json().keys() == ready
    for path in ("/health", "/health/", "/health/detailed", "/health/live/..", "/stats", "/debug", "/docs"):
        answer = running.get(path)
        assert answer.status_code in (401, 404, 405), path
        assert str(running.database.parent) not in answer.text


def test_cve_2026_49291_who_may_read_deletes_and_writes_nothing(running: Running) -> None:
    caller = running.caller(running.reader)
    tools = {one["name"]: one for one in _listed(caller)}
    for name, tool in tools.items():
        is_read = tool["annotations"]["readOnlyHint"]
        params = {"name": name, "arguments": {"session_id": "kept", "record_ids": ["msg_1"], "record_id": "msg_1"}}
        answer = caller.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert (answer.status_code == 403) is not is_read, name
    for method, path in (("DELETE", "/api/records/msg_1"), ("POST", "/api/purge"), ("GET", "/api/export")):
        headers = {"Authorization": f"Bearer {running.reader}"}
        assert running.http.request(method, path, headers=headers, json={}).status_code == 403, path
    assert SECRET in str(running.caller(running.admin).call("search_memory", {"query": "spare key shed"}))


def _listed(caller: Caller) -> list[dict[str, Any]]:
    answer = caller.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    [line] = [line for line in answer.text.splitlines() if line.startswith(("data: {", "{"))]
    found: list[dict[str, Any]] = json.loads(line.removeprefix("data: "))["result"]["tools"]
    return found


def test_cve_2026_116575_owners_sessions_and_agents_are_never_joined_into_one_name(tmp_path: Path) -> None:
    """A tenant's key that was built with `&`, `=` and `:` was that of another one."""

    async def check() -> None:
        async with open_memory(tmp_path / "memory.db") as memory:
            parts = ["a", "a&b", "b", "a=b", "a:b", "a%3Ab", "a/b", "a..b", "a|b"]
            pairs = [(owner, session) for owner in parts for session in parts]
            for owner, session in pairs:
                theirs = memory.of_owner(owner)
                await theirs.remember("note", {"text": f"word{pairs.index((owner, session))}x"})
            for owner in parts:
                found = await memory.of_owner(owner).records.all(frozenset())
                wanted = {f"word{place}x" for place, (whose, _) in enumerate(pairs) if whose == owner}
                assert {one.text for one in found} == wanted

    anyio.run(check)


def test_cve_2026_115324_and_2025_67644_no_key_and_no_value_of_a_filter_reaches_the_sql(running: Running) -> None:
    caller = running.caller(running.writer)
    hostile = (
        "' OR 1=1 --",
        "x') UNION SELECT secret FROM identity --",
        "a.b['c']",
        'type" = 1; DROP TABLE records; --',
    )
    for text in hostile:
        for arguments in (
            {"query": "key", text: "x"},
            {"query": "key", "types": [text]},
            {"query": "key", "session_id": text},
            {"query": "key", "agent_id": text},
            {"query": "key", "tags": [text]},
            {"query": text},
        ):
            answer = json.dumps(caller.call("search_memory", arguments))
            assert "internal" not in answer
            assert "SQL" not in answer.replace(text, "")
            assert "syntax" not in answer
        for asked in (f"/api/records?{quote(text)}=x", f"/api/records?type={quote(text)}", f"/api/tasks?{quote(text)}"):
            assert running.get(asked, running.writer).status_code in (400, 404, 422), asked
    assert SECRET in str(caller.call("search_memory", {"query": "spare key shed"}))


def test_cve_2026_32247_an_entity_of_a_message_is_no_part_of_a_query(running: Running) -> None:
    caller = running.caller(running.admin)
    text = "Person`) DETACH DELETE n // is a type of \"entity\" named O'Brien'); DROP TABLE graph_nodes; --"
    caller.call("record_messages", {"session_id": "types", "messages": [{"role": "user", "text": text}]})
    caller.call("finalize_session", {"session_id": "types"})
    assert running.get("/api/graph", running.admin).status_code == 200
    assert "spare" in str(caller.call("search_memory", {"query": "spare key shed"}))


def test_cve_2025_53109_a_checkpoints_name_leaves_its_folder_nowhere(running: Running) -> None:
    caller = running.caller(running.admin)
    folder = running.database.with_name(f"{running.database.name}.snapshots")
    before = {one for one in running.database.parent.parent.rglob("*") if one.is_file()}
    names = ("../../etc/x", "..", "/etc/x", "a/../../b", "x\0y", "CON", "a\\b", "~/x", "%2e%2e%2fx", "a" * 300)
    for place, name in enumerate(names):
        session = f"checkpoint-{place}"
        caller.call("record_messages", {"session_id": session, "messages": [{"role": "user", "text": "Tea?"}]})
        caller.call("finalize_session", {"session_id": session, "checkpoint_name": name})
    new = {one for one in running.database.parent.parent.rglob("*") if one.is_file()} - before
    assert all(one.parent == folder or one.name.startswith(running.database.name) for one in new)


def test_cve_2025_64439_and_2026_48775_a_checkpoint_is_data_and_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (tmp_path / "memory.db.snapshots").mkdir()
    attacks = (
        f"cos\nsystem\n(S'touch {marker}'\ntR.".encode(),
        json.dumps(
            {"lc": 2, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": f"touch {marker}"}}
        ).encode(),
        json.dumps({"py/reduce": [{"py/type": "os.system"}, {"py/tuple": [f"touch {marker}"]}]}).encode(),
        f"!!python/object/apply:os.system ['touch {marker}']".encode(),
        b'{"graph": "\\ud800"}',
        b"[" * 100_000,
    )

    async def load() -> None:
        async with open_memory(tmp_path / "memory.db") as memory:
            for number, attack in enumerate(attacks):
                (tmp_path / "memory.db.snapshots" / f"attack{number}.json").write_bytes(attack)
                with pytest.raises(KalitoError):
                    await memory.orchestrator().restore_snapshot(f"attack{number}")

    anyio.run(load)
    assert not marker.exists()


def test_cve_2026_116686_no_schema_of_ours_points_to_a_file_or_a_url(running: Running) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from (str(one) for name, one in value.items() if name in ("$ref", "$dynamicRef", "$schema", "$id"))
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from references(one)

    found = {*references(_listed(running.caller(running.reader)))}
    found |= {*references(running.get("/api/openapi.json", running.reader).json())}
    assert [one for one in found if not one.startswith(("#/", "https://json-schema.org/"))] == []


def test_cve_2026_116685_no_answer_redirects_to_another_origin(running: Running) -> None:
    for path in ("/mcp/", f"//{EVIL}/mcp/", f"/%2f{EVIL}/", "/mcp//", "/health/live/", f"/\\{EVIL}/", "/metrics/"):
        answer = running.http.request(
            "GET", path, headers={"Authorization": f"Bearer {running.admin}"}, follow_redirects=False
        )
        target = answer.headers.get("location", "/")
        is_ours = f"://127.0.0.1:{running.port}/" in target or re.match(r"/(?!/)", target)
        assert is_ours, (path, target)


def test_a_token_in_the_address_counts_for_nothing(running: Running) -> None:
    for name in ("access_token", "token", "authorization", "api_key"):
        assert running.get(f"/metrics?{name}={running.admin}").status_code == 401
        assert running.get("/metrics", Cookie=f"{name}={running.admin}").status_code == 401


def test_a_limited_principal_reaches_no_other_project_whatever_it_names(running: Running) -> None:
    limited = token(running.database, Permission.ADMIN, limits=Limits(project="shop"))
    caller = running.caller(limited)
    for project in ("*", "personal", "", "../shop", None):
        caller.call(
            "search_memory", {"query": "spare key shed", **({"project": project} if project is not None else {})}
        )
    assert running.get("/metrics", limited).status_code == 403
    assert running.get("/api/audit", limited).status_code == 403


SMUGGLED = (
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    b"Content-Length: 4\r\nContent-Length: 44\r\n\r\nabcd",
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n",
    b"Content-Length: +4\r\n\r\nabcd",
    b"Content-Length: 4, 4\r\n\r\nabcd",
    b"Content-Length : 4\r\n\r\nabcd",
)


@pytest.mark.parametrize("framing", SMUGGLED, ids=range(len(SMUGGLED)))
def test_a_request_hidden_in_the_body_of_another_is_never_answered(running: Running, framing: bytes) -> None:
    hidden = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    head = b"POST /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.sendall(head + framing + hidden)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while chunk := connection.recv(65_536):
                answer += chunk
        except ConnectionError:
            pass
    # A length that is said twice and is the same is one length.
    answers = answer.count(b"HTTP/1.1 ")
    assert answers <= 1 or framing.startswith((b"Content-Length: 4, 4", SMUGGLED[0][:17], SMUGGLED[1][:17]))
    assert b"live\n" not in answer or answers > 1


@pytest.mark.parametrize("place", ["line", "field", "fields"])
def test_a_head_without_end_is_refused_and_not_kept(running: Running, place: str) -> None:
    head = {
        "line": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "field": b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        "fields": b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: a\r\n" * 15_000 + b"\r\n",
    }[place]
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        try:
            connection.sendall(head)
            answer = connection.recv(65_536)
        except ConnectionError:
            answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
