"""Each row of the page's table, and who gets what from it: each permission, other owners, limits, forms not of ours.

A new row needs a line in ROWS, and a value in `make` for a field that no row had before.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.scope import Limits
from kalito_mcp.web.page.app import Line
from kalito_mcp.web.page.table import PAGE
from kalito_mcp.web.page.view import Act
from tests.web.page.visiting import Form, Html, Person, signed_in, visiting
from tests.web.rest.served import Served, fresh, made_token, said, served


@dataclass(frozen=True)
class Row:
    """What the test has to know of a row: the permission that it needs, which act must come before so that it changes
    something, other values of its fields, whether there is something to take back, whether it changes records, and the
    statuses for those who get other ones than the rule says."""

    permission: str = "read"
    after: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    has_undo: bool = True
    is_of_records: bool = True
    answers: Mapping[str, int] = field(default_factory=dict[str, int])


ELSEWHERE: Mapping[str, int] = {"other owner": 404, "other project": 404}
"""Of what the machine is asked."""
WHOLE: Mapping[str, int] = {"other project": 403}
"""Of what has all of the memory, or is of all projects."""

ROWS = {
    "page /ask": Row(),
    "page /about": Row(),
    "page /r/{record_id}": Row(),
    "page /known": Row(),
    "page /now": Row(),
    "page /given/{entry_id}": Row(),
    "page pause": Row("admin", fields={"until": 1}, is_of_records=False, answers=ELSEWHERE),
    "page resume": Row("admin", after="pause", is_of_records=False, answers=ELSEWHERE),
    "page /timeline": Row(),
    "page /s/{session_id}": Row(),
    "page /house": Row(),
    "page /house/machine": Row("admin", answers=ELSEWHERE),
    "page /house/check": Row("admin", answers=ELSEWHERE),
    "page /house/log": Row("admin", answers=WHOLE),
    "page /house/export": Row("admin", answers=WHOLE),
    "page rename_project": Row("write", answers={**WHOLE, "other owner": 422}),
    "page move_back": Row("write", answers={"write": 404, "admin": 404, **ELSEWHERE}),
    "page exclude_folder": Row("admin", is_of_records=False, answers=ELSEWHERE),
    "page include_folder": Row("admin", after="exclude_folder", is_of_records=False, answers=ELSEWHERE),
    "page forget": Row("write"),
    "page restore": Row("write", after="forget"),
    "page correct": Row("write"),
    "page pin": Row("write"),
    "page close": Row("write"),
    "page keep": Row("write"),
    "page go_back": Row("write"),
    "page replace": Row("write"),
    "page keep_both": Row("write"),
    "page move_session": Row("write", fields={"to": "personal"}),
    "page not_this": Row("write", is_of_records=False),
    "page after_all": Row("write", after="not_this", is_of_records=False),
    "page dismiss": Row("write", has_undo=False),
}
ID_FIELDS = (
    "record_id",
    "record_ids",
    "other_id",
    "point_ids",
    "session",
    "session_id",
    "entry_id",
    "message_id",
    "project",
    "agent",
    "agent_id",
    "old",
)
"""Fields and parameters of paths that name something which may be another's."""
PEOPLE = ("none", *map(str, Permission), "other owner", "other project")


@dataclass(frozen=True)
class Given:
    """Something of the memory that a test may look at and change: values by the name of a field or a parameter."""

    word: str
    values: Mapping[str, Any]

    def of(self, line: Line, row: Row) -> dict[str, Any]:
        """A value for each field of a row that needs one."""
        needed = [name for name, one in line.sent.model_fields.items() if one.is_required()]
        return {name: self.values[name] for name in needed} | dict(row.fields)

    def missing(self) -> "Given":
        """The same with names that nothing has, of the same form."""
        lost: dict[str, str] = {}

        def other(value: Any) -> Any:
            if isinstance(value, list):
                return [other(one) for one in value]
            is_record = value.startswith("document_")
            return lost.setdefault(value, f"{value[:-9]}{os.urandom(5).hex()[:9]}" if is_record else fresh("missing"))

        return Given(self.word, self.values | {name: other(self.values[name]) for name in ID_FIELDS})


