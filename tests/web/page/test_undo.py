"""Each act hands back what takes it back: an act of the table, with ids and numbers alone."""

import re
from typing import Any

import pytest

from kalito_mcp.web.page.table import PAGE
from kalito_mcp.web.page.view import Act
from tests.web.page import example
from tests.web.page.clicks import CLICKS, UNDO_ALONE, Click, without_moved
from tests.web.page.visiting import Form, Html, Person, signed_in
from tests.web.rest.served import Served

SPARED = ("form_key", "back", "folder", "old", "new", "to")
"""Fields of an undo that are no ids: ours, and names of projects."""


@pytest.fixture(scope="module")
def filled(server: Served) -> Any:
    return example.fill(server.database)


def test_each_act_is_in_the_table_with_its_undo() -> None:
    acts = {one.act for one in PAGE if isinstance(one, Act)}
    undos = {one.undo for one in CLICKS.values()}
    assert acts == {*CLICKS, *UNDO_ALONE, "dismiss"}
    assert undos <= acts
    assert undos >= UNDO_ALONE


@pytest.mark.parametrize("act", CLICKS)
def test_an_act_is_taken_back_and_that_as_well(server: Served, filled: Any, act: str) -> None:
    click = CLICKS[act]
    with signed_in(server) as person:
        address = click.address.format(**filled)
        before = main(person.open(address))
        html = person.html
        person.submit(html.form(f"/act/{act}"), **sent(html, act, click))
        done, undo = main(person.html), undo_of(person)
        assert (done != before) is click.is_seen
        assert undo.action == f"/act/{click.undo}"
        person.undo()
        assert main(person.html) == before
        again = undo_of(person)
        assert again.action.removeprefix("/act/") in {*CLICKS, *UNDO_ALONE}
        person.undo()
        assert main(person.html) == done
        person.undo()
        assert main(person.html) == before
        person.act("dismiss")
        assert person.said is None


def sent(html: Html, act: str, click: Click) -> dict[str, Any]:
    """The fields that a person fills in, ticks or presses."""
    found: dict[str, Any] = dict(click.typed)
    if click.ticks:
        found["record_ids"] = html.all("input", name="record_ids")[0].get("value")
    if act == "close":
        found["point_ids"] = html.all("button", name="point_ids")[0].get("value")
    return found


def undo_of(person: Person) -> Form:
    """The form of the undo bar."""
    [form] = [one for one in person.html.forms if "Undo" in one.buttons]
    for name, value in form.fields:
        assert name in SPARED or re.fullmatch(r"[\w-]{1,60}", value), (name, value)
    return form


def main(html: Html) -> str:
    """What the view shows."""
    return without_moved(html.all("main")[0].text)
