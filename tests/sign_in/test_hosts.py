"""What hosts need at their first connection, and when they come back after weeks."""

import json
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from kalito_mcp.access import clients as clients_module
from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.access.sign_in import SignIn
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.web.client_documents import ClientDocuments
from tests.scripted import ScriptedClock
from tests.sign_in.harness import REDIRECT, Browser, Hand, calls, handle_of, home, registered
from tests.sign_in.published import publishing

pytestmark = pytest.mark.anyio
DAY_S = 86_400


CURSOR: Final = "cursor://anysphere.cursor-mcp/oauth/callback"
CLAUDE: Final = "https://claude.ai/api/mcp/auth_callback"
CHATGPT: Final = "https://chatgpt.com/connector_platform_oauth_redirect"
# As each host registers, and where it then wants the answer.
REGISTRATIONS: Final = [
    (
        {
            "client_name": "Visual Studio Code",
            "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            "redirect_uris": ["https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"],
            "scope": "read write",
            "application_type": "native",
        },
        "http://127.0.0.1:59656/",
    ),
    ({"redirect_uris": [CURSOR]}, CURSOR),
    ({"redirect_uris": [CLAUDE], "token_endpoint_auth_method": "client_secret_post"}, CLAUDE),
    ({"redirect_uris": [CHATGPT], "token_endpoint_auth_method": "client_secret_basic", "logo_uri": ""}, CHATGPT),
    ({"redirect_uris": ["http://localhost:3118/callback"], "scope": ""}, "http://localhost:54545/callback"),
    ({"redirect_uris": ["http://127.0.0.1:1455/callback"]}, "http://127.0.0.1:40123/callback"),
]


async def test_each_host_registers_signs_in_and_renews(tmp_path: Path) -> None:
    async with home(tmp_path) as at, httpx2.AsyncClient() as http:
        for sent, redirect in REGISTRATIONS:
            answer = await http.post(f"{at.base}/register", json=sent)
            assert answer.status_code == 201, answer.text
            told = answer.json()
            assert told["redirect_uris"] == sent["redirect_uris"]
            assert ("client_secret" in told, told["token_endpoint_auth_method"]) == (False, "none")
            hand = Hand(at, told["client_id"], redirect)
            tokens = await hand.signed_in()
            assert await hand.may((await hand.renew(tokens["refresh_token"])).json()["access_token"])


async def test_the_form_counts_however_the_setting_writes_the_public_url(tmp_path: Path) -> None:
    policy = HttpPolicy(public_url="https://Memory.Example.org:443/")
    async with home(tmp_path, policy=policy) as at:
        hand = await registered(at)
        # As a browser sends it, through a proxy with TLS.
        named = {"host": "memory.example.org"}
        link = (await Browser().send("GET", hand.link(resource=None), headers=named)).headers["location"]
        page = await Browser().send("GET", link.replace("https://memory.example.org", at.base), headers=named)
        cookie = page.headers["set-cookie"].partition(";")[0]
        sent = named | {"origin": "https://memory.example.org", "cookie": cookie}
        form = {"request": handle_of(page), "answer": "deny"}
        answer = await Browser().send("POST", f"{at.base}/sign-in", data=form, headers=sent)
        assert answer.status_code == 303, answer.text


