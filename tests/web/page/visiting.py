"""A person with a browser that runs no scripts: it reads HTML, keeps cookies, sends forms and follows redirects."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2

from kalito_mcp.domain.access import Permission
from kalito_mcp.wiring import open_memory
from tests.scripted import ScriptedClock
from tests.server.wire import PATIENCE_S
from tests.web.rest.served import Served

_VOID: Final = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass
class Element:
    """An element with its attributes, the text in it, and the tags around it, outermost first."""

    tag: str
    attributes: Mapping[str, str]
    inside: Sequence[str]
    text: str = ""

    def has(self, name: str) -> bool:
        """Whether it has an attribute."""
        return name in self.attributes

    def get(self, name: str) -> str:
        """The value of an attribute, empty without it."""
        return self.attributes.get(name, "")


@dataclass
class Form:
    """A form with the fields that a browser would send, and the labels of its buttons as a screen reader says them."""

    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[str] = field(default_factory=list)

    @property
    def sent(self) -> dict[str, str]:
        """The fields by name, the last of those with one name."""
        return dict(self.fields)


class Html(HTMLParser):
    """A page as it was read: `elements` in their order, `forms`, and `words`, all text that is shown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.elements: list[Element] = []
        self.forms: list[Form] = []
        self.comments: list[str] = []
        self._open: list[Element] = []
        self._texts: dict[int, list[str]] = {}
        self.feed(text)
        self.close()
        while self._open:
            self._close()
        self._fill()

    @property
    def words(self) -> str:
        """The text of the page, without its head."""
        [body] = self.all("body")
        return body.text

    @property
    def form_key(self) -> str:
        """The key of its forms."""
        return next(one.get("value") for one in self.all("input") if one.get("name") == "form_key")

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements with this tag and these attributes; an underscore at the end of a name is left out."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            one
            for one in self.elements
            if one.tag == tag and all(one.attributes.get(name) == value for name, value in wanted.items())
        ]

    def links(self) -> list[str]:
        """Where its links lead."""
        return [one.get("href") for one in self.all("a")]

    def form(self, action: str, label: str | None = None) -> Form:
        """The first form with this action, and with a button of this label."""
        found = [one for one in self.forms if one.action == action and (label is None or label in one.buttons)]
        assert found, (action, label, [(one.action, one.buttons) for one in self.forms])
        return found[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        one = Element(tag, {name: value or "" for name, value in attrs}, [around.tag for around in self._open])
        self.elements.append(one)
        if tag not in _VOID:
            self._open.append(one)
            self._texts[id(one)] = []

    def handle_endtag(self, tag: str) -> None:
        if tag in {one.tag for one in self._open}:
            while self._close() != tag:
                pass

    def handle_data(self, data: str) -> None:
        for one in self._open:
            self._texts[id(one)].append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def _close(self) -> str:
        one = self._open.pop()
        one.text = "".join(self._texts.pop(id(one)))
        return one.tag

    def _fill(self) -> None:
        """Gather the forms. A form never stands inside another one, so its controls are those up to the next one."""
        selects: Element | None = None
        for one in self.elements:
            if one.tag == "form":
                self.forms.append(Form(one.get("method") or "get", one.get("action")))
            elif "form" in one.inside and self.forms:
                selects = one if one.tag == "select" else selects
                _add_control(self.forms[-1], one, selects)


def _add_control(form: Form, one: Element, select: Element | None) -> None:
    if one.tag == "button":
        form.buttons += [one.text.strip(), *([one.get("aria-label")] if one.has("aria-label") else [])]
    elif one.tag == "textarea":
        # A line break at its beginning is part of the markup.
        form.fields.append((one.get("name"), one.text.removeprefix("\n")))
    elif one.tag == "option" and select is not None and (one.has("selected") or select.get("name") not in form.sent):
        form.fields = [pair for pair in form.fields if pair[0] != select.get("name")]
        form.fields.append((select.get("name"), one.get("value") if one.has("value") else one.text))
    elif one.tag == "input" and one.has("name"):
        is_ticked = one.get("type") not in ("checkbox", "radio") or one.has("checked")
        form.fields += [(one.get("name"), one.get("value"))] if is_ticked else []


class Person:
    """Somebody at a browser. `html` is what it shows, from `path`."""

    def __init__(self, server: Served, http: httpx2.Client) -> None:
        self.server = server
        self.http = http
        self.path = "/"
        self.html = Html("<body></body>")

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """The answer to a path, without following it. Names of headers have underscores."""
        return self.http.get(path, headers=_headers(headers))

    def open(self, path: str, **query: Any) -> Html:
        """Show a view, and follow where the server sends us."""
        answer = self.http.get(path, params=query or None)
        return self._show(answer)

    def send(self, form: Form, *, origin: str | None = None, **changed: Any) -> httpx2.Response:
        """Send a form as a browser does, without following the answer. `changed` are other values of its fields; None
        leaves a field out, and a list sends several."""
        kept = [(name, value) for name, value in form.fields if name not in changed]
        ours = [
            (name, one)
            for name, value in changed.items()
            for one in ([] if value is None else value if isinstance(value, list) else [value])
        ]
        said = {"origin": self.server.origin if origin is None else origin, "sec-fetch-site": "same-origin"}
        return self.post(form.action, [*kept, *ours], {name: value for name, value in said.items() if value})

    def post(
        self, path: str, fields: Sequence[tuple[str, Any]], headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Post these fields with these headers and no others."""
        grouped: dict[str, list[str]] = {}
        for name, value in fields:
            grouped.setdefault(name, []).append(str(value))
        return self.http.post(path, data=grouped, headers=headers or {})

    def submit(self, form: Form, **changed: Any) -> Html:
        """Send a form, and show where it leads."""
        answer = self.send(form, **changed)
        assert answer.status_code == 303, (answer.status_code, answer.text)
        return self._show(answer)

    def act(self, act: str, **fields: Any) -> Html:
        """Send the form of an act with these fields, from the view that is shown, and show where it leads."""
        return self.submit(self.form(act), **fields)

    def form(self, act: str) -> Form:
        """An empty form of an act, with the key of the view that is shown."""
        return Form("post", f"/act/{act}", [("form_key", self.html.form_key), ("back", self.path)])

    def press(self, action: str, label: str | None = None, **changed: Any) -> Html:
        """Send the first form of the page with this action, and with a button of this label."""
        return self.submit(self.html.form(action, label), **changed)

    def undo(self) -> Html:
        """Press Undo."""
        [form] = [one for one in self.html.forms if "Undo" in one.buttons]
        return self.submit(form)

    @property
    def said(self) -> str | None:
        """What the undo bar says; None without one."""
        bar = self.html.all("div", class_="undo")
        return bar[0].text.partition(".")[0].strip() if bar else None

    @property
    def can_undo(self) -> bool:
        """Whether the bar offers to take it back."""
        return any("Undo" in one.buttons for one in self.html.forms)

    def enter(self, *, back: str | None = None, **typed: str) -> httpx2.Response:
        """Send the form of the entrance; the answer to it."""
        self.open("/enter", **({"back": back} if back else {}))
        return self.send(self.html.form("/enter"), **typed)

    def _show(self, answer: httpx2.Response) -> Html:
        while answer.status_code == 303:
            answer = self.http.get(answer.headers["location"])
        assert answer.status_code == 200, (answer.status_code, answer.text)
        self.path = answer.url.raw_path.decode("ascii")
        self.html = Html(answer.text)
        return self.html


@contextmanager
def visiting(server: Served) -> Iterator[Person]:
    """A person who is not signed in."""
    with httpx2.Client(base_url=server.origin, timeout=PATIENCE_S, trust_env=False, verify=False) as http:
        yield Person(server, http)


@contextmanager
def signed_in(server: Served, token: str | Permission = Permission.ADMIN) -> Iterator[Person]:
    """A person who signed in with this token, or that of this permission, and sees Ask."""
    text = server.tokens[token] if isinstance(token, Permission) else token
    with visiting(server) as person:
        answer = person.enter(token=text)
        assert answer.status_code == 303, answer.text
        person.open(answer.headers["location"])
        yield person


def made_link(
    database: Path,
    *,
    owner: str | None = None,
    permission: Permission = Permission.ADMIN,
    clock: ScriptedClock | None = None,
) -> str:
    """The path of a new link that signs in, made now or at the time of this clock."""

    async def make() -> str:
        async with open_memory(database, **({} if clock is None else {"clock": clock})) as memory:
            whose = memory if owner is None else memory.of_owner(owner)
            return f"/enter/{await whose.access.pages.link(permission)}"

    return anyio.run(make)


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
