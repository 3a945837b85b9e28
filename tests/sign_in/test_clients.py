"""Programs that register themselves, and programs whose id is the URL of their description."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from kalito_mcp.access import clients as clients_module
from kalito_mcp.access.redirects import checked_redirect
from kalito_mcp.errors import InvalidInput
from kalito_mcp.safety.addresses import is_public
from kalito_mcp.web.client_documents import ClientDocuments, is_document_url
from tests.sign_in.harness import REDIRECT, Hand, Program, given, home, registered
from tests.sign_in.published import Published, certificate_for, publishing

pytestmark = pytest.mark.anyio
DAY_S = 86_400


async def test_redirects_to_the_web_and_to_programs_on_the_device_are_registered(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        for uri in (
            "https://claude.ai/api/mcp/auth_callback",
            "http://127.0.0.1:33418/",
            "http://localhost/callback",
            "http://[::1]:9/callback",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "com.example.app:/back",
        ):
            hand = await registered(at, uri)
            back = await hand.browser.answer(await hand.browser.open(hand.link()))
            assert back.headers["location"].startswith(uri)
            assert (await hand.exchange(given(back)["code"])).status_code == 200


BAD_REDIRECTS = [
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "blob:https://app.example/1",
    "intent://x",
    "ftp://app.example/back",
    "http://app.example/back",
    "http://localhost.evil.example/back",
    "http://127.0.0.1@evil.example/back",
    "http://0.0.0.0/back",
    "http://192.168.0.1/back",
    "https://user:secret@app.example/back",
    "https://app.example/back#part",
    "https:///back",
    "https://app.example/a b",
    "https://app.example/back\\..\\x",
    "https://app.example:port/back",
    "/back",
    "",
    "https://app.example/" + "x" * 2_000,
    "https://\u0430pp.example/back",
]


async def test_other_redirects_are_not_registered(tmp_path: Path) -> None:
    async with home(tmp_path) as at, httpx2.AsyncClient() as http:
        for uri in BAD_REDIRECTS:
            with pytest.raises(InvalidInput):
                checked_redirect(uri)
            at.clock.advance(3_600)  # registrations are limited
            answer = await http.post(f"{at.base}/register", json={"client_name": "Kite", "redirect_uris": [uri]})
            # As written they are refused; where the SDK's parser writes them differently, what it wrote is judged.
            if answer.status_code == 201:
                assert all(one.startswith("https://") for one in answer.json()["redirect_uris"]), answer.text
                assert uri.startswith(
                    ("https:///", "https://\u0430", "https://app.example/a b", "https://app.example/back\\")
                )
            else:
                assert answer.status_code == 400, uri


async def test_registrations_that_are_none_are_refused(tmp_path: Path) -> None:
    async with home(tmp_path) as at, httpx2.AsyncClient() as http:
        for sent in (b"", b"[]", b"null", b"{", *(b'{"redirect_uris": %s}' % one for one in (b"[]", b'"x"', b"[1]"))):
            answer = await http.post(f"{at.base}/register", content=sent, headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata"), sent


async def test_registrations_are_limited_for_an_address_and_come_back(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        for _ in range(clients_module._REGISTRATIONS.per_caller):
            await registered(at)
        async with httpx2.AsyncClient() as http:
            sent = {"client_name": "Kite", "redirect_uris": [REDIRECT]}
            answer = await http.post(f"{at.base}/register", json=sent)
            assert answer.status_code == 429
            at.clock.advance(int(answer.headers["retry-after"]))
            assert (await http.post(f"{at.base}/register", json=sent)).status_code == 201


async def test_a_client_that_was_let_in_stays_and_one_that_was_forgotten_is_told_so(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        used, unused = await registered(at), await registered(at)
        tokens = await used.signed_in()
        for _ in range(4):
            at.clock.advance(25 * DAY_S)
            tokens = (await used.renew(tokens["refresh_token"])).json()
        await registered(at)
        assert (await used.renew(tokens["refresh_token"])).status_code == 200
        answer = await unused.renew("kal_x")
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), "the client registers again"


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate for localhost that this process trusts."""
    certificate = certificate_for("localhost", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return certificate


def describe(published: Published, path: str = "/oauth/client.json", **changed: Any) -> str:
    """Publish a description of a client; its URL."""
    url = f"{published.base}{path}"
    document = {"client_id": url, "client_name": "Kite", "redirect_uris": ["http://localhost/callback"]}
    published.documents[path] = json.dumps(document | changed).encode()
    return url


async def test_a_client_that_publishes_its_description_is_let_in_without_registering(
    tmp_path: Path, trusted: Path
) -> None:
    documents = ClientDocuments(allows_loopback=True)
    with publishing(trusted, "localhost") as published:
        async with home(tmp_path, documents=documents) as at:
            program = Program(at.url, document=describe(published))
            assert not (await program.calls()).is_error
            assert program.info is not None
            assert program.info.client_id == program.document
            page = await program.browser.open(program.links[0])
            assert "It is described at <b>localhost</b>." in page.text
            assert published.asked == ["/oauth/client.json"], "and read once an hour"
            at.clock.advance(3_601)
            await program.browser.open(program.links[0])
            assert len(published.asked) == 2
            [grant, *_] = await at.memory.access.sign_in.consents.all()
            assert (grant.client_id, grant.client_name) == (program.document, "Kite")
            program.auth.context.token_expiry_time = 1.0
            assert not (await program.calls()).is_error
            assert len(published.asked) == 2, "never at the token endpoint"


async def test_a_description_that_is_not_the_clients_is_refused(tmp_path: Path) -> None:
    with publishing() as published:
        async with home(tmp_path, documents=ClientDocuments(allows_loopback=True)) as at:
            for changed in (
                {"client_id": "https://other.example/client.json"},
                {"redirect_uris": []},
                {"redirect_uris": None},
                {"redirect_uris": "http://localhost/callback"},
                {"redirect_uris": ["javascript:alert(1)"]},
                {"token_endpoint_auth_method": "client_secret_post"},
                {"client_secret": "published"},
            ):
                at.clock.advance(3_601)  # it is read again
                hand = Hand(at, describe(published, **changed))
                answer = await hand.browser.send("GET", hand.link())
                assert (answer.status_code, "location" in answer.headers) == (400, False), changed


async def test_a_description_is_not_read_without_end(tmp_path: Path) -> None:
    with publishing() as published:
        documents = published.documents
        documents["/long"] = b'{"x": "' + b"x" * 20_000 + b'"}'
        documents["/moved"] = (302, {"location": f"{published.base}/oauth/client.json"}, b"")
        documents["/not-json"] = b"<html>"
        documents["/failed"] = (500, {}, b"{}")
        documents["/deep"] = b"[" * 10_000
        describe(published)
        read = ClientDocuments(allows_loopback=True).read
        for path, said in (
            ("/long", "16,384 bytes"),
            ("/moved", "answered 302"),
            ("/not-json", "not JSON"),
            ("/failed", "answered 500"),
            ("/deep", "not JSON"),
            ("/none", "answered 404"),
        ):
            with pytest.raises(InvalidInput, match=said):
                await read(f"{published.base}{path}")
        assert published.asked.count("/oauth/client.json") == 0, "a redirect is not followed"
    with pytest.raises(InvalidInput, match="connection failed"):
        await read(f"{published.base}/oauth/client.json")


async def test_a_description_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kalito_mcp.web.client_documents._TIMEOUT_S", 0.2)
    with publishing() as published:
        published.held.add("/held")
        with pytest.raises(InvalidInput, match=r"within 0\.2 s"):
            await ClientDocuments(allows_loopback=True).read(f"{published.base}/held")


async def test_a_description_over_tls_must_have_the_right_certificate(tmp_path: Path, trusted: Path) -> None:
    with publishing(certificate_for("other.example", tmp_path), "localhost") as published:
        with pytest.raises(InvalidInput, match="connection failed"):
            await ClientDocuments(allows_loopback=True).read(describe(published))
        assert published.asked == []
    with publishing(trusted, "localhost") as published:
        assert (await ClientDocuments(allows_loopback=True).read(describe(published)))[0] == "Kite"


async def test_descriptions_are_read_a_limited_number_of_times(tmp_path: Path) -> None:
    with publishing() as published:
        async with home(tmp_path, documents=ClientDocuments(allows_loopback=True)) as at:
            for number in range(clients_module._READINGS.per_caller):
                await Hand(at, f"{published.base}/none/{number}").browser.send(
                    "GET", Hand(at, f"{published.base}/none/{number}").link()
                )
            asked = len(published.asked)
            hand = Hand(at, describe(published))
            answer = await hand.browser.send("GET", hand.link())
            assert (answer.status_code, len(published.asked)) == (429, asked)
            assert answer.headers["content-type"].startswith("text/html"), "a person sees it"


NOT_PUBLIC = """
127.0.0.1 127.0.0.2 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1
169.254.169.254 169.254.170.2 100.64.0.1 100.100.100.200 192.0.0.192 192.0.0.8 192.0.2.1 198.51.100.1 203.0.113.1
198.18.0.1 198.19.255.255 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 192.88.99.1
::1 :: fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 fd20:ce::254 ff02::1 2001:db8::1 100::1
::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 ::a9fe:a9fe 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
64:ff9b:1::1 3fff::1 5f00::1 2001:20::1 2002:7f00:1:: 2002:a9fe:a9fe:: 2002:0a00:0001::
2001:0:4136:e378:8000:63bf:f5ff:fffe
not-an-address 2130706433 0177.0.0.1 0x7f.1
""".split()
PUBLIC = "1.1.1.1 8.8.8.8 93.184.216.34 2606:4700:4700::1111 2a00:1450:4001:800::200e 64:ff9b::808:808".split()


async def test_ssrf_a_name_of_an_inner_address_is_not_asked() -> None:
    connected: list[tuple[str, int]] = []
    for address in NOT_PUBLIC:

        async def resolve(host: str, port: int, address: str = address) -> Sequence[str]:
            connected.append((host, port))
            return (PUBLIC[0], address)  # one public address does not make the other one so

        with pytest.raises(InvalidInput, match="may not be asked"):
            await ClientDocuments(resolve=resolve).read("https://rebinding.example/client.json")
        assert not is_public(address), address
    assert connected == [("rebinding.example", 443)] * len(NOT_PUBLIC), "each is resolved once, and not asked"
    assert all(map(is_public, PUBLIC))


SSRF_URLS = [
    "http://client.example/a.json",
    "https://127.0.0.1/a.json",
    "https://2130706433/a.json",
    "https://0x7f000001/a.json",
    "https://0177.0.0.1/a.json",
    "https://127.0.0.1.:443/a.json",
    "https://[::1]/a.json",
    "https://[::ffff:127.0.0.1]/a.json",
    "https://[fe80::1%25eth0]/a.json",
    "https://[fd00:ec2::254]/a.json",
    "https://169.254.169.254/latest/meta-data",
    "https://2852039166/a.json",
    "https://10.0.0.1/a.json",
    "https://localhost/a.json",
    "https://localhost./a.json",
    "https://a/a.json",
    "https://client.example/",
    "https://client.example/a.json?b=c",
    "https://client.example/a.json#b",
    "https://client.example/../a.json",
    "https://client.example/%2e%2e/a.json",
    "https://user@client.example/a.json",
    "https://client.example@127.0.0.1/a.json",
    "https://client.example\\@127.0.0.1/a.json",
    "https://client.example:port/a.json",
    "https://client.example:99999/a.json",
    "https://client_a.example/a.json",
    "https://-client.example/a.json",
    "https://client.example /a.json",
    "https://client.example/a b.json",
    "https://client.example/a\tb.json",
    "https://client.example/a\x00.json",
    "https://\u0441lient.example/a.json",
    "https://client\u3002example/a.json",
    "https://\u2460\u2461\u2466.0.0.1/a.json",
    "https://client.example/\u00e4.json",
    "HTTPS://client.example/a.json",
    "https:client.example/a.json",
    "https:///a.json",
    "//client.example/a.json",
    "ftp://client.example/a.json",
    "file:///etc/passwd",
    "data:application/json,{}",
    "javascript:alert(1)",
    "https://client.example/" + "a" * 500,
    "https://" + "a" * 254 + ".example/a.json",
]


async def test_ssrf_urls_reach_nothing_through_the_endpoint(tmp_path: Path) -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(f"{host}:{port}")
        raise OSError("no such host")

    async with home(tmp_path, documents=ClientDocuments(resolve=resolve)) as at:

        async def ask(url: str) -> None:
            hand = Hand(at, url)
            answer = await hand.browser.send("GET", hand.link())
            assert (answer.status_code, "location" in answer.headers) == (400, False), url

        for url in SSRF_URLS:
            assert not is_document_url(url), url
            with anyio.fail_after(20):
                await ask(url)
        assert asked == []
        for url in ("https://client.example/a.json", "https://xn--bcher-kva.example:8443/a/b~c.json"):
            assert is_document_url(url)
            await ask(url)
        assert asked == ["client.example:443", "xn--bcher-kva.example:8443"]
