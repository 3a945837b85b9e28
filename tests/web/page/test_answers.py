"""What every answer of the page has in common: its headers, how it is kept and compressed, and what is not there."""

import json
import re
from collections.abc import Mapping

import httpx2

from kalito_mcp.web.page.static_files import static_files, static_hash
from kalito_mcp.web.page.table import PAGE
from kalito_mcp.web.page.view import Act
from tests.web.page.visiting import Html, Person, made_link, visiting
from tests.web.rest.served import Served, fresh, record

POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
SAFE = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
STATIC = f"/static/{static_hash()}"
MOST_BYTES = 40_000
"""Of the first visit to a view, compressed. House may have 65,000."""


def filled(path: str) -> str:
    """The path of a view, with ids that nothing has."""
    return re.sub(r"\{\w+\}", "nothing-like-it", path)


def answers(server: Served, person: Person) -> Mapping[str, httpx2.Response]:
    """An answer of each kind."""
    views = {one.path: person.get(filled(one.path)) for one in PAGE if not isinstance(one, Act)}
    with visiting(server) as stranger:
        return views | {
            "the address": person.get("/"),
            "a static file": person.get(f"{STATIC}/page.css"),
            "a missing file": person.get(f"{STATIC}/other.css"),
            "the entrance": stranger.get("/enter"),
            "a link": stranger.get(made_link(server.database)),
            "a wrong link": stranger.get("/enter/wrong"),
            "a wrong token": stranger.enter(token="wrong"),
            "not signed in": stranger.get("/ask"),
            "a link elsewhere": stranger.get("/ask", sec_fetch_site="cross-site"),
            "an act of nobody": stranger.post("/act/forget", []),
            "an act": person.send(person.form("dismiss")),
            "a stale form": person.send(person.form("dismiss"), form_key="wrong"),
            "a wrong field": person.http.get("/ask", params={"q": "x" * 5_000}),
            "a wrong method": person.http.put("/ask"),
        }


def test_every_answer_has_the_headers_that_keep_a_browser_safe(server: Served, person: Person) -> None:
    for name, answer in answers(server, person).items():
        for header, value in SAFE.items():
            assert answer.headers.get_list(header) == [value], (name, header)
        assert answer.status_code < 500, name
        kept = answer.headers.get_list("cache-control")
        is_file = name == "a static file"
        assert kept == ["public, max-age=31536000, immutable" if is_file else "no-store"], name
        assert "server" not in answer.headers


def test_a_page_asks_for_nothing_from_elsewhere_and_has_nothing_inline(server: Served, person: Person) -> None:
    for name, answer in answers(server, person).items():
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        html = Html(answer.text)
        for one in html.elements:
            assert not [name for name in one.attributes if name.startswith(("on", "hx-on")) or name == "style"], name
            for attribute in ("href", "src", "action", "hx-get", "hx-post"):
                assert re.match(r"/(?!/)|#|$", one.get(attribute)), (name, one)
            assert one.tag not in ("style", "iframe", "object", "embed", "base"), name
            assert one.tag != "script" or (one.get("src") and not one.text.strip()), name


def test_a_static_file_is_whole_in_both_forms_and_an_old_address_gets_the_newest(server: Served) -> None:
    with visiting(server) as anybody:
        for name, file in static_files().items():
            answer = anybody.get(f"{STATIC}/{name}", accept_encoding="gzip, deflate, br")
            assert answer.headers["content-encoding"] == "gzip"
            assert answer.content == file.content
            plain = anybody.get(f"{STATIC}/{name}", accept_encoding="identity")
            assert "content-encoding" not in plain.headers
            assert plain.content == file.content
            assert plain.headers["content-type"] == file.media
            assert anybody.get(f"/static/0123456789abcdef/{name}").content == file.content
        for path in (
            "x/..%2Fapp.py",
            "x/%2e%2e/app.py",
            "x/page.css/",
            "x//page.css",
            "x/.",
            "vendor.json",
            "x/vendor.json",
        ):
            answer = anybody.get(f"/static/{path}")
            assert answer.status_code in (401, 404), path
            assert "import" not in answer.text


def test_a_first_visit_is_light(server: Served, client: httpx2.Client, person: Person) -> None:
    session, word = fresh("talk"), fresh("walrus")
    record(client, session, *[f"Turn {number} about {word} and {fresh('more')}." for number in range(20)])
    files = sum(len(one.zipped) for name, one in static_files().items())
    for line in PAGE:
        if not isinstance(line, Act):
            answer = person.http.get(filled(line.path), params={"q": word}, headers={"accept-encoding": "gzip"})
            if line.path == "/house/export":
                continue  # it is as large as the memory
            zipped = int(answer.headers["content-length"])
            assert zipped + files <= (65_000 if line.path == "/house" else MOST_BYTES), (line.path, zipped, files)
            assert zipped <= 15_000, line.path


def test_a_page_is_compressed_where_the_browser_takes_it(client: httpx2.Client, person: Person) -> None:
    plain = person.get("/ask", accept_encoding="identity")
    assert "content-encoding" not in plain.headers
    zipped = person.http.get("/ask", headers={"accept-encoding": "br, gzip;q=0.5"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in zipped.headers["vary"]
    key = re.compile(r'(name="form_key" value=")[^"]+')
    assert key.sub(r"\1", zipped.text) == key.sub(r"\1", plain.text)
    for offered in ("gzip;q=0", "gzip; q=0.0", "br", ""):
        assert "content-encoding" not in person.get("/ask", accept_encoding=offered).headers, offered


def test_a_head_gets_the_headers_of_its_get(person: Person) -> None:
    for path in ("/ask", "/about", f"{STATIC}/page.css", "/", "/enter"):
        head, got = person.http.head(path), person.http.get(path, follow_redirects=False)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers.get("content-type") == got.headers.get("content-type")


def test_a_head_of_a_link_does_not_use_it_up(server: Served) -> None:
    # A mail program or a chat that looks at a link must not sign in with it.
    link = made_link(server.database)
    with visiting(server) as person:
        person.http.head(link)
        assert person.get(link).status_code == 200


def test_what_is_not_there_is_said_in_words(person: Person) -> None:
    for path in ("/r/msg_987654", "/r/%F0%9F%92%A9", "/r/" + "x" * 3_000, "/r/..%2f..%2fetc", "/r/%00"):
        answer = person.get(path)
        assert answer.status_code in (404, 422), path
        assert "This did not work" in Html(answer.text).words
    answer = person.get("/nothing")
    assert answer.status_code == 401, "the rest of the server asks for a token"
    assert json.loads(answer.text)["error"] == "invalid_token"
    answer = person.get("/r/%ff")
    assert answer.status_code == 422


def test_an_unknown_project_is_empty_and_says_so(client: httpx2.Client, person: Person) -> None:
    html = person.open("/ask", project=fresh("nowhere"), q=fresh("nothing"))
    assert "nothing matches" in html.words


def test_a_view_forgives_fields_that_it_does_not_know(person: Person) -> None:
    # An old bookmark, or a link that a messenger added something to.
    html = person.open("/ask", q="tea", utm_source="mail", fbclid="x" * 300, whole="")
    assert html.all("input", name="q")[0].get("value") == "tea"
    for query in ("q=%ff", "q=a&q=b", "&&&=", "q", "%", "a" * 9_000, "&".join(f"f{n}=1" for n in range(2_500))):
        assert person.get(f"/ask?{query}").status_code in (200, 422), query[:50]
