"""Who gets the App: hosts that declare it, in the lists and in results. All others get what they got without it."""

import json
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from mcp.types import TextResourceContents

from kalito_mcp.domain.records import CreatePinRequest, Reach
from kalito_mcp.domain.spaces import Role
from kalito_mcp.server.app.offering import PAGE, PAGE_URI
from kalito_mcp.server.bake import answers_to, legacy_requests, modern_requests
from tests.flows.harness import ERAS
from tests.server.app.served import served

SHOWS_APPS: Final = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
SHOWS_OTHERS: Final = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}, "x/y": {}}}
REQUESTS: Final = {"2025-11-25": legacy_requests(), "2026-07-28": modern_requests()}
OPENS: Final = {"search_memory", "build_context"}
CALLED: Final = {"create_pin", "update_memory", "forget", "restore", "memory_history"}


def of_host(era: str, capabilities: dict[str, Any]) -> dict[str, bytes]:
    """By method, what the server answers to a host with these capabilities."""
    text = json.dumps(REQUESTS[era]).replace('apabilities": {}', f'apabilities": {json.dumps(capabilities)}')
    requests = json.loads(text)
    return dict(zip([one["method"] for one in requests], anyio.run(answers_to, requests), strict=True))


def result_of(answer: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer)["result"]
    return found


@pytest.mark.parametrize("era", REQUESTS)
def test_a_host_that_shows_no_apps_gets_the_same_to_the_byte(era: str) -> None:
    plain = of_host(era, {})
    assert plain == of_host(era, SHOWS_OTHERS)
    assert plain["tools/list"] != of_host(era, SHOWS_APPS)["tools/list"]
    assert b"ui://" not in b"".join(plain.values())
    assert b'"ui"' not in b"".join(plain.values())


@pytest.mark.parametrize("era", REQUESTS)
def test_a_host_that_shows_apps_gets_nothing_else_than_the_app_on_top(era: str) -> None:
    plain, shown = of_host(era, {}), of_host(era, SHOWS_APPS)
    found = result_of(shown["tools/list"])
    metas = {tool["name"]: tool["_meta"] for tool in found["tools"]}
    both = ["model", "app"]
    assert {name for name, meta in metas.items() if "ui" in meta} == OPENS | CALLED
    for name in OPENS:
        assert metas[name].pop("ui") == {"resourceUri": PAGE_URI, "visibility": both}
        assert metas[name].pop("ui/resourceUri") == PAGE_URI
    for name in CALLED:
        assert metas[name].pop("ui") == {"visibility": both}
    listed = result_of(shown["resources/list"])
    page = listed["resources"].pop()
    assert page["uri"] == PAGE_URI
    assert page["mimeType"] == "text/html;profile=mcp-app"
    for one in (found, listed):
        assert one.pop("cacheScope", "private") == "private"
    assert found == without_scope(plain["tools/list"])
    assert listed == without_scope(plain["resources/list"])
    same = plain.keys() - {"tools/list", "resources/list", "server/discover"}
    assert {method: plain[method] for method in same} == {method: shown[method] for method in same}


def without_scope(answer: bytes) -> dict[str, Any]:
    return {name: value for name, value in result_of(answer).items() if name != "cacheScope"}


def test_a_discovering_host_that_shows_apps_finds_the_extension() -> None:
    [plain, shown] = (
        result_of(of_host("2026-07-28", said)["server/discover"])["capabilities"] for said in ({}, SHOWS_APPS)
    )
    assert shown == plain | {"extensions": {"io.modelcontextprotocol/ui": {}}}


@pytest.mark.parametrize("era", ERAS)
def test_the_page_is_read_at_its_address(era: str, database: Path) -> None:
    with served(database, era) as opened:
        [content] = opened.portal.call(opened.client.read_resource, PAGE_URI).contents
    assert isinstance(content, TextResourceContents)
    assert (content.text, content.mime_type) == (PAGE, "text/html;profile=mcp-app")
    assert content.meta == {"ui": {"prefersBorder": True}}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("has_apps", [False, True])
