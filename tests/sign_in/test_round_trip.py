"""The SDK's own OAuth client finds the sign-in, registers, is let in, calls, renews, and is revoked."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.server import watcher
from kalito_mcp.web.urls import ServerUrls
from tests.server import prepared
from tests.server.web import web
from tests.server.wire import COVERED, PATIENCE_S, clean_environment
from tests.sign_in.harness import (
    PASSPHRASE,
    Browser,
    Hand,
    Home,
    Program,
    calls,
    given,
    handle_of,
    home,
    now_clock,
    registered,
)

pytestmark = pytest.mark.anyio
TURN = {"session_id": "s", "messages": [{"role": "user", "text": "We fly to Oslo."}]}


async def test_a_client_registers_is_let_in_calls_and_renews(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        program = Program(at.url)
        assert not (await program.calls("record_messages", **TURN)).is_error
        first = program.tokens
        assert first is not None
        assert (first.scope, first.expires_in) == ("read write", 3_600)
        assert program.info is not None
        assert (program.info.client_secret, program.info.token_endpoint_auth_method) == (None, "none")

        at.clock.advance(3_601)
        assert (await calls(at, first.access_token)).status_code == 401
        program.auth.context.token_expiry_time = 1.0  # the SDK reads the machine's clock
        assert not (await program.calls()).is_error
        assert program.tokens is not None
        assert program.tokens.refresh_token != first.refresh_token
        assert len(program.links) == 1, "the person was asked once"


async def test_what_a_client_records_is_in_the_memory_of_who_let_it_in(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        await at.memory.access.sign_in.passphrases.set("anna", "another long passphrase")
        program = Program(at.url, fields={"owner": "anna", "passphrase": "another long passphrase"})
        assert not (await program.calls("record_messages", **TURN)).is_error
        assert [one.id for one in await at.memory.of_owner("anna").conversations.recent()] == ["s"]
        assert not await at.memory.conversations.recent()


async def test_a_client_that_was_let_in_to_read_asks_again_for_more(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        program = Program(at.url, fields={"permission": "read"})
        assert not (await program.calls()).is_error
        assert program.tokens is not None
        assert program.tokens.scope == "read"
        program.fields = {"permission": "write"}
        assert not (await program.calls("record_messages", **TURN)).is_error
        assert len(program.links) == 2


async def test_a_client_that_is_let_in_anew_goes_on_in_its_session_and_hears_of_changes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a session of the 2025 protocol, whose subscriptions ended with the first consent."""
    monkeypatch.setattr(watcher, "LOOK_S", 0.05)
    async with home(tmp_path) as at, httpx2.AsyncClient(timeout=30) as http:
        hand = await registered(at)
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}

        async def send(token: str, method: str, **params: Any) -> httpx2.Response:
            headers["authorization"] = f"Bearer {token}"
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return await http.post(at.url, headers=headers, json=message)

        first = (await hand.signed_in())["access_token"]
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        headers["mcp-session-id"] = (await send(first, "initialize", **about)).headers["mcp-session-id"]
        await send(first, "resources/subscribe", uri="memory://sessions")
        [grant] = await at.memory.access.sign_in.consents.all()
        await at.memory.access.revoke_token(grant.id)
        assert (await send(first, "resources/subscribe", uri="memory://sessions")).status_code == 401
        again = (await hand.signed_in())["access_token"]
        assert (await send(again, "resources/subscribe", uri="memory://sessions")).status_code == 200
        with anyio.fail_after(10):
            async with http.stream("GET", at.url, headers=headers) as heard:
                await at.memory.record_messages("trip", [NewMessage(Role.USER, "To Oslo.")])
                async for line in heard.aiter_lines():
                    if "notifications/resources/updated" in line:
                        break


async def test_the_first_401_says_where_to_sign_in_and_for_what(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        refused = await calls(at, None)
        assert refused.status_code == 401
        metadata = f"{at.base}/.well-known/oauth-protected-resource/mcp"
        assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}", scope="read write"'
        again = await calls(at, "kal_wrong")
        assert again.headers["www-authenticate"].startswith('Bearer error="invalid_token", resource_metadata=')


