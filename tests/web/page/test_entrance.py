"""The ways into the page and out of it: who gets a cookie, what it is like, and where the browser goes next."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.scripted import ScriptedClock
from tests.server.web import web
from tests.server.wire import PATIENCE_S
from tests.web.page.conftest import OFTEN
from tests.web.page.visiting import Html, Person, made_link, signed_in, visiting
from tests.web.rest.served import Served, fresh, made_token, record, served

PASSPHRASE = "five green kites over Oslo"
COOKIE = re.compile(r"(?P<name>[\w-]+)=(?P<value>[^;]*)(?P<attributes>.*)")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that browsers reach by https, behind a proxy."""
    public = {"KALITO_HTTP_PUBLIC_URL": "https://memory.example.org"}
    with served(tmp_path_factory.mktemp("secured"), **public, **OFTEN) as running:
        yield running


def cookies(answer: httpx2.Response) -> dict[str, tuple[str, set[str]]]:
    """The cookies of an answer: their values and attributes by name."""
    found = [COOKIE.fullmatch(one) for one in answer.headers.get_list("set-cookie")]
    return {
        one["name"]: (one["value"], {part.strip() for part in one["attributes"].split(";")[1:]}) for one in found if one
    }


def set_passphrase(database: Path, owner: str = "local") -> None:
    async def set_it() -> None:
        async with open_memory(database) as memory:
            await memory.access.sign_in.passphrases.set(owner, PASSPHRASE)

    anyio.run(set_it)


def refresh_of(answer: httpx2.Response) -> str:
    """Where a page goes on to by itself."""
    [meta] = Html(answer.text).all("meta", http_equiv="refresh")
    return meta.get("content").partition("url=")[2]


def test_a_link_opens_ask_once(server: Served) -> None:
    link = made_link(server.database)
    with visiting(server) as person, visiting(server) as late:
        answer = person.get(link, sec_fetch_site="none")
        assert answer.status_code == 200
        assert refresh_of(answer) == "/ask"
        assert person.open("/ask").all("title")[0].text.startswith("Ask")
        again = late.get(link)
        assert again.status_code == 403
        assert "run `kalito-mcp open` again" in Html(again.text).words
        assert "set-cookie" not in again.headers
        assert late.get("/ask").status_code == 303


def test_a_link_works_for_a_minute(server: Served) -> None:
    now_ms = time.time_ns() // 1_000_000
    with visiting(server) as person:
        assert person.get(made_link(server.database, clock=ScriptedClock(now_ms - 61_000))).status_code == 403
        assert person.get(made_link(server.database, clock=ScriptedClock(now_ms - 1_000))).status_code == 200


def test_a_link_is_of_an_owner_with_a_permission(server: Served) -> None:
    word = fresh("hers")
    with server.client() as client, visiting(server) as person:
        record(client, fresh("talk"), f"We fly to {word}.")
        person.get(made_link(server.database, owner="ann", permission=Permission.READ))
        assert f"fly to {word}" not in person.open("/ask", q=word).words
        assert person.send(person.form("dismiss")).status_code == 403


@pytest.mark.parametrize("code", ["x", "kal_", "a" * 2_000, "%00", "%F0%9F%92%A9", "..%2Fask", "%22%3E%3Cscript%3E"])
def test_what_is_no_link_says_so_and_no_more(server: Served, code: str) -> None:
    with visiting(server) as person:
        answer = person.get(f"/enter/{code}")
        assert answer.status_code == 403
        html = Html(answer.text)
        assert "was used already, or is older than a minute" in html.words
        assert "script" not in html.words


def test_a_token_opens_the_page_with_its_permission_and_limits(server: Served) -> None:
    with visiting(server) as person:
        answer = person.enter(token=f"  {server.tokens[Permission.READ]} \n")
        assert (answer.status_code, answer.headers["location"]) == (303, "/ask")
        person.open("/ask")
        assert person.send(person.form("dismiss")).status_code == 403
    for wrong in ("kal_wrong", "x" * 5_000, "\x00", "ключ"):
        with visiting(server) as person:
            answer = person.enter(token=wrong)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
            [said] = Html(answer.text).all("p", role="alert")
            assert said.text == "That is not right. Try again."


def test_a_cookie_ends_with_its_token(server: Served) -> None:
    token = made_token(server.database, Permission.READ)
    with signed_in(server, token) as person, server.client() as client:
        [known] = [one for one in client.get("/api/tokens").json()["tokens"] if token.startswith(one["prefix"])]
        assert client.delete(f"/api/tokens/{known['id']}").is_success
        answer = person.get("/ask")
        assert (answer.status_code, answer.headers["location"]) == (303, "/enter?back=%2Fask")


