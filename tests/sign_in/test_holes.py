"""Each hole that others had in OAuth, tried here: what it would give, it does not give."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult

from kalito_mcp.access import consents
from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.access import Permission
from tests.sign_in.harness import (
    PASSPHRASE,
    REDIRECT,
    Browser,
    Hand,
    Program,
    calls,
    given,
    handle_of,
    home,
    registered,
)

pytestmark = pytest.mark.anyio


def refused(answer: httpx2.Response, error: str, status: int = 400) -> None:
    assert (answer.status_code, answer.json()["error"]) == (status, error)


async def test_code_reuse_ends_what_the_first_use_gave(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        code = await hand.code()
        tokens = (await hand.exchange(code)).json()
        assert await hand.may(tokens["access_token"])
        refused(await hand.exchange(code), "invalid_grant")
        assert not await hand.may(tokens["access_token"])
        refused(await hand.renew(tokens["refresh_token"]), "invalid_grant")


async def test_code_reuse_at_the_same_moment_leaves_nothing(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        code = await hand.code()
        answers: list[httpx2.Response] = []

        async def exchange() -> None:
            answers.append(await hand.exchange(code))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(exchange)
        given_out = [answer.json() for answer in answers if answer.status_code == 200]
        assert len(given_out) <= 1
        assert [await hand.may(one["access_token"]) for one in given_out] in ([], [False])


async def test_code_of_a_button_that_is_clicked_twice_is_one(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        first, second = await hand.browser.answer(page), await hand.browser.answer(page)
        assert second.headers["location"] == first.headers["location"], "the browser shows only the second answer"
        assert (await hand.browser.answer(page, answer="deny")).status_code == 403, "it is allowed"
        assert len(await at.memory.access.sign_in.consents.all()) == 1
        assert (await hand.exchange(given(second)["code"])).status_code == 200
        assert (await hand.browser.answer(page)).status_code == 403, "the code is used"


async def test_code_is_not_given_again_for_another_owner_or_after_it_expired(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        await at.memory.access.sign_in.passphrases.set("anna", "another long passphrase")
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        assert (await hand.browser.answer(page)).status_code == 303
        as_anna = await hand.browser.answer(page, owner="anna", passphrase="another long passphrase")
        at.clock.advance(61)
        assert [as_anna.status_code, (await hand.browser.answer(page)).status_code] == [403, 403]


async def test_code_and_refresh_token_of_another_client_are_none(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand, thief = await registered(at), await registered(at)
        code = await hand.code()
        thief.verifier = hand.verifier
        refused(await thief.exchange(code), "invalid_grant")
        answer = await hand.exchange(code)
        assert answer.status_code == 200
        refused(await thief.renew(answer.json()["refresh_token"]), "invalid_grant")
        assert (await hand.renew(answer.json()["refresh_token"])).status_code == 200


async def test_code_is_over_after_a_minute(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        code = await hand.code()
        at.clock.advance(61)
        refused(await hand.exchange(code), "invalid_grant")


async def test_refresh_reuse_ends_what_came_of_the_consent(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        first = await hand.signed_in()
        second = (await hand.renew(first["refresh_token"])).json()
        assert await hand.may(second["access_token"])
        at.clock.advance(61)
        refused(await hand.renew(first["refresh_token"]), "invalid_grant")
        assert not await hand.may(second["access_token"])
        refused(await hand.renew(second["refresh_token"]), "invalid_grant")


async def test_refresh_whose_answer_was_lost_may_be_asked_for_again(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        first = await hand.signed_in()
        lost = (await hand.renew(first["refresh_token"])).json()
        at.clock.advance(50)
        again = (await hand.renew(first["refresh_token"])).json()
        assert again["refresh_token"] == lost["refresh_token"], "one token comes next, however often it is asked for"
        assert again["access_token"] != lost["access_token"]
        assert await hand.may(again["access_token"])
        assert (await hand.renew(again["refresh_token"])).status_code == 200


async def test_refresh_by_processes_of_one_host_at_once_throws_none_of_them_out(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        first = await hand.signed_in()
        answers: list[httpx2.Response] = []

        async def renew() -> None:
            answers.append(await hand.renew(first["refresh_token"]))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(renew)
        assert [answer.status_code for answer in answers] == [200] * 5
        assert len({answer.json()["refresh_token"] for answer in answers}) == 1
        assert await hand.may(answers[0].json()["access_token"])


async def test_refresh_by_a_thief_within_the_minute_is_noticed_at_the_next_one(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        first = await hand.signed_in()
        theirs, ours = [(await hand.renew(first["refresh_token"])).json() for _ in range(2)]
        at.clock.advance(3_000)
        next_of_thief = (await hand.renew(theirs["refresh_token"])).json()
        at.clock.advance(61)
        refused(await hand.renew(ours["refresh_token"]), "invalid_grant")
        assert not await hand.may(next_of_thief["access_token"])


async def test_refresh_without_end_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(consents._RENEWALS, per_caller=3)
    monkeypatch.setattr(consents, "_RENEWALS", few)
    async with home(tmp_path) as at:
        hand = await registered(at)
        mine, other = await hand.signed_in(), await hand.signed_in()
        for _ in range(3):
            mine = (await hand.renew(mine["refresh_token"])).json()
        answer = await hand.renew(mine["refresh_token"])
        assert answer.status_code == 429
        assert (await hand.renew(other["refresh_token"])).status_code == 200, "a consent of its own"
        at.clock.advance(int(answer.headers["retry-after"]))
        assert (await hand.renew(mine["refresh_token"])).status_code == 200, "nothing was used up"


async def test_refresh_of_a_revoked_consent_is_not_asked_for_again(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        first = await hand.signed_in()
        await hand.renew(first["refresh_token"])
        [grant] = await at.memory.access.sign_in.consents.all()
        await at.memory.access.revoke_token(grant.id)
        refused(await hand.renew(first["refresh_token"]), "invalid_grant")


async def test_refresh_token_is_no_access_token_and_the_other_way_round(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        tokens = await hand.signed_in()
        assert not await hand.may(tokens["refresh_token"])
        refused(await hand.renew(tokens["access_token"]), "invalid_grant")


async def test_refresh_lasts_while_it_is_used_and_thirty_days_longer(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        tokens = await hand.signed_in()
        for _ in range(3):
            at.clock.advance(29 * 86_400)
            # The SDK compares with the machine's clock, which has not moved.
            tokens = (await hand.renew(tokens["refresh_token"])).json()
        at.clock.advance(31 * 86_400)
        refused(await hand.renew(tokens["refresh_token"]), "invalid_grant")


async def test_refresh_gives_no_more_than_the_consent(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        tokens = await hand.signed_in(permission="read")
        assert tokens["scope"] == "read"
        refused(await hand.renew(tokens["refresh_token"], scope="read write"), "invalid_scope")
        refused(await hand.renew(tokens["refresh_token"], scope="admin"), "invalid_scope")
        assert (await hand.renew(tokens["refresh_token"])).json()["scope"] == "read"


async def test_pkce_downgrade_is_refused(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        for changed in (
            {"code_challenge": None},
            {"code_challenge_method": "plain"},
            {"code_challenge": "short"},
            {"code_challenge": "=" * 43},
            {"code_challenge": None, "code_challenge_method": None},
            {"state": "x" * 5_000},
        ):
            answer = await hand.browser.send("GET", hand.link(**changed))
            assert (answer.status_code, given(answer)["error"]) == (302, "invalid_request"), changed
            assert "code" not in given(answer)


async def test_pkce_verifier_must_be_the_right_one(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        for verifier in ("", "wrong", hand.challenge):
            answer = await Hand(at, hand.client_id, verifier=verifier).exchange(await hand.code())
            assert answer.status_code == 400
            assert answer.json()["error"] in ("invalid_grant", "invalid_request")


async def test_state_comes_back_as_it_was_and_the_client_refuses_another(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        assert (await hand.browser.signs_in(hand.link()))["state"] == "the state & more"
        assert "state" not in await hand.browser.signs_in(hand.link(state=None))
        program = Program(at.url)

        async def mixed() -> AuthorizationCodeResult:
            back = await program.browser.signs_in(program.links[-1])
            return AuthorizationCodeResult(code=back["code"], state="another", iss=back["iss"])

        program.auth.context.callback_handler = mixed
        with pytest.raises(BaseExceptionGroup) as caught:
            await program.calls()
        assert caught.group_contains(OAuthFlowError, match="State")


async def test_mix_up_each_answer_names_its_issuer(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        assert (await hand.browser.signs_in(hand.link()))["iss"] == at.base
        denied = await hand.browser.answer(await hand.browser.open(hand.link()), answer="deny")
        assert given(denied) == {"error": "access_denied", "state": "the state & more", "iss": at.base}
        wrong = await hand.browser.send("GET", hand.link(resource="https://other.example/mcp"))
        assert (given(wrong)["error"], given(wrong)["iss"]) == ("invalid_target", at.base)
        program = Program(at.url)

        async def mixed() -> AuthorizationCodeResult:
            back = await program.browser.signs_in(program.links[-1])
            return AuthorizationCodeResult(code=back["code"], state=back["state"], iss="https://evil.example")

        program.auth.context.callback_handler = mixed
        with pytest.raises(BaseExceptionGroup) as caught:
            await program.calls()
        assert caught.group_contains(OAuthFlowError, match="iss")


REGISTERED = "https://app.example/back/here?kept=1"
TRICKS = [
    "https://app.example/back/here",
    "https://app.example/back/here?kept=2",
    "https://app.example/back/here?kept=1&more=1",
    "https://app.example/back/here/../there?kept=1",
    "https://app.example/back/here/?kept=1",
    "https://app.example/back/HERE?kept=1",
    "https://app.example/back/here?kept=1#part",
    "https://app.example/back%2Fhere?kept=1",
    "https://app.example/back/here%00?kept=1",
    "https://app.example.evil.example/back/here?kept=1",
    "https://app.example@evil.example/back/here?kept=1",
    "https://evil.example/back/here?kept=1",
    "https://evil.example\\@app.example/back/here?kept=1",
    "https://app.example:444/back/here?kept=1",
    "http://app.example/back/here?kept=1",
    "//app.example/back/here?kept=1",
    "javascript:alert(1)",
    "data:text/html,hello",
    "https://app.example/back/here?kept=1\r\nset-cookie: a=b",
    " https://evil.example/",
]


async def test_redirect_uri_must_be_registered_as_it_is(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at, REGISTERED)
        for uri in TRICKS:
            answer = await hand.browser.send("GET", hand.link(redirect_uri=uri))
            # To the person, and never to the address that was asked for: no open redirect.
            assert (answer.status_code, "location" in answer.headers) == (400, False), uri
            assert answer.headers["content-type"].startswith("text/html")


async def test_redirect_uri_of_this_device_may_have_any_port_and_nothing_else(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at, "http://127.0.0.1/back", "http://localhost/back?kept=1")
        for uri in ("http://127.0.0.1:4711/back", "http://localhost:4711/back?kept=1"):
            assert (await hand.browser.send("GET", hand.link(redirect_uri=uri))).status_code == 302
        for uri in (
            "http://127.0.0.1:4711/other",
            "http://127.0.0.1:4711/back?kept=1",
            "http://localhost:4711/back",
            "http://[::1]:4711/back",
            "http://127.0.0.1:4711@evil.example/back",
            "http://127.0.0.1.evil.example/back",
            "https://127.0.0.1:4711/back",
            "http://127.0.0.2/back",
        ):
            assert (await hand.browser.send("GET", hand.link(redirect_uri=uri))).status_code == 400, uri


async def test_redirect_uri_at_the_token_endpoint_must_be_the_same(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at, "https://app.example/one", "https://app.example/two")
        code = await hand.code()
        hand.redirect = "https://app.example/two"
        refused(await hand.exchange(code), "invalid_request")


async def test_open_redirect_by_an_unknown_client_shows_a_page(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        for client_id in ("nobody", "", "https://evil.example", "javascript:alert(1)", "<script>alert(1)</script>"):
            hand = Hand(at, client_id, "https://evil.example/")
            answer = await hand.browser.send("GET", hand.link())
            assert (answer.status_code, "location" in answer.headers) == (400, False)
            assert "<script" not in answer.text


async def test_resource_of_another_server_is_refused(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        for theirs in (
            "https://other.example/mcp",
            "http://127.0.0.1:1/mcp",
            f"{at.base}/other",
            f"{at.base}.evil.example/mcp",
            f"{at.base}@x/mcp",
        ):
            answer = await hand.browser.send("GET", hand.link(resource=theirs))
            assert given(answer)["error"] == "invalid_target", theirs
            refused(await hand.exchange(await hand.code(), resource=theirs), "invalid_target")


async def test_resource_of_this_server_may_be_named_in_several_ways(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        for named in (None, at.base, f"{at.base}/", f"{at.base}/mcp", f"{at.base}/mcp/"):
            code = (await hand.browser.signs_in(hand.link(resource=named)))["code"]
            tokens = (await hand.exchange(code, resource=named)).json()
            assert await hand.may(tokens["access_token"]), named


async def test_wrong_audience_a_token_for_the_server_by_another_name_is_refused(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        tokens = await (await registered(at)).signed_in()
    policy = HttpPolicy(public_url="https://memory.example.org")
    async with home(tmp_path, policy=policy) as at:
        assert (await calls(at, tokens["access_token"])).status_code == 401


async def test_token_of_a_revoked_consent_does_not_come_back_by_another(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        first, second = await hand.signed_in(), await hand.signed_in()
        assert (await hand.post("/revoke", token=first["refresh_token"], client_id=hand.client_id)).status_code == 200
        assert not await hand.may(first["access_token"])
        assert await hand.may(second["access_token"])
        refused(await hand.renew(first["refresh_token"]), "invalid_grant")
        assert (await hand.renew(second["refresh_token"])).status_code == 200


async def test_revocation_by_another_client_does_nothing(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand, thief = await registered(at), await registered(at)
        tokens = await hand.signed_in()
        for token in (tokens["access_token"], "kal_unknown", "x"):
            answer = await thief.post("/revoke", token=token, client_id=thief.client_id)
            assert answer.status_code == 200
        assert await hand.may(tokens["access_token"])


async def test_a_static_token_is_not_revoked_by_a_client(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        thief = await registered(at)
        made = await at.memory.access.create_token(Permission.READ, name="mine")
        assert (await thief.post("/revoke", token=made.text, client_id=thief.client_id)).status_code == 200
        assert await thief.may(made.text)


async def test_what_opens_the_page_opens_neither_mcp_nor_rest(tmp_path: Path) -> None:
    async with home(tmp_path) as at, httpx2.AsyncClient(base_url=at.base, timeout=30) as http:
        link = await at.memory.access.pages.link()
        cookie = await at.memory.access.pages.enter(await at.memory.access.pages.link())
        assert cookie is not None
        for text in (link, cookie.text):
            assert (await calls(at, text)).status_code == 401
            answer = await http.get("/api/stats", headers={"authorization": f"Bearer {text}"})
            assert (answer.status_code, "for the web page alone" in answer.text) == (401, True)
        assert await at.memory.access.pages.enter(link) is not None


async def test_the_greatest_permission_needs_both_to_say_so(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link(scope="read write admin"))
        assert 'value="admin"' in page.text
        assert 'value="admin" checked' not in page.text
        tokens = await hand.exchange(given(await hand.browser.answer(page, permission="admin"))["code"])
        assert tokens.json()["scope"] == "read write admin"
        # Not asked for: not on the page, and not given, whatever the form says.
        page = await hand.browser.open(hand.link(scope="read write"))
        assert 'value="admin"' not in page.text
        tokens = await hand.exchange(given(await hand.browser.answer(page, permission="admin"))["code"])
        assert tokens.json()["scope"] == "read write"
        # Chosen by nobody: the least.
        page = await hand.browser.open(hand.link(scope="read write admin"))
        tokens = await hand.exchange(given(await hand.browser.answer(page, permission="all"))["code"])
        assert tokens.json()["scope"] == "read"


async def test_a_consent_leaves_no_token_behind(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link(scope="read write admin"))
        tokens = (await hand.exchange(given(await hand.browser.answer(page, permission="admin"))["code"])).json()
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {tokens['access_token']}"}) as http:
            assert (await http.get(f"{at.base}/api/tokens")).status_code == 200
            made = await http.post(f"{at.base}/api/tokens", json={"permission": "read", "days": 1})
            refused(made, "forbidden", 403)


async def test_scopes_that_are_not_ours_are_ignored(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        link = hand.link(scope="openid offline_access read")
        tokens = (await hand.exchange((await hand.browser.signs_in(link))["code"])).json()
        assert tokens["scope"] == "read"


async def test_csrf_a_form_from_another_browser_or_page_is_refused(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        victim = Browser()
        assert (await victim.answer(page)).status_code == 403, "it has no cookie of this request"
        other = await hand.browser.open(hand.link())
        swapped = await victim.answer(other)
        assert swapped.status_code == 403
        for headers in ({"origin": "https://evil.example"}, {"origin": "http://localhost:1"}, {"origin": "null"}):
            form = {"request": handle_of(page), "answer": "allow", "owner": "local", "passphrase": PASSPHRASE}
            answer = await hand.browser.send("POST", f"{at.base}/sign-in", data=form, headers=headers)
            assert answer.status_code == 403, headers
        form["answer"] = "deny"
        answer = await hand.browser.send(
            "POST", f"{at.base}/sign-in", data=form, headers={"sec-fetch-site": "cross-site"}
        )
        assert answer.status_code == 403
        assert (await hand.browser.answer(page)).status_code == 303, "and its own page still works"


async def test_a_request_belongs_to_the_browser_that_shows_it_first(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        assert (await hand.browser.send("GET", page.url)).status_code == 200, "it can be loaded again"
        assert (await Browser().send("GET", page.url)).status_code == 404
        assert (await hand.browser.answer(page)).status_code == 303
        assert (await hand.browser.send("GET", page.url)).status_code == 404, "it is answered"


async def test_a_request_is_over_after_ten_minutes(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        at.clock.advance(601)
        assert (await hand.browser.answer(page)).status_code == 403
        assert (await hand.browser.send("GET", page.url)).status_code == 404


async def test_two_requests_are_answered_side_by_side(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        first, second = await hand.browser.open(hand.link()), await hand.browser.open(hand.link())
        assert (await hand.browser.answer(first)).status_code == 303
        assert (await hand.browser.answer(second)).status_code == 303


async def test_clickjacking_and_scripts_are_shut_out_by_the_headers(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        wrong = await hand.browser.answer(page, passphrase="not the right one")
        gone = await hand.browser.send("GET", f"{at.base}/sign-in?request=none")
        assert "form-action 'none'" in gone.headers["content-security-policy"]
        for one in (page, wrong, gone):
            policy = dict(part.strip().split(" ", 1) for part in one.headers["content-security-policy"].split(";"))
            assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
            assert policy["style-src"].startswith("'sha256-")
            assert one.headers["x-frame-options"] == "DENY"
            assert one.headers["cache-control"] == "no-store"
            assert one.headers["x-content-type-options"] == "nosniff"
            assert one.headers["referrer-policy"] == "same-origin"
            assert "<script" not in one.text
        cookie = (
            await Browser().send("GET", (await hand.browser.send("GET", hand.link())).headers["location"])
        ).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie


async def test_what_a_client_says_of_itself_is_only_text(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hostile = '<img src=x onerror=alert(1)>"\u202e\x00' + "A" * 500
        hand = await registered(at, client_name=hostile)
        page = await hand.browser.open(hand.link())
        assert "<img" not in page.text
        assert "\u202e" not in page.text
        assert "A" * 100 not in page.text
        assert "The program chose this name itself; nobody has checked it." in page.text
        assert "localhost:8912" in page.text


async def test_parameters_sent_twice_are_refused(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        headers = {"content-type": "application/x-www-form-urlencoded"}
        for name in ("redirect_uri", "client_id", "resource", "code_challenge", "state", "scope"):
            answer = await hand.browser.send("GET", f"{hand.link()}&{name}=https%3A%2F%2Fevil.example")
            assert (answer.status_code, "location" in answer.headers) == (400, False), name
            body = f"grant_type=authorization_code&code=x&client_id={hand.client_id}&{name}=a&{name}=b"
            refused(await Browser().send("POST", f"{at.base}/token", content=body, headers=headers), "invalid_request")


async def test_a_request_without_parameters_is_told_that_it_has_none(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        for method in ("GET", "POST"):
            answer = await Browser().send(method, f"{at.base}/authorize")
            assert (answer.status_code, "location" in answer.headers) == (400, False)
            assert ("sent no parameters" in answer.text, "twice" in answer.text) == (True, False)


async def test_tokens_in_the_query_are_none(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        tokens = await hand.signed_in()
        answer = await Browser().send("POST", f"{at.url}?access_token={tokens['access_token']}", json={})
        assert answer.status_code == 401


async def test_who_was_let_in_is_in_the_audit_log(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        await hand.browser.answer(await hand.browser.open(hand.link()), passphrase="a wrong passphrase")
        await hand.browser.answer(await hand.browser.open(hand.link()), answer="deny")
        await hand.signed_in()
        [entry] = [one.said for one in await at.memory.access.audit() if one.said.action == "sign_in"]
        [grant] = await at.memory.access.sign_in.consents.all()
        assert (entry.principal, entry.owner, entry.client) == (grant.id, "local", hand.client_id)


async def test_revocation_takes_either_token_and_a_consent_that_is_not_used_yet(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        tokens = await hand.signed_in()
        assert (await hand.post("/revoke", token=tokens["access_token"], client_id=hand.client_id)).status_code == 200
        refused(await hand.renew(tokens["refresh_token"]), "invalid_grant")
        code = await hand.code()
        [grant, *_] = await at.memory.access.sign_in.consents.all()
        assert await at.memory.access.revoke_token(grant.id) == [grant.id]
        refused(await hand.exchange(code), "invalid_grant")


async def test_of_too_many_questions_the_oldest_go_and_those_first_that_nobody_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kalito_mcp.access.consents._MOST_REQUESTS", 2)
    async with home(tmp_path) as at:
        hand = await registered(at)
        flooding = [await hand.browser.send("GET", hand.link()) for _ in range(2)]
        # Who comes to sign in is not kept out by what nobody looks at.
        pages = []
        for _ in range(2):
            at.clock.advance(1)
            pages.append(await hand.browser.open(hand.link()))
        assert [page.status_code for page in pages] == [200, 200]
        gone = await hand.browser.send("GET", flooding[0].headers["location"])
        assert gone.status_code == 404
        # Nor by what somebody looks at and never answers.
        at.clock.advance(1)
        third = await hand.browser.open(hand.link())
        assert third.status_code == 200
        assert [(await hand.browser.answer(page, answer="deny")).status_code for page in pages] == [403, 303]


async def test_what_is_no_form_is_refused(tmp_path: Path) -> None:
    form = "application/x-www-form-urlencoded"
    async with home(tmp_path) as at:
        for body, kind in (
            (b"grant_type=authorization_code", "application/json"),
            (b"\xff\xfe=1", form),
            (b"&".join(b"a%d=1" % number for number in range(60)), form),
            (b"", form),
        ):
            for path in ("/token", "/revoke"):
                answer = await Browser().send("POST", f"{at.base}{path}", content=body, headers={"content-type": kind})
                refused(answer, "invalid_request")
            answer = await Browser().send("POST", f"{at.base}/authorize", content=body, headers={"content-type": kind})
            assert answer.status_code == 400


async def test_a_failure_says_nothing_of_this_machine(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        path = tmp_path / "memory.db"
        path.rename(tmp_path / "moved.db")
        answer = await hand.renew("kal_x")
        assert (answer.status_code, str(tmp_path) in answer.text) == (503, False)
        (tmp_path / "moved.db").rename(path)


async def test_nothing_secret_is_stored_as_it_is(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        code = given(await hand.browser.answer(page))["code"]
        tokens = (await hand.exchange(code)).json()
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        secrets = [code, handle_of(page), tokens["access_token"], tokens["refresh_token"], PASSPHRASE]
        secrets += [cookie.value or "-" for cookie in hand.browser.cookies.jar]
        for secret in secrets:
            assert secret.encode() not in stored


async def test_a_memory_of_other_owners_cannot_be_chosen_without_their_passphrase(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        await at.memory.access.sign_in.passphrases.set("anna", "another long passphrase")
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        assert (await hand.browser.answer(page, owner="anna")).status_code == 403
        assert urlsplit((await hand.browser.answer(page)).headers["location"]).netloc == "localhost:8912"
        assert REDIRECT.startswith("http://localhost:8912")