async def test_the_documents_say_what_is_true(tmp_path: Path) -> None:
    async with home(tmp_path) as at, httpx2.AsyncClient(base_url=at.base) as http:
        for place in ("", "/mcp"):
            resource = (await http.get(f"/.well-known/oauth-protected-resource{place}")).json()
            assert (resource["resource"], resource["authorization_servers"]) == (at.url, [at.base])
            assert resource["scopes_supported"] == ["read", "write"]
        places = (
            "/.well-known/oauth-authorization-server",
            "/.well-known/oauth-authorization-server/mcp",
            "/mcp/.well-known/oauth-authorization-server",
        )
        [server] = {(await http.get(place)).text: 1 for place in places}
        told = (await http.get(places[0])).json()
        assert server == (await http.get(places[0])).text
        assert told["issuer"] == at.base
        assert told["code_challenge_methods_supported"] == ["S256"]
        assert told["token_endpoint_auth_methods_supported"] == ["none"]
        assert told["scopes_supported"] == ["read", "write", "admin"]
        assert told["client_id_metadata_document_supported"] is False, "a memory of one machine asks nobody"
        assert told["authorization_response_iss_parameter_supported"] is True
        for endpoint in ("authorization", "token", "registration", "revocation"):
            # Each is there: it refuses an empty request, and does not ask for a token.
            url = told[f"{endpoint}_endpoint"]
            assert (await http.request("GET" if endpoint == "authorization" else "POST", url)).status_code == 400


async def test_a_public_server_says_its_public_name_everywhere(tmp_path: Path) -> None:
    policy = HttpPolicy(public_url="https://Memory.Example.org:443/")
    async with home(tmp_path, policy=policy) as at, httpx2.AsyncClient(base_url=at.base) as http:
        for host in ("memory.example.org", at.base.removeprefix("http://"), "localhost"):
            http.headers["host"] = host
            told = (await http.get("/.well-known/oauth-authorization-server")).json()
            assert (told["issuer"], told["client_id_metadata_document_supported"]) == (
                "https://memory.example.org",
                True,
            )
            assert (await http.post("/mcp")).headers["www-authenticate"] == (
                'Bearer resource_metadata="https://memory.example.org/.well-known/oauth-protected-resource/mcp", '
                'scope="read write"'
            )
        http.headers["host"] = "memory.example.org"
        registered = await http.post("/register", json={"redirect_uris": ["https://claude.ai/api/mcp/auth_callback"]})
        query = {
            "response_type": "code",
            "client_id": registered.json()["client_id"],
            "code_challenge": "c" * 43,
            "code_challenge_method": "S256",
        }
        link = (await http.get("/authorize", params=query)).headers["location"]
        assert link.startswith("https://memory.example.org/sign-in?request=")
        page = await http.get(link.removeprefix("https://memory.example.org"))
        cookie = page.headers["set-cookie"]
        assert cookie.startswith("__Host-kalito-")
        assert "Secure" in cookie
        assert "The answer goes to <b>claude.ai</b>" in page.text


async def test_nobody_types_a_passphrase_into_a_page_without_tls_from_another_machine(tmp_path: Path) -> None:
    async with home(tmp_path, policy=HttpPolicy(hosts=("mybox",))) as at:
        hand = await registered(at)
        link = (await hand.browser.send("GET", hand.link())).headers["location"]
        page = await hand.browser.send("GET", link, headers={"host": "mybox:8765"})
        assert (page.status_code, 'name="passphrase"' in page.text) == (403, False)
        assert "http.public_url" in page.text
        assert (await hand.browser.send("GET", link)).status_code == 200


def test_a_public_url_that_cannot_be_an_issuer_is_refused() -> None:
    for url in (
        "http://memory.example.org",
        "https://memory.example.org/path",
        "memory.example.org",
        "https://a@b.example",
        "https://a:b",
    ):
        with pytest.raises(ConfigurationError, match=r"http\.public_url"):
            ServerUrls.of(url, port=1)


