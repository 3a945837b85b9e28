"""Two hundred hostile texts in every field that the page shows or is asked with: they are read as text alone.

Each view is parsed. Its elements and attributes are those of the templates, its URLs lead to this server, and no
character is in it that a terminal or a bidirectional text obeys.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import anyio
import httpx2
import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.digest import Digest
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.errors import KalitoError
from kalito_mcp.memory import Memory
from kalito_mcp.safety.escaping import visible
from kalito_mcp.web.page.table import PAGE
from kalito_mcp.web.page.view import Act
from kalito_mcp.wiring import open_memory
from tests.web.page.payloads import LINES, MARK, TEXTS, field_of, mark_of, payload
from tests.web.page.vendored import STATIC
from tests.web.page.visiting import Person, visiting
from tests.web.rest.served import Served

COUNT: Final = len(TEXTS)
BUNDLE: Final = 12
"""How many texts stand together in one note, document, task or question."""
MOST_BYTES: Final = 400_000
"""Of a view that lists texts, however long they are."""
OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SOURCES: Final = [*(STATIC.parent / "templates").glob("*.html"), STATIC.parent / "rendering.py"]
_MARKUP: Final = re.sub(
    r"\{\{.*?\}\}|\{%.*?%\}", " ", "".join(one.read_text(encoding="utf-8") for one in _SOURCES), flags=re.DOTALL
).lower()
TAGS: Final = frozenset(re.findall(r"<([a-z][a-z0-9]*)", _MARKUP))
ATTRIBUTES: Final = frozenset(
    name
    for tag in re.findall(r"<[a-z][^<>]*>", re.sub(r"\"[^\"]*\"", "", _MARKUP))
    for name in re.findall(r"\s([a-z][\w:.-]*)", re.sub(r"'[^']*'", "", tag))
)
OF_PEOPLE: Final = frozenset({"value", "aria-label", "title", "content"})
"""Attributes in which remembered text may stand as it is."""
NAMES: Final = frozenset({"name", "session", "project", "agent", "client", "tag", "token"})
WORDS: Final = frozenset({"text", "answer", "note", "task"})
"""Fields that stand as they are in the views of a session and of a record."""
URLS: Final = frozenset({"href", "src", "action", "hx-get", "hx-post", "hx-sse:connect", "formaction"})


class Reading(HTMLParser):
    """What a browser makes of a page: `text` is all that is shown, `faults` what no template has."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self._texts: list[str] = []
        self.faults: list[str] = []
        self.feed(source)
        self.close()
        self.text = " ".join("".join(self._texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if tag not in TAGS or not {*names} <= ATTRIBUTES or len({*names}) < len(names):
            self.faults.append(f"<{tag} {attrs}>")
        for name, value in attrs:
            if name in URLS:
                is_ours = re.fullmatch(r"(/(?![/\\])[!-~]*|[#?][!-~]*|)", value or "") is not None
            else:
                is_ours = name in OF_PEOPLE or MARK.search(value or "") is None
            self.faults += [] if is_ours else [f"{name}={value}"]

    def handle_data(self, data: str) -> None:
        self._texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"<!--{data}-->")

    def unknown_decl(self, data: str) -> None:
        self.faults.append(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"<?{data}>")


class Seen:
    """What the views showed. `fields` are the marks' fields by view."""

    def __init__(self, person: Person, stored: Mapping[str, str]) -> None:
        self._http = person.http
        self._stored = stored
        self.fields: dict[str, set[str]] = {}

    def get(self, view: str, path: str, query: Mapping[str, Any] | None = None) -> Reading:
        """Look at a view, and hold that it is harmless."""
        return self.check(view, self._http.get(path, params=query or None, follow_redirects=True))

    def check(self, view: str, answer: httpx2.Response) -> Reading:
        """Hold that an answer is harmless, and that each short text in it stands there as it was stored."""
        assert answer.status_code in (200, 400, 403, 404, 409, 422), (view, answer.status_code, str(answer.url)[:300])
        assert not OBEYED.search(answer.text), (view, answer.url, OBEYED.search(answer.text))
        found = Reading(answer.text)
        assert found.faults == [], (view, found.faults)
        for mark in {*MARK.findall(found.text)}:
            self.fields.setdefault(view, set()).add(field := field_of(mark))
            text = self._stored.get(mark)
            is_exact = field in NAMES or (view in ("/s/", "/r/") and field in WORDS)
            if text is not None and is_exact and len(text) < 100:
                shown = " ".join(visible(text.replace("\r\n", "\n").replace("\r", "\n")).split())
                assert shown in found.text, (view, mark)
        return found


@pytest.fixture(scope="module")
def seeded(server: Served) -> "Seeded":
    return anyio.run(Seeded.fill, server.database)


class Seeded:
    """A memory with all texts in all fields. `stored` are the texts by their mark."""

    def __init__(self) -> None:
        self.stored: dict[str, str] = {}
        self.sessions: list[str] = []
        self.records: list[str] = []
        self.lines: list[str] = []

    def text(self, number: int, field: str, most: int = 600_000, *, is_name: bool = False) -> str:
        """A text, which is noted."""
        made = payload(number, field, most, is_name=is_name)
        self.stored[mark_of(number, field)] = made
        return made

    @classmethod
    async def fill(cls, database: Path) -> "Seeded":
        """Fill the database."""
        self = cls()
        async with open_memory(database) as memory:
            for number in range(COUNT):
                await self._talk(memory, number)
            for numbers in bundles():
                await self._notes(memory, numbers)
            for number in range(0, COUNT, 10):
                name = self.text(number, "token", 100, is_name=True)
                await memory.access.create_token(Permission.READ, name=name)
            for number in range(COUNT, COUNT + len(LINES)):
                said = await memory.record_messages("lines", [NewMessage(Role.USER, payload(number, "line"))])
                self.lines += said.message_ids
            await memory.settled()
        return self

    async def _talk(self, memory: Memory, number: int) -> None:
        """A conversation: its id, its project, its agent, its host, a speaker, their tags and their words."""
        try:
            place = await memory.in_project(self.text(number, "project", 300, is_name=True))
        except KalitoError:  # it reads like a folder that cannot be one
            place = memory
        self.stored[mark_of(number, "project")] = place.place.project or ""
        session = self.text(number, "session", 200, is_name=True)
        said = NewMessage(
            Role.USER,
            self.text(number, "text"),
            name=self.text(number, "name", 200, is_name=True),
            details={"tags": [self.text(number, "tag", 100, is_name=True)]},
        )
        answer = NewMessage(Role.ASSISTANT, self.text(number, "answer"))
        agent, client = (self.text(number, one, 200, is_name=True) for one in ("agent", "client"))
        # Every other one, so that the default agent has some, too.
        agent_id = agent if number % 2 else None
        recorded = await place.record_messages(session, [said, answer], agent_id=agent_id, client=client)
        self.sessions.append(session)
        self.records += recorded.message_ids[:1]

    async def _notes(self, memory: Memory, numbers: Sequence[int]) -> None:
        """A note, a document, a task and a digest of several texts."""
        first = numbers[0]

        def joined(field: str) -> str:
            return "\n".join(self.text(number, field) for number in numbers)

        made = [
            await memory.remember("note", {"text": joined("note")}),
            await memory.remember(
                "document",
                {
                    "text": joined("document"),
                    "source": self.text(first, "source", 500, is_name=True),
                    "title": self.text(first, "title", 200, is_name=True),
                },
            ),
            await memory.remember(
                "task", {"text": joined("task"), "assigned_to": self.text(first, "assigned", 200, is_name=True)}
            ),
        ]
        self.records += [of_type[0].id for of_type in made]
        short = [number for number in numbers if len(TEXTS[number]) < 200]
        lists = {name: tuple(self.text(number, name) for number in short) for name in ("decided", "open")}
        await memory.keep_digest(self.sessions[first], Digest(**lists))


def bundles() -> Iterator[Sequence[int]]:
    """The numbers of the texts, some at a time."""
    for first in range(0, COUNT, BUNDLE):
        yield range(first, min(first + BUNDLE, COUNT))


def test_there_are_two_hundred_and_the_page_has_what_they_would_make() -> None:
    assert COUNT >= 200
    assert len({*TEXTS}) == COUNT
    assert "script" in TAGS
    assert "iframe" not in TAGS
    assert {"href", "value", "hx-post"} <= ATTRIBUTES
    assert not {"onclick", "onerror", "style", "srcdoc"} & ATTRIBUTES
    broken = Reading('<a href="//evil.example">x</a><img src=x onerror=a><i class=qtextz00001></i><!-- x -->')
    assert len(broken.faults) == 5


def test_remembered_texts_are_texts_in_every_view(person: Person, seeded: Seeded) -> None:
    seen = Seen(person, seeded.stored)
    place: str | None = "/timeline"
    while place is not None:
        page = person.http.get(place)
        seen.check("/timeline", page)
        found = re.search(r'href="([^"]+)">Earlier conversations', page.text)
        place = found and found[1].replace("&amp;", "&")
    seen.get("/timeline?open", "/timeline", {"open": 1})
    for session in seeded.sessions[::5]:
        seen.get("/s/", f"/s/{quote(session, safe='')}")
    for record in seeded.records[::5]:
        seen.get("/r/", f"/r/{record}")
    for path in ("/house", "/house/machine", "/house/log", "/house/check", "/now", "/known"):
        if path in {line.path for line in PAGE}:
            seen.get(path, path)
    for field, views in SHOWN.items():
        for view in views:
            assert field in seen.fields.get(view, ()), (field, view)


SHOWN: Final[Mapping[str, Sequence[str]]] = {
    "text": ("/s/", "/r/"),
    "answer": ("/s/", "/r/"),
    "name": ("/s/", "/r/"),
    "session": ("/timeline", "/s/", "/r/"),
    "project": ("/timeline", "/s/", "/r/", "/house"),
    "agent": ("/timeline", "/s/", "/r/", "/house"),
    "client": ("/timeline", "/s/", "/r/"),
    "tag": ("/r/",),
    "note": ("/r/",),
    "document": ("/r/",),
    "task": ("/r/",),
    "decided": ("/timeline", "/s/"),
    "open": ("/timeline", "/timeline?open", "/s/"),
    "token": ("/house",),
}
"""Where each field of a record is shown."""


def test_questions_and_what_they_find_are_texts(person: Person, seeded: Seeded) -> None:
    seen = Seen(person, seeded.stored)
    for numbers in bundles():
        several = " ".join(payload(number, "text", 300) for number in numbers)
        other = " ".join(payload(number, "note", 300) for number in numbers)
        also = "\n".join(payload(number, "wording", 100) for number in numbers[:2])
        seen.get("/ask", "/ask", {"q": several[:4_000], "q2": other[:4_000], "also": also})
    for number in range(0, COUNT, 11):
        seen.get("/about", "/about", {"about": payload(number, "text", 200)})
    assert {"text", "answer", "name", "session", "project"} <= seen.fields["/ask"]
    assert "text" in seen.fields["/about"]


def test_each_field_of_a_view_may_be_asked_for_anything(server: Served, person: Person, seeded: Seeded) -> None:
    seen = Seen(person, {})
    fields = [
        (line, name)
        for line in PAGE
        if not isinstance(line, Act) and line.path not in ("/house/export", "/house/check", "/house/machine")
        for name in (*re.findall(r"\{(\w+)\}", line.path), *line.sent.model_fields)
    ]
    own = {"record_id": seeded.records[0], "session_id": seeded.sessions[0]}
    for number in range(COUNT):
        line, name = fields[number % len(fields)]
        text = payload(number, "sent", 1_000)
        path = re.sub(
            r"\{(\w+)\}",
            lambda found, name=name, text=text: quote(text if found[1] == name else own.get(found[1], "1"), safe=""),
            line.path,
        )
        query = {} if f"{{{name}}}" in line.path else {name: text}
        seen.get(line.path, path, {**query, **({"q": "x"} if name in ("session", "cursor") else {})})
    with visiting(server) as stranger:
        seen = Seen(stranger, {})
        for number in range(0, COUNT, 6):
            text = payload(number, "sent", 1_000)
            seen.get("/enter", "/enter", {"back": text})
            assert stranger.get(f"/ask?q={quote(text)}").headers["location"].startswith("/enter?back=%2Fask%3Fq%3D")
        seen.check("/enter", stranger.enter(token=text, owner=text, passphrase=text))


def test_lines_of_half_a_megabyte_are_cut_where_they_are_listed(person: Person, seeded: Seeded) -> None:
    seen = Seen(person, {})
    views = [
        "/timeline",
        "/s/lines",
        "/ask?q=qlinez long words&session=lines",
        "/about?about=long",
        *(f"/r/{one}" for one in seeded.lines),
    ]
    for path in views:
        answer = person.http.get(path)
        assert answer.status_code == 200, path
        assert path.startswith("/r/") or len(answer.content) < MOST_BYTES, (path, len(answer.content))
        seen.check(path, answer)
    whole = person.http.get(f"/r/{seeded.lines[2]}?whole=1")
    assert "<b>" * 50_000 not in whole.text
    assert whole.text.count("&lt;b&gt;") > 80_000


def test_what_a_form_keeps_comes_back_as_it_was(person: Person, seeded: Seeded) -> None:
    changed = []
    for number in range(0, COUNT, 5):
        html = person.open(f"/r/{seeded.records[number]}", edit=1)
        person.submit(html.form("/act/correct"))
        if person.said != "Nothing changed: these are its words already":
            changed.append(seeded.stored[mark_of(number, "text")])
            person.undo()
    # HTML has no way to write these.
    assert [one for one in changed if not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", one)] == []