def test_neither_a_link_nor_a_cookie_is_a_token_and_a_token_is_no_cookie(server: Served, person: Person) -> None:
    cookie = person.http.cookies["kalito-page"]
    link = made_link(server.database).removeprefix("/enter/")
    for text in (cookie, link):
        with server.client(text) as client:
            assert client.get("/api/stats").status_code == 401
        with visiting(server) as stranger:
            assert stranger.enter(token=text).status_code == 403
    for text in (link, server.tokens[Permission.ADMIN]):
        with visiting(server) as stranger:
            stranger.http.cookies.set("kalito-page", text)
            assert stranger.get("/ask").status_code == 303
    with visiting(server) as stranger:
        answer = stranger.get("/ask", authorization=f"Bearer {server.tokens[Permission.ADMIN]}")
        assert answer.status_code == 303, "a program's token opens no view"


def test_a_passphrase_opens_the_page_and_guessing_gets_slow(tmp_path: Path) -> None:
    with served(tmp_path) as server, visiting(server) as person:
        assert not person.open("/enter").all("input", name="passphrase")
        set_passphrase(server.database)
        [whose] = person.open("/enter").all("input", name="owner")
        assert whose.get("value") == "local"
        assert person.enter(passphrase=PASSPHRASE, back="/about").headers["location"] == "/about"
        person.open("/about")
        person.act("dismiss")
    with served(tmp_path) as server, visiting(server) as person:
        for _ in range(3):
            answer = person.enter(passphrase="something else", back="/about?about=tea")
            assert answer.status_code == 403
            assert Html(answer.text).form("/enter").sent["back"] == "/about?about=tea", "still known"
        answer = person.enter(passphrase=PASSPHRASE)
        assert answer.status_code == 429
        assert "too many attempts; wait" in Html(answer.text).words
        assert int(answer.headers["retry-after"]) >= 1
        assert "set-cookie" not in answer.headers
        # A token is not guessed, so nobody has to wait for it.
        assert person.enter(token=server.tokens[Permission.READ]).status_code == 303