async def test_who_calls_the_server_localhost_stays_there(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        program = Program(at.url.replace("127.0.0.1", "localhost"))
        assert not (await program.calls()).is_error
        assert program.links[0].startswith(at.base.replace("127.0.0.1", "localhost"))


async def test_without_the_page_there_is_none_of_it(tmp_path: Path) -> None:
    async with home(tmp_path, policy=HttpPolicy(sign_in=False)) as at, httpx2.AsyncClient(base_url=at.base) as http:
        for path in ("/authorize", "/sign-in", "/.well-known/oauth-protected-resource", "/register"):
            assert (await http.get(path)).status_code == 401
        assert (await calls(at, None)).headers["www-authenticate"] == "Bearer"


def run(database: Path, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return prepared.run(
        [sys.executable, "-m", "kalito_mcp", *arguments],
        input=stdin,
        text=True,
        capture_output=True,
        timeout=PATIENCE_S,
        env=clean_environment(KALITO_DATABASE=str(database), **COVERED),
        check=False,
    )


async def test_a_consent_outlives_the_process_and_is_revoked_by_the_command_line(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    assert run(database, "passphrase", stdin="short\n").stderr.startswith("kalito-mcp: the passphrase is too short")
    assert run(database, "passphrase", stdin=f"{PASSPHRASE}\n").stdout == "the passphrase of local is set\n"
    with web("http", database, login=True) as server:
        port = server.url.split(":")[2].split("/")[0]
        program = Program(server.url)
        assert not (await program.calls("record_messages", **TURN)).is_error
    with web("http", database, "--port", port, login=True) as server:
        assert not (await program.calls()).is_error
        program.auth.context.token_expiry_time = 1.0
        assert not (await program.calls()).is_error
        assert len(program.links) == 1
        listed = run(database, "token", "list").stdout.splitlines()
        [line] = [one for one in listed if "Kite" in one]
        assert ", signed in, used 20" in line
        grant = line.split()[0]
        assert run(database, "token", "revoke", grant).stdout.startswith(f"revoked {grant}, tok_")
        assert ", revoked, " in run(database, "token", "list").stdout
        assert program.tokens is not None
        answer = await Browser().send(
            "POST", server.url, headers={"authorization": "Bearer " + program.tokens.access_token}
        )
        assert answer.status_code == 401
        # Signing in again works, until the passphrase is changed and all are signed out.
        assert not (await program.calls()).is_error
        changed = run(database, "passphrase", "--sign-out", stdin="another long passphrase\n").stdout
        assert "signed out: grant_" in changed
        answer = await Browser().send(
            "POST", server.url, headers={"authorization": "Bearer " + program.tokens.access_token}
        )
        assert answer.status_code == 401


@pytest.mark.campaign
async def test_several_processes_share_what_one_of_them_was_told(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    run(database, "passphrase", stdin=f"{PASSPHRASE}\n")
    with web("http", database, login=True) as first:
        public = first.url.removesuffix("/mcp")
        # The second one stands for the same site, as behind a balancer.
        with web("http", database, login=True, KALITO_HTTP_PUBLIC_URL=public) as second:
            one = Home(public, None, now_clock())  # type: ignore[arg-type]  # the memory is in the other processes
            other = Home(second.url.removesuffix("/mcp"), None, now_clock())  # type: ignore[arg-type]
            here = await registered(one)
            there = Hand(other, here.client_id, verifier=here.verifier, browser=here.browser)
            asked = await there.browser.send("GET", there.link(resource=one.url))
            page = await here.browser.send("GET", asked.headers["location"])
            code = given(await here.browser.answer(page))["code"]
            tokens = (await there.exchange(code)).json()
            assert await here.may(tokens["access_token"])
            assert await there.may(tokens["access_token"])
            renewed = (await here.renew(tokens["refresh_token"])).json()
            assert await there.may(renewed["access_token"])
            again = (await there.renew(tokens["refresh_token"])).json()
            assert again["refresh_token"] == renewed["refresh_token"], "the same next token in both"
            assert (
                await there.post("/revoke", token=again["access_token"], client_id=here.client_id)
            ).status_code == 200
            assert not await here.may(renewed["access_token"])
            # Guesses count together: where one of them lets wait, the other does.
            page = await here.browser.open(here.link())
            form = {"request": handle_of(page), "answer": "allow", "owner": "local", "passphrase": "a wrong passphrase"}

            async def guess(at: Home) -> int:
                return (await here.browser.send("POST", f"{at.base}/sign-in", data=form)).status_code

            elsewhere = []
            while len(elsewhere) < 3 and 429 not in elsewhere:  # a slow machine may wait out a short pause
                while await guess(one) != 429:
                    pass
                elsewhere.append(await guess(other))
            assert elsewhere[-1] == 429