def test_only_a_host_that_shows_apps_gets_records_beside_the_same_answer(
    era: str, database: Path, *, has_apps: bool
) -> None:
    with served(database, era, has_apps=has_apps) as opened:
        said = [{"role": "user", "text": "I live in Lyon.\u202e " + "Long. " * 100}]
        opened.facts("record_messages", session_id="s", messages=said)
        opened.facts("list_tasks")
        for tool, arguments in {
            "search_memory": {"query": "Lyon"},
            "build_context": {"query": "Lyon"},
            "forget": {"about": "Lyon"},
        }.items():
            result = opened.call(tool, arguments)
            meta = result.get("_meta", {})
            assert ("kalito/records" in meta) == has_apps, tool
            assert "why" not in json.dumps(result.get("structuredContent"))
            for record in meta.get("kalito/records", []):
                assert record.keys() >= {"record_id", "text"}
                assert record["text"].startswith("I live in Lyon.\\u{202e}")
                assert len(record["text"]) < 320
        explained = opened.call("search_memory", {"query": "Lyon", "explain": True})["structuredContent"]["hits"]
        assert all(hit["why"] and hit["parts"] for hit in explained)


@pytest.mark.parametrize(
    ("role", "changeable"),
    [
        (Role.READER, set()),
        (Role.WRITER, {"mine", "mine too"}),
        (Role.CURATOR, {"hers", "mine", "hers too", "mine too"}),
    ],
)
def test_what_the_role_in_a_space_does_not_let_one_change_is_fixed(
    role: Role, changeable: set[str], database: Path
) -> None:
    copies: dict[str, str] = {}

    async def share() -> None:
        memory = await opened.server.opened.memory()
        await memory.spaces.create("backend")
        for name, text in {
            "hers": "The build runs on Tuesdays.",
            "mine": "The build is slow.",
            "hers too": "The build costs nothing.",
            "mine too": "The build costs nothing.",
        }.items():
            whose = memory.of_owner("ann") if name.startswith("hers") else memory
            await memory.spaces.set_member("backend", whose.place.owner, Role.WRITER)
            pin = await whose.create_pin(CreatePinRequest(content=text, scope=Reach.PERSON))
            shared, _ = await whose.spaces.share(pin.id, "backend")
            await whose.forget(pin.id)  # the copy stays
            copies[shared.id] = name
        await memory.spaces.set_member("backend", memory.place.owner, role)

    with served(database, ERAS[-1]) as opened:
        opened.portal.call(share)
        for tool in ("search_memory", "build_context"):
            found = opened.call(tool, {"query": "the build"})["_meta"]["kalito/records"]
            shown = {copies[one["record_id"]]: one for one in found}
            assert {"hers", "mine"} < shown.keys(), tool
            assert {one["space"] for one in found} == {"backend"}, tool
            assert {name for name, one in shown.items() if not one.get("fixed")} == changeable & shown.keys(), tool
            if tool == "search_memory":
                [twice] = shown.keys() - {"hers", "mine"}
                same = {copies[each] for each in shown[twice].get("same", ())}
                assert same == changeable & ({"hers too", "mine too"} - {twice})


def test_a_copy_with_the_words_of_one_s_own_record_is_not_named_to_be_forgotten(database: Path) -> None:
    async def share() -> str:
        memory = await opened.server.opened.memory()
        await memory.spaces.create("backend")
        await memory.spaces.set_member("backend", "ann", Role.WRITER)
        await memory.spaces.set_member("backend", memory.place.owner, Role.READER)
        for whose in (memory.of_owner("ann"), memory):
            pin = await whose.create_pin(CreatePinRequest(content="The build costs nothing.", scope=Reach.PERSON))
            if whose is not memory:
                await whose.spaces.share(pin.id, "backend")
        return pin.id

    with served(database, ERAS[-1]) as opened:
        own = opened.portal.call(share)
        [found] = opened.call("search_memory", {"query": "the build"})["_meta"]["kalito/records"]
        assert (found["record_id"], found.get("same"), found.get("fixed")) == (own, None, None)