ENTRY = "987654321012"
"""The number of something that was given, from all projects of the owner."""


@pytest.fixture(scope="module", autouse=True)
def entry(server: Served) -> None:
    with closing(sqlite3.connect(server.database)) as database, database:
        database.execute(
            "INSERT INTO given (key, owner, agent, kind, at, tokens, parts, left_out)"
            " VALUES (?, 'local', 'default', 'search', ?, 0, '[]', '[]')",
            (int(ENTRY), time.time_ns() // 1_000_000),
        )


@pytest.fixture(scope="module")
def people(server: Served) -> Iterator[Mapping[str, Person]]:
    """Somebody of each kind, signed in."""
    limited = made_token(server.database, Permission.ADMIN, limits=Limits(project=fresh("shop")))
    tokens = {str(one): server.tokens[one] for one in Permission} | {"other owner": server.other}
    with ExitStack() as stack:
        found = {name: stack.enter_context(signed_in(server, text)) for name, text in tokens.items()}
        found["other project"] = stack.enter_context(signed_in(server, limited))
        yield found | {"none": stack.enter_context(visiting(server))}


@pytest.fixture
def given(client: httpx2.Client) -> Given:
    """A note that was corrected once, in a project of its own, and a conversation with an open point beside it."""
    return make(client)


def make(client: httpx2.Client) -> Given:
    word, session, project = fresh("zanzibar"), fresh("talk"), fresh("garden")
    turn = {"messages": [{"role": "user", "text": f"We fly to {word}."}]}
    sent = client.post(f"/api/sessions/{session}/messages", json=turn, params={"project": project})
    [message] = said(sent)["message_ids"]
    pinned = {"session_id": session, "content": f"Book a ferry to {word}.", "scope": "session"}
    point = said(client.post("/api/memory/pins", json=pinned))["id"]
    said(client.patch(f"/api/records/{point}", json={"kind": "open"}, headers={"if-match": '"1"'}))
    note = {"type": "note", "text": f"The hostel is in {word}."}
    record = said(client.post("/api/records", json=note, params={"project": project}))["id"]
    changed = client.patch(
        f"/api/records/{record}", json={"text": f"The hotel is in {word}."}, headers={"if-match": '"1"'}
    )
    assert said(changed)["revision"] == 2
    return Given(
        word,
        {
            "record_id": record,
            "record_ids": [record],
            "other_id": point,
            "point_ids": [point],
            "session": session,
            "session_id": session,
            "entry_id": ENTRY,
            "message_id": message,
            "project": project,
            "agent": "gardener",
            "agent_id": "gardener",
            "revision": 2,
            "version": 1,
            "versions": [1],
            "text": f"The inn is in {word}.",
            "to": "personal",
            "old": project,
            "new": fresh("orchard"),
            "key": "unknown",
            "folder": f"/home/ann/{project}",
        },
    )


def path_of(line: Line, given: Given) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: str(given.values[found[1]]), line.path)


