"""What an attack found, or a first user missed, and what the page does now."""

import http.client
from urllib.parse import urlsplit

import httpx2

from tests.web.page.visiting import Person, signed_in
from tests.web.rest.served import Served, fresh, record, said


def test_an_undo_is_shown_to_the_browser_that_it_was_made_for_alone(
    server: Served, client: httpx2.Client, person: Person
) -> None:
    [message] = record(client, fresh("talk"), "The parcel is at the office.")
    person.open("/ask")
    person.act("forget", record_ids=[message])
    assert person.said == "1 record forgotten"
    kept = person.http.cookies["kalito-undo"]
    with signed_in(server, server.other) as other:
        other.http.cookies.set("kalito-undo", kept)
        other.open("/ask")
        assert (other.said, other.can_undo) == (None, False)


def test_a_page_of_another_site_takes_in_no_part_of_this_one(person: Person) -> None:
    for path in ("/ask", "/now/feed", "/house/check", "/house/export"):
        for site in ("cross-site", "same-site"):
            taken = {"sec_fetch_site": site, "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}
            assert person.get(path, **taken).status_code == 403, (path, site)
    assert person.get("/ask", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status_code == 200


def test_a_path_without_a_slash_at_its_beginning_is_none_of_the_pages(server: Served) -> None:
    for target in ("javascript:alert(1)/ask", "%2Fapi%2Fx/ask", "%2Fask"):
        connection = http.client.HTTPConnection(urlsplit(server.origin).netloc, timeout=30)
        connection.putrequest("GET", target)
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status not in (200, 303), target
        answer.read()
        connection.close()


def test_a_pin_of_a_message_is_erased_with_it(client: httpx2.Client, person: Person) -> None:
    word = fresh("locker")
    [message] = record(client, fresh("talk"), f"The code of my {word} is 77.")
    person.open(f"/r/{message}")
    person.act("pin", record_id=message, scope="person")
    assert person.said == "Pinned"
    said(client.post("/api/purge", json={"record_ids": [message]}))
    assert word not in client.get("/api/profile").text


def test_a_correction_leads_to_what_else_says_so(client: httpx2.Client, person: Person) -> None:
    word = fresh("harbour")
    first, _, second = record(client, fresh("talk"), f"I live by the {word}.", "Noted.", f"By the {word} I live.")
    person.open(f"/r/{first}")
    person.act("correct", record_id=first, revision=1, text="I live in the hills.")
    [more] = [one for one in person.html.links() if "like=1" in one]
    shown = person.open(more)
    assert f"By the {word} I live." in shown.words
    assert [one.sent["record_ids"] for one in shown.forms if one.action == "/act/forget"][1:] == [second]
    person.undo()
    assert f"I live by the {word}." in person.open(f"/r/{first}").words
