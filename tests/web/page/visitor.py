"""A person with a browser that has no scripts: follows links, fills in forms and sends them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx2

from kalito_mcp.domain.access import Permission
from tests.sign_in.harness import Home


@dataclass
class Form:
    """A form of a page. `fields` are what it sends if nothing is filled in."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(given.get("action", "")))
        elif tag in ("input", "select", "textarea") and self.found and "name" in given:
            self.found[-1].fields[given["name"]] = given.get("value", "")


def forms(page: httpx2.Response) -> list[Form]:
    """The forms of a page."""
    parser = _Forms()
    parser.feed(page.text)
    return parser.found


@dataclass
class Visitor:
    """Somebody who is signed in. Redirects are followed."""

    home: Home
    http: httpx2.AsyncClient

    async def get(self, path: str, status: int = 200) -> httpx2.Response:
        """A page."""
        answer = await self.http.get(path, follow_redirects=True)
        assert answer.status_code == status, answer.text
        return answer

    async def act(self, page: httpx2.Response, act: str, status: int = 200, **filled: str) -> httpx2.Response:
        """Send the form of an act, the one whose fields are these if there are several; the page that follows."""
        among = [one for one in forms(page) if one.action == f"/act/{act}"]
        meant = [one for one in among if filled.items() <= one.fields.items()] or among[:1]
        assert meant, f"no form for {act} in {page.text}"
        return await self.send(act, meant[0].fields | filled, status)

    async def send(self, act: str, fields: Mapping[str, str], status: int = 200) -> httpx2.Response:
        """Send an act with these fields."""
        headers = {"origin": self.home.base}
        answer = await self.http.post(f"/act/{act}", data=dict(fields), headers=headers, follow_redirects=True)
        assert answer.status_code == status, answer.text
        return answer

    async def undo(self, page: httpx2.Response) -> httpx2.Response:
        """Press the button of the undo bar."""
        bar = page.text.partition('class="undo"')[2]
        [first, *_] = forms(httpx2.Response(200, text=bar))
        return await self.send(first.action.removeprefix("/act/"), first.fields)


@asynccontextmanager
async def visiting(
    home: Home, permission: Permission = Permission.ADMIN, owner: str = "local"
) -> AsyncIterator[Visitor]:
    """Somebody whom a link lets in, for the block."""
    link = await home.memory.of_owner(owner).access.pages.link(permission)
    async with httpx2.AsyncClient(base_url=home.base, timeout=30, trust_env=False, verify=False) as http:
        answer = await http.get(f"/enter/{link}")
        assert answer.status_code == 200, answer.text
        yield Visitor(home, http)