async def test_a_program_that_gave_up_signing_in_goes_on_weeks_later_with_the_id_that_it_kept(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        await hand.browser.open(hand.link())
        at.clock.advance(60 * DAY_S)
        await registered(at)
        assert (await hand.browser.open(hand.link())).status_code == 200
        at.clock.advance(31 * DAY_S)
        await registered(at)
        forgotten = await hand.browser.open(hand.link())
        assert (forgotten.status_code, "add it again" in forgotten.text) == (400, True)


async def test_a_program_that_was_used_for_long_and_then_revoked_can_be_let_in_again(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        tokens = await hand.signed_in()
        for _ in range(4):
            at.clock.advance(25 * DAY_S)
            tokens = (await hand.renew(tokens["refresh_token"])).json()
        for grant in await at.memory.access.sign_in.consents.all():
            await at.memory.access.revoke_token(grant.id)
        await registered(at)
        assert (await hand.browser.open(hand.link())).status_code == 200


async def test_whoever_registers_without_end_keeps_nobody_out(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ScriptedClock()
    clients = SignIn.over(store, clock).clients
    monkeypatch.setattr(clients_module, "_MOST_UNUSED", 3)
    made = []
    for number in range(5):
        made.append(await clients.register("Kite", [REDIRECT], address=f"192.0.2.{number}"))
        clock.advance(1)
    assert [one.id for one in made if await clients.find(one.id)] == [one.id for one in made[2:]]


async def test_a_token_for_the_name_that_the_server_had_is_not_renewed(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        tokens = await hand.signed_in()
    async with home(tmp_path, policy=HttpPolicy(public_url="https://memory.example.org")) as at:
        moved = Hand(at, hand.client_id)
        answer = await moved.renew(tokens["refresh_token"])
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), "so the program signs in again"
    async with home(tmp_path) as at:
        assert (
            await at.memory.access.sign_in.consents.verify_refresh_token(hand.client_id, tokens["refresh_token"])
            is not None
        )


async def test_the_first_403_says_where_to_ask_for_more(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        tokens = await (await registered(at)).signed_in(permission="read")
        turn = {"session_id": "s", "messages": [{"role": "user", "text": "We fly to Oslo."}]}
        refused = await calls(at, tokens["access_token"], "record_messages", **turn)
        metadata = f"{at.base}/.well-known/oauth-protected-resource/mcp"
        assert refused.status_code == 403
        assert refused.headers["www-authenticate"] == (
            f'Bearer error="insufficient_scope", scope="write", resource_metadata="{metadata}"'
        )


async def test_a_hint_of_a_kind_that_is_unknown_does_not_keep_a_token(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        tokens = await hand.signed_in()
        answer = await hand.post(
            "/revoke", token=tokens["refresh_token"], client_id=hand.client_id, token_type_hint="jwt"
        )
        assert (answer.status_code, await hand.may(tokens["access_token"])) == (200, False)


async def test_open_redirect_by_a_mistake_on_purpose_waits_for_a_click(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at, "https://evil.example/back")
        for changed in (
            {"response_type": "token"},
            {"resource": "https://other.example/mcp"},
            {"code_challenge": None},
        ):
            answer = await hand.browser.send("GET", hand.link(**changed))
            assert (answer.status_code, "location" in answer.headers) == (400, False)
            assert "<b>evil.example</b>" in answer.text
            [back] = [part.partition('"')[0].replace("&amp;", "&") for part in answer.text.split('href="')[1:]]
            told = parse_qs(urlsplit(back).query)
            assert (told["state"], told["iss"]) == (["the state & more"], [at.base])
            assert "error" in told


async def test_a_registration_that_is_too_long_is_refused_in_few_words(tmp_path: Path) -> None:
    sent = b'{"redirect_uris":[' + b",".join([b"1"] * 20_000) + b"]}"
    async with home(tmp_path) as at, httpx2.AsyncClient() as http:
        answer = await http.post(f"{at.base}/register", content=sent, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
        assert len(answer.content) < 1_000


async def test_a_description_with_a_redirect_that_is_no_url_is_refused(tmp_path: Path) -> None:
    with publishing() as published:
        async with home(tmp_path, documents=ClientDocuments(allows_loopback=True)) as at:
            for number, uri in enumerate(("https://a%b.example/x", "https://1.2.3.4.5/x", "com.example.app://a^b/x")):
                url = f"{published.base}/{number}.json"
                document = {"client_id": url, "client_name": "Kite", "redirect_uris": [uri, REDIRECT]}
                published.documents[f"/{number}.json"] = json.dumps(document).encode()
                hand = Hand(at, url)
                assert (await hand.browser.send("GET", hand.link())).status_code == 400, uri