def test_wrong_tokens_and_links_count_as_refused_requests(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[http]\nrefusals_per_minute = 4\n[models]\nembedder = "none"\n')
    with served(tmp_path, KALITO_CONFIG=str(settings)) as server, visiting(server) as person:
        assert [person.enter(token="kal_guessed").status_code for _ in range(3)] == [403] * 3
        wrong = {person.enter(token="kal_guessed").status_code for _ in range(3)}
        assert wrong <= {403, 429}
        assert person.enter(token="kal_guessed").status_code == 429
        assert person.get("/enter/guessed").status_code == 429
        assert person.enter(token=server.tokens[Permission.READ]).status_code == 303


def test_a_cookie_is_for_this_page_alone(server: Served, secured: Served) -> None:
    with visiting(server) as person:
        answer = person.enter(token=server.tokens[Permission.ADMIN])
        [(name, (value, attributes))] = cookies(answer).items()
        assert name == "kalito-page"
        assert attributes == {"HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=strict"}
        assert server.tokens[Permission.ADMIN] not in value
        person.open("/ask")
        done = cookies(person.send(person.form("dismiss")))
        assert done["kalito-undo"][1] >= {"HttpOnly", "Path=/", "SameSite=strict"}
    https = {"host": "memory.example.org", "origin": "https://memory.example.org"}
    with visiting(secured) as person:
        sent = {"token": secured.tokens[Permission.ADMIN], "back": "/ask"}
        answer = person.http.post("/enter", data=sent, headers=https)
        [(name, (value, attributes))] = cookies(answer).items()
        assert name == "__Host-kalito-page"
        assert attributes == {"HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=strict", "Secure"}
        shown = person.http.get("/ask", headers={**https, "cookie": f"{name}={value}"})
        assert shown.status_code == 200
        plain = person.http.get("/ask", headers={**https, "cookie": f"kalito-page={value}"})
        assert plain.status_code == 303, "another name of the host could have set it"


def test_the_page_behind_a_proxy_takes_forms_of_its_own_address_alone(secured: Served) -> None:
    https = {"host": "memory.example.org"}
    sent = {"token": secured.tokens[Permission.ADMIN]}
    with visiting(secured) as person:
        for origin in (None, "http://memory.example.org", "https://memory.example.org.evil.example", secured.origin):
            headers = {**https, **({"origin": origin} if origin else {})}
            answer = person.http.post("/enter", data=sent, headers=headers)
            assert answer.status_code == 403, origin
            assert "set-cookie" not in answer.headers


def test_nothing_secret_is_typed_in_over_plain_http_from_elsewhere(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[http]\nhosts = ["memory.lan"]\n[models]\nembedder = "none"\n')
    with served(tmp_path, KALITO_CONFIG=str(settings)) as server, visiting(server) as person:
        port = server.origin.rpartition(":")[2]
        elsewhere = {"host": f"memory.lan:{port}"}
        link = made_link(server.database)
        for path in ("/enter", link):
            answer = person.http.get(path, headers=elsewhere)
            assert answer.status_code == 403
            assert "set http.public_url to the https address" in Html(answer.text).words
            assert "set-cookie" not in answer.headers
        for origin in (f"http://memory.lan:{port}", server.origin):
            sent = {"token": server.tokens[Permission.ADMIN]}
            answer = person.http.post("/enter", data=sent, headers={**elsewhere, "origin": origin})
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
        assert person.get(link).status_code == 200, "the refused request did not use it up"


def test_leaving_ends_the_cookie(server: Served) -> None:
    with signed_in(server) as person:
        kept = person.http.cookies["kalito-page"]
        form = person.html.form("/leave", "Sign out")
        for changed in ({"form_key": "wrong"}, {"origin": "http://localhost:1"}):
            assert person.send(form, **changed).status_code == 403
        assert person.get("/ask").status_code == 200
        answer = person.send(form)
        assert (answer.status_code, answer.headers["location"]) == (303, "/enter")
        assert "kalito-page" not in person.http.cookies
        person.http.cookies.set("kalito-page", kept)
        assert person.get("/ask").status_code == 303


def test_the_address_of_the_server_leads_to_ask(server: Served, person: Person) -> None:
    answer = person.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ask")
    with visiting(server) as stranger:
        assert "Open your memory" in stranger.open("/").words
        assert stranger.path == "/enter?back=%2Fask"


def test_a_deep_link_survives_signing_in(server: Served) -> None:
    with visiting(server) as person:
        deep = "/ask?q=caf%C3%A9+%26+%2Bmore&project=personal"
        html = person.open(deep)
        assert person.path.startswith("/enter?back=")
        answer = person.send(html.form("/enter"), token="wrong")
        html = Html(answer.text)
        answer = person.send(html.form("/enter"), token=server.tokens[Permission.READ])
        person.open(answer.headers["location"])
        assert person.path == deep


ELSEWHERE = (
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example/",
    "\\/evil.example",
    "/%0d%0aset-cookie:a=b\r\n",
    "javascript:alert(1)",
    "ask",
    "",
    "/\t/evil.example",
    "/ask\x00",
    "http:/evil.example",
    "/é",
)


@pytest.mark.parametrize("back", ELSEWHERE)
def test_no_answer_leads_to_another_site(server: Served, person: Person, back: str) -> None:
    form = person.form("dismiss")
    answer = person.send(form, back=back)
    assert (answer.status_code, answer.headers["location"]) == (303, "/ask")
    with visiting(server) as stranger:
        answer = stranger.enter(token=server.tokens[Permission.READ], back=back)
        assert answer.headers["location"] == "/ask"
        assert stranger.open("/enter", back=back).form("/enter").sent["back"] == "/ask"


def test_a_link_on_another_site_leads_on_by_itself(server: Served) -> None:
    # A strict cookie is not sent along with a link of another site, so the answer looks as if nobody was signed in.
    with visiting(server) as person:
        answer = person.get("/r/msg_45?whole=1", sec_fetch_site="cross-site")
        assert answer.status_code == 200
        assert refresh_of(answer) == "/r/msg_45?whole=1"
        hostile = person.get('/r/%22%3E%3Cscript%3Ealert(1)%3C/script%3E?a="><b>', sec_fetch_site="cross-site")
        html = Html(hostile.text)
        assert not html.all("script")
        assert not html.all("b")


def test_the_code_of_a_link_is_in_no_log(tmp_path: Path) -> None:
    database = lay_empty_database(tmp_path / "memory.db")
    link, used = made_link(database), made_link(database)
    with web("http", database, login=True, KALITO_LOG="DEBUG") as serving:
        origin = serving.url.removesuffix("/mcp")
        with httpx2.Client(base_url=origin, timeout=PATIENCE_S, trust_env=False, verify=False) as http:
            for path in (link, used, used, f"/ask?back={used}", f"{used}/x", f"{used}?a=b"):
                http.get(path)
            http.post(used)
    log = b"".join(serving.log).decode()
    for path in (link, used):
        assert path.removeprefix("/enter/") not in log
    for file in tmp_path.iterdir():
        if file.suffix in (".stdout", ".stderr"):
            assert link.encode() not in file.read_bytes()


def test_without_login_everybody_on_this_machine_is_in(tmp_path: Path) -> None:
    database = lay_empty_database(tmp_path / "memory.db")
    with web("http", database) as serving:
        server = Served(serving.url.removesuffix("/mcp"), database, {}, "")
        with visiting(server) as person, visiting(server) as other:
            record(person.http, "talk", "We fly to Oslo.")
            person.open("/")
            assert person.path == "/ask"
            html = person.open("/ask", q="Oslo")
            assert not [one for one in html.forms if one.action == "/leave"]
            person.press("/act/forget", "Forget: msg_1")
            person.undo()
            assert person.get("/enter/x").headers["location"] == "/ask", "a link works as it would with a login"
            for path in ("/enter", "/leave"):
                assert person.get(path).status_code == 404
            other.open("/ask", q="Oslo")
            form = person.form("dismiss")
            assert other.send(form).status_code == 403, "the key is another browser's"
            assert other.send(other.form("dismiss"), origin="http://localhost:3000").status_code == 403
            assert person.get("/ask", host="evil.example").status_code == 421