def form_of(line: Act[Any], row: Row, given: Given, form_key: str | None, back: str = "/ask") -> Form:
    key = [] if form_key is None else [("form_key", form_key)]
    fields = [
        (name, str(one))
        for name, value in given.of(line, row).items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return Form("post", path_of(line, given), [*key, ("back", back), *fields])


@cache
def key_of(person: Person) -> str | None:
    """The key of the forms in this browser, which stays the same; None if nobody is signed in."""
    answer = person.get("/about")
    return Html(answer.text).form_key if answer.status_code == 200 else None


def asked(person: Person, line: Line, row: Row, given: Given, **changed: Any) -> httpx2.Response:
    """The answer to a request for the row."""
    if isinstance(line, Act):
        return person.send(form_of(line, row, given, key_of(person)), **changed)
    return person.http.get(path_of(line, given), params=given.of(line, row))


def content_of(client: httpx2.Client, given: Given) -> Any:
    """What is stored of it."""
    return (
        said(client.get(f"/api/records/{given.values['record_id']}")),
        said(client.get("/api/profile")),
        said(client.get(f"/api/sessions/{given.values['session']}")),
    )


def test_the_table_is_as_written_here() -> None:
    # Whoever adds a row says here who may use it.
    assert {one.name: str(one.permission) for one in PAGE} == {name: one.permission for name, one in ROWS.items()}
    assert len({(one.method, one.path) for one in PAGE}) == len(PAGE)


@pytest.mark.parametrize("who", PEOPLE)
def test_a_row_answers_by_its_permission(client: httpx2.Client, people: Mapping[str, Person], who: str) -> None:
    given = make(client)
    before = content_of(client, given)
    for line in PAGE:
        row = ROWS[line.name]
        if row.after is not None:
            first = next(one for one in PAGE if one.name == f"page {row.after}")
            assert asked(people["admin"], first, ROWS[first.name], given).status_code == 303
            before = content_of(client, given)
        answer = asked(people[who], line, row, given)
        assert answer.status_code == row.answers.get(who, expected(line, who)), (line.name, answer.text)
        if answer.status_code not in (200, 303):
            assert content_of(client, given) == before, line.name
        if isinstance(line, Act) and (row.after is not None or answer.status_code == 303):
            given = make(client)
            before = content_of(client, given)


def test_each_view_lets_the_person_choose_among_the_names_of_their_projects(
    client: httpx2.Client, people: Mapping[str, Person], given: Given
) -> None:
    names = {one["project"] for one in said(client.get("/api/projects"))["projects"]}
    assert given.values["project"] in names
    views = [line for line in PAGE if not isinstance(line, Act) and line.path != "/house/export"]
    for view in views:
        html = Html(asked(people["admin"], view, ROWS[view.name], given).text)
        place = html.elements.index(html.all("select", id="project")[0])
        options = list(takewhile(lambda one: one.tag == "option", html.elements[place + 1 :]))
        assert {one.get("value") for one in options} == {"", "personal"} | names, view.name
        assert {one.text for one in options} == {"all", "personal only"} | names, view.name


def expected(line: Line, who: str) -> int:
    """The status of the answer to a request that names a record of this owner in a project."""
    is_act = isinstance(line, Act)
    if who == "none":
        return 401 if is_act else 303
    if who.startswith("other"):
        named = {*line.sent.model_fields, *re.findall(r"\{(\w+)\}", line.path)}
        needed = {name for name, one in line.sent.model_fields.items() if one.is_required()}
        is_named = bool(set(ID_FIELDS) & (needed | (named - set(line.sent.model_fields))))
        return 404 if is_named else 303 if is_act else 200
    if not Permission(who).includes(line.permission):
        return 403
    return 303 if is_act else 200


def test_a_foreign_id_answers_as_a_missing_one_does(client: httpx2.Client, people: Mapping[str, Person]) -> None:
    given = make(client)
    before = content_of(client, given)
    for line in PAGE:
        if line.path == "/house/export":
            continue  # an archive says when it was made
        for who in ("other owner", "other project"):
            person = people[who]
            for fields in _with_ids(line, given):
                theirs = _plain(_named(person, line, given, fields), given)
                lost = _plain(_named(person, line, missing := given.missing(), fields), missing)
                assert theirs == lost, (line.name, who, fields)
                assert given.word not in theirs[-1].replace(f"&#34;{given.word}&#34;", ""), (line.name, who)
    assert content_of(client, given) == before


def _with_ids(line: Line, given: Given) -> list[tuple[str, ...]]:
    """The fields to send besides those that are needed: none, and each one that names something."""
    return [
        (),
        *((name,) for name, one in line.sent.model_fields.items() if name in ID_FIELDS and not one.is_required()),
    ]


def _named(person: Person, line: Line, given: Given, more: tuple[str, ...]) -> httpx2.Response:
    row = ROWS[line.name]
    row = Row(row.permission, fields={**row.fields, **{name: given.values[name] for name in more}})
    if line.path == "/ask" and "session" in more:
        row = Row(row.permission, fields={**row.fields, "q": "hotel"})
    return asked(person, line, row, given)


def _plain(answer: httpx2.Response, given: Given) -> tuple[int, Any, str]:
    """An answer without the names that were sent, the keys of its forms, and its date."""
    left_out = ("date", "content-length", "set-cookie")
    headers = sorted((name, value) for name, value in answer.headers.items() if name not in left_out)
    text = re.sub(r'(name="form_key" value=")[^"]+', r"\1", answer.text)
    for name in ID_FIELDS:
        value = given.values[name]
        for one in value if isinstance(value, list) else [value]:
            sent = re.compile(rf"(?<![\w-]){re.escape(one)}(?![\w-])")
            text = sent.sub(name, text)
            headers = [(header, sent.sub(name, content)) for header, content in headers]
    return answer.status_code, headers, text


NOT_OURS: Mapping[str, Mapping[str, Any]] = {
    "no form key": {"form_key": None},
    "an empty form key": {"form_key": ""},
    "a wrong form key": {"form_key": "A" * 32},
    "a form key of another browser": {"form_key": "theirs"},
    "no origin": {"origin": ""},
    "an origin of nothing": {"origin": "null"},
    "another origin": {"origin": "https://evil.example"},
    "another port of this machine": {"origin": "http://127.0.0.1:1"},
    "another name of this machine": {"origin": "another name"},
    "another scheme": {"origin": "another scheme"},
}


@pytest.mark.parametrize("fault", NOT_OURS)
def test_a_form_that_is_not_ours_changes_nothing(
    server: Served, client: httpx2.Client, people: Mapping[str, Person], fault: str
) -> None:
    changed = dict(NOT_OURS[fault])
    if fault == "a form key of another browser":
        changed["form_key"] = key_of(people["other owner"])
    elif fault == "another name of this machine":
        changed["origin"] = server.origin.replace("127.0.0.1", "localhost")
    elif fault == "another scheme":
        changed["origin"] = server.origin.replace("http:", "https:")
    given = make(client)
    before = content_of(client, given)
    for line in PAGE:
        if isinstance(line, Act):
            answer = asked(people["admin"], line, ROWS[line.name], given, **changed)
            assert answer.status_code == 403, (line.name, answer.text)
            assert content_of(client, given) == before, line.name
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_a_form_of_another_site_changes_nothing_even_with_our_origin(
    client: httpx2.Client, people: Mapping[str, Person], site: str
) -> None:
    person, given = people["admin"], make(client)
    before = content_of(client, given)
    key = key_of(person)
    for line in PAGE:
        if isinstance(line, Act):
            form = form_of(line, ROWS[line.name], given, key)
            said_by_browser = {"origin": person.server.origin, "sec-fetch-site": site}
            answer = person.post(form.action, form.fields, said_by_browser)
            assert answer.status_code == 403, line.name
    assert content_of(client, given) == before


def test_scripts_of_other_pages_may_not_read_a_view(client: httpx2.Client, people: Mapping[str, Person]) -> None:
    given = make(client)
    for line in PAGE:
        if not isinstance(line, Act):
            path = path_of(line, given)
            assert people["admin"].get(path, origin="https://evil.example").status_code == 403
            answer = people["admin"].get(path, origin="http://localhost:3000")
            assert not [name for name in answer.headers if name.startswith("access-control")], line.name


def test_a_row_answers_to_its_own_method_alone(client: httpx2.Client, people: Mapping[str, Person]) -> None:
    given = make(client)
    for line in PAGE:
        path = path_of(line, given)
        for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - {line.method}:
            answer = people["admin"].http.request(method, path)
            allowed = answer.headers["allow"]
            assert (answer.status_code, allowed) == (405, line.method), (line.name, method)


def test_each_act_can_be_taken_back_and_the_log_names_it(
    server: Served, client: httpx2.Client, people: Mapping[str, Person]
) -> None:
    for line in PAGE:
        row, given = ROWS[line.name], make(client)
        person = people[row.permission if row.permission == "admin" else "write"]
        if not isinstance(line, Act) or row.answers.get("admin") is not None:
            continue
        if row.after is not None:
            first = next(one for one in PAGE if one.name == f"page {row.after}")
            asked(people["admin"], first, ROWS[first.name], given)
        person.open("/about")
        before = content_of(client, given)
        person.submit(form_of(line, row, given, person.html.form_key, back="/about"))
        assert person.path == "/about", line.name
        assert person.can_undo == row.has_undo, (line.name, person.said)
        if not row.has_undo:
            assert person.said is None
            continue
        assert not row.is_of_records or content_of(client, given) != before, line.name
        [entry] = said(client.get("/api/audit", params={"limit": 1}))["entries"]
        assert (entry["action"], entry["outcome"], entry["count"]) == (line.name, "done", 1)
        assert entry["principal"] == _token_id(client, server.tokens[line.permission])
        assert given.word not in str(entry)
        done = content_of(client, given)
        person.undo()
        assert _as_shown(content_of(client, given)) == _as_shown(before), line.name
        if person.can_undo:
            person.undo()
            assert _as_shown(content_of(client, given)) == _as_shown(done), line.name


def _token_id(client: httpx2.Client, text: str) -> str:
    [found] = [one["id"] for one in said(client.get("/api/tokens"))["tokens"] if text.startswith(one["prefix"])]
    return str(found)


def _as_shown(content: Any) -> Any:
    """What is stored, without what every change moves on: the revision and its moment."""
    record, known, session = content
    moved = ("revision", "updated_at", "last_updated", "deleted_at")
    return {name: value for name, value in record.items() if name not in moved}, known, session


def test_a_reader_finds_no_form_of_an_act(client: httpx2.Client, people: Mapping[str, Person]) -> None:
    given = make(client)
    for line in PAGE:
        if not isinstance(line, Act) and line.permission is Permission.READ:
            html = people["read"].open(path_of(line, given), **given.of(line, ROWS[line.name]))
            assert [one.action for one in html.forms if one.method == "post"] == ["/leave"], line.name


def test_writes_and_calls_have_a_limit(tmp_path: Path) -> None:
    with (
        served(tmp_path, KALITO_HTTP_WRITES_PER_MINUTE="2") as server,
        signed_in(server, Permission.WRITE) as one,
        signed_in(server, Permission.WRITE) as again,
        signed_in(server) as other,
    ):
        for person in (one, again):
            person.act("dismiss")
        for person in (one, again):
            answer = person.send(person.form("dismiss"))
            assert answer.status_code == 429, "two browsers of one token"
            assert int(answer.headers["retry-after"]) > 0
            assert "too many requests" in Html(answer.text).words
        one.open("/ask")
        other.act("dismiss")
    with served(tmp_path, KALITO_HTTP_CALLS_PER_MINUTE="8") as server, signed_in(server) as person:
        statuses = [person.get("/ask").status_code for _ in range(8)]
        assert statuses[0] == 200
        assert statuses[-1] == 429


def test_a_change_of_what_was_changed_meanwhile_is_refused_in_words(client: httpx2.Client, person: Person) -> None:
    given = make(client)
    record = given.values["record_id"]
    html = person.open(f"/r/{record}")
    said(client.patch(f"/api/records/{record}", json={"text": "It is full."}, headers={"if-match": '"2"'}))
    answer = person.send(html.form("/act/correct"), text="It is closed.")
    assert answer.status_code == 409
    refused = Html(answer.text)
    assert "it was changed since you opened it" in refused.words
    assert f"/r/{record}" in refused.links(), "the way back to it"
    assert said(client.get(f"/api/records/{record}"))["text"] == "It is full."


def test_a_person_may_send_more_than_a_stranger(client: httpx2.Client, server: Served, person: Person) -> None:
    given, long = make(client), "Далеко. " * 20_000
    record = given.values["record_id"]
    form = person.open(f"/r/{record}").form("/act/correct")
    with visiting(server) as stranger:
        assert stranger.send(form, text=long).status_code == 413
    person.submit(form, text=long)
    assert said(client.get(f"/api/records/{record}"))["text"].startswith("Далеко. Далеко.")
    person.undo()
    assert said(client.get(f"/api/records/{record}"))["text"] == f"The hotel is in {given.word}."
