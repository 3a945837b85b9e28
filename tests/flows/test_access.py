"""Who may do what over HTTP: every tool, resource and completion, for each kind of caller, against one table."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import httpx2
import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import DEFAULT_AGENT, Limits
from kalito_mcp.memory import Memory
from kalito_mcp.server.tools.table import PERMISSIONS
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.web.talking import Caller, talking

pytestmark = pytest.mark.timeout(300)

MARK: Final = "zqlantern"
"""A word of Ann's project `shop`, of the default agent. Nobody else said it."""
MARKS: Final = (MARK, *(f"zqtrip {one} " for one in ("read", "write", "admin", "limited")))
"""And the ids of sessions that nobody else names."""
SHOP: Final = "shop"
TEXT: Final = f"The {MARK} hangs behind the door."
STRANGERS: Final = ("no token", "unknown", "expired", "revoked")
"""Those who are not let in, whatever they ask."""
CALLERS: Final = ("read", "write", "admin", "limited", "other owner", "other agent", "other project")
"""`limited` may reach the project and no other. The last four have the permission `admin`."""


class Row(NamedTuple):
    """A call, and what it gives each of CALLERS, in their order.

    `shown`: Ann's words. `done`: it succeeds. `own`: it succeeds, and has nothing of Ann's. `none`: what is named was
    not found. `denied`: the caller may not. `other`: it is of another project than the caller works in.
    """

    what: str
    arguments: Mapping[str, Any]
    expected: str


SESSION, MESSAGE, NOTE, FILE, CODE = "<session>", "<message>", "<note>", "<file>", "<code>"
"""In arguments: the id of what Ann has, of each row and caller something else."""
SAID: Final = [{"role": "user", "text": "The ladder is new."}]
PIN: Final = "The ladder is new."
TABLE: Final = [
    Row(
        "record_messages",
        {"session_id": SESSION, "messages": SAID, "project": SHOP},
        "denied done done done own own denied",
    ),
    Row("record_messages", {"session_id": SESSION, "messages": SAID}, "denied other other done own own own"),
    Row("build_context", {"session_id": SESSION, "project": SHOP}, "shown shown shown shown none none denied"),
    Row("build_context", {"session_id": SESSION}, "shown shown shown shown none none none"),
    Row("build_context", {}, "own own own shown own own own"),
    Row("build_context", {"query": TEXT}, "shown shown shown shown own own own"),
    Row("build_context", {"query": TEXT, "project": "personal"}, "own own own own own own own"),
    Row("build_context", {"query": TEXT, "project": "*"}, "shown shown shown denied own own denied"),
    Row("search_memory", {"query": "hangs behind"}, "shown shown shown shown own own own"),
    Row("search_memory", {"query": "hangs behind", "project": SHOP}, "shown shown shown shown own own denied"),
    Row("search_memory", {"query": "hangs behind", "project": "*"}, "shown shown shown denied own own denied"),
    Row(
        "search_memory",
        {"query": "hangs", "session_id": SESSION, "project": SHOP},
        "shown shown shown shown own own denied",
    ),
    Row(
        "search_memory",
        {"query": "hangs", "agent_id": DEFAULT_AGENT, "project": SHOP},
        "shown shown shown shown own denied denied",
    ),
    # In words of its own: the same words are pinned once, and the answer says where.
    Row("create_pin", {"session_id": SESSION, "content": NOTE}, "denied done done done own own own"),
    Row(
        "create_pin",
        {"session_id": SESSION, "content": NOTE, "source_message_id": MESSAGE},
        "denied done done done none none none",
    ),
    Row("summarize_session", {"session_id": SESSION}, "denied shown shown shown none none none"),
    Row("summarize_session", {"session_id": SESSION, "summary": PIN}, "denied done done done none none none"),
    Row("record_feedback", {"target_id": MESSAGE, "label": "up"}, "denied done done done none none none"),
    Row("finalize_session", {"session_id": SESSION}, "denied shown shown shown none none none"),
    Row("finalize_session", {"session_id": SESSION, "dry_run": True}, "denied done done done none none none"),
    Row(
        "finalize_session",
        {"session_id": SESSION, "checkpoint_name": "mine"},
        "denied shown shown denied none denied denied",
    ),
    Row("remember", {"type": "note", "text": PIN, "project": SHOP}, "denied done done done own own denied"),
    Row("remember", {"type": "task", "text": PIN, "session_id": SESSION}, "denied other other done own own own"),
    Row(
        "remember", {"type": "note", "text": PIN, "fields": {"caused_by": NOTE}}, "denied done done done none none none"
    ),
    Row(
        "update_memory",
        {"record_id": NOTE, "changes": {"text": f"{TEXT} Still."}, "expected_revision": 1},
        "denied done done done none none none",
    ),
    Row(
        "update_memory",
        {"record_id": NOTE, "changes": {"project": "garden"}, "expected_revision": 1},
        "denied shown shown denied none none none",
    ),
    Row("forget", {"record_ids": [NOTE]}, "denied done done done none none none"),
    Row(
        "forget", {"record_ids": [MESSAGE], "purge": True, "confirmed": True}, "denied denied done done none none none"
    ),
    Row("forget", {"identifier": CODE, "project": SHOP}, "denied shown shown shown own own denied"),
    Row("restore", {"record_id": NOTE}, "denied shown shown shown none none none"),
    Row("restore", {"record_id": NOTE, "version": 1}, "denied shown shown shown none none none"),
    Row("memory_history", {"record_id": NOTE}, "shown shown shown shown none none none"),
    Row("memory_history", {"record_id": MESSAGE, "version": 1}, "shown shown shown shown none none none"),
    Row("search", {"query": "hangs behind"}, "shown shown shown shown own own own"),
    Row("fetch", {"id": NOTE}, "shown shown shown shown none none none"),
    Row("list_tasks", {}, "own own own shown own own own"),
    Row("list_tasks", {"agent_id": DEFAULT_AGENT}, "own own own shown own denied own"),
    Row("memory", {"command": "view", "path": "/memories", "project": SHOP}, "denied shown shown shown own own denied"),
    Row("memory", {"command": "view", "path": FILE}, "denied none none shown none none none"),
    Row("memory", {"command": "delete", "path": FILE, "project": SHOP}, "denied done done done none none denied"),
    Row(
        "hook_event",
        {"host": "claude-code", "event": "UserPromptSubmit", "session_id": SESSION, "prompt": "Where does it hang?"},
        "denied done done shown own own own",
    ),
    Row("memory://sessions", {}, "own own own shown own own own"),
    Row("memory://sessions/{session}/stats", {}, "done done done done none none none"),
    Row("memory://sessions/{session}/graph", {}, "shown shown shown shown none none none"),
    Row("memory://agent", {}, "shown shown shown denied own own denied"),
    Row("memory://profile", {}, "own own own shown own own own"),
    Row("memory://snapshots", {}, "done done done denied own denied denied"),
    Row("memory://snapshots/default", {}, "shown shown shown denied none denied denied"),
    Row("memory://snapshots/default/graph", {}, "shown shown shown denied none denied denied"),
    Row("memory://records/{note}", {}, "shown shown shown shown none none none"),
    Row("memory://records/{message}/history", {}, "done done done done none none none"),
    Row("completion of session_id", {"value": "zq"}, "own own own shown own own own"),
    Row("completion of record_id", {"value": "task_"}, "own own own own own own own"),
    Row("prompt resume_session", {"session_id": SESSION}, "shown shown shown shown none none none"),
]


@dataclass(frozen=True)
class Anns:
    """What Ann has, for one row and one caller to name."""

    session: str
    message: str
    note: str
    file: str
    code: str


async def anns(memory: Memory, name: str) -> Anns:
    session, file = f"zqtrip {name} &=:%/..", f"/memories/{MARK}-{name.replace(' ', '-')}.md"
    code = f"zq{name.replace(' ', 'q')}"
    turns = [NewMessage(Role.USER, f"Where does the {MARK} hang?"), NewMessage(Role.ASSISTANT, TEXT)]
    recorded = await memory.record_messages(session, turns)
    [note] = await memory.remember("note", {"text": f"{TEXT} Its code is {code}."})
    await memory.remember("task", {"text": f"Fetch the {MARK}."})
    await memory.files.write(file, lambda _tree, _text: TEXT)
    return Anns(session, recorded.message_ids[1], note.id, file, code)


async def laid(database: Path) -> tuple[dict[str, str], dict[tuple[int, str], Anns]]:
    """Tokens by caller, and what Ann has by row and caller."""
    async with open_memory(lay_empty_database(database)) as memory:

        async def token(permission: Permission, owner: str = "ann", limits: Limits | None = None, **more: Any) -> str:
            return (await memory.access.create_token(permission, owner=owner, limits=limits or Limits(), **more)).text

        revoked = await memory.access.create_token(Permission.ADMIN, owner="ann")
        await memory.access.revoke_token(revoked.token.id)
        tokens = {
            "no token": "",
            "unknown": "kal_of_nobody",
            "expired": await token(Permission.ADMIN, lifetime_ms=1),
            "revoked": revoked.text,
            "read": await token(Permission.READ),
            "write": await token(Permission.WRITE),
            "admin": await token(Permission.ADMIN),
            "limited": await token(Permission.ADMIN, limits=Limits(project=SHOP)),
            "other owner": await token(Permission.ADMIN, owner="ben"),
            "other agent": await token(Permission.ADMIN, limits=Limits(agent="cook")),
            "other project": await token(Permission.ADMIN, limits=Limits(project="garden")),
        }
        shop = await memory.of_owner("ann").in_project(SHOP)
        named = {
            (number, caller): await anns(shop, f"{caller} {number}")
            for number in range(len(TABLE))
            for caller in CALLERS
        }
        await memory.settled()
        await shop.finalize_session(named[0, "admin"].session)
        named[0, "admin"] = await anns(shop, "admin anew")
        await memory.settled()
        return tokens, named


def filled(value: Any, theirs: Anns) -> Any:
    """The arguments with Ann's ids in the place of their names."""
    if isinstance(value, Mapping):
        return {name: filled(one, theirs) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, theirs) for one in value]
    ids = dict(zip((SESSION, MESSAGE, NOTE, FILE, CODE), vars(theirs).values(), strict=True))
    return ids.get(value, value) if isinstance(value, str) else value


def message_of(row: Row, theirs: Anns) -> dict[str, Any]:
    """The JSON-RPC message of a row."""
    arguments = filled(row.arguments, theirs)
    kind, _, name = row.what.rpartition(" ")
    if row.what.startswith("memory://"):
        quoted = httpx2.URL("http://x").copy_with(params={"_": theirs.session}).query.decode()[2:].replace("+", "%20")
        uri = row.what.format(session=quoted, note=theirs.note, message=theirs.message)
        return {"method": "resources/read", "params": {"uri": uri}}
    if kind == "prompt":
        return {"method": "prompts/get", "params": {"name": name, "arguments": arguments}}
    if kind == "completion of":
        template = {"session_id": "memory://sessions/{session_id}/stats"}.get(name, "memory://records/{record_id}")
        ref = {"type": "ref/resource", "uri": template}
        return {"method": "completion/complete", "params": {"ref": ref, "argument": {"name": name, **arguments}}}
    return {"method": "tools/call", "params": {"name": row.what, "arguments": arguments}}


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from strings(one)


def outcome(status: int, body: str, given: Sequence[str]) -> str:
    """What became of a call, in the words of `Row`."""
    if status in (401, 403):
        return {401: "stranger", 403: "denied"}[status]
    [line] = [line for line in body.splitlines() if line.startswith(("data: {", "{"))]
    answer = json.loads(line.removeprefix("data: "))
    said = " ".join(strings(answer.get("error") or answer["result"]))
    if "error" in answer or answer["result"].get("isError"):
        if "forbidden: this token reaches only" in said or "forbidden:" in said:
            return "denied"
        if any(words in said for words in ("not_found", "no session", "no record", "no snapshot", "does not exist")):
            return "none"
        return "other" if "belongs to project" in said else said
    for one in given:
        said = said.replace(one, "") if len(one) > len(MARK) else said
    return "shown" if any(one in said for one in MARKS) else "done"


def expected_of(row: Row) -> dict[str, str]:
    return dict(zip(CALLERS, row.expected.split(), strict=True))


def test_each_call_gives_each_caller_what_the_table_says(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    tokens, named = anyio.run(laid, database)
    environment = {f"KALITO_HTTP_{name}_PER_MINUTE": "100000" for name in ("CALLS", "WRITES", "REFUSALS")} | {
        "KALITO_HOOKS": "claude-code",
        "KALITO_MEMORY_TOOL": "1",
        "KALITO_CHATGPT": "1",
    }
    wrong: list[object] = []
    with talking(database, **environment) as (serving, http):
        callers = {one: Caller.connect(http, serving.url, tokens[one]) for one in CALLERS}
        listed = callers["admin"].send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).text
        [line] = [line for line in listed.splitlines() if line.startswith("data: {")]
        tools = {tool["name"] for tool in json.loads(line.removeprefix("data: "))["result"]["tools"]}
        rows = {row.what for row in TABLE if row.what.isidentifier()}
        assert rows == tools, "each tool has a row, and whoever adds one says here what it gives whom"
        strangers = {
            one: Caller(http, serving.url, {**callers["admin"].headers, "Authorization": f"Bearer {tokens[one]}"})
            for one in STRANGERS
        }
        del strangers["no token"].headers["Authorization"]
        # Those who may change nothing of Ann's come first.
        for caller in (*CALLERS[4:], *CALLERS[:4]):
            for number, row in enumerate(TABLE):
                theirs = named[number, caller]
                sent = {"jsonrpc": "2.0", "id": 1, **message_of(row, theirs)}
                answer = callers[caller].send(sent)
                found = outcome(
                    answer.status_code, answer.text, [*strings(filled(row.arguments, theirs)), theirs.session]
                )
                wanted = expected_of(row)[caller]
                if (found if wanted != "own" else {"done": "own"}.get(found, found)) != wanted:
                    wrong.append((caller, row.what, row.arguments, wanted, found, answer.text[:400]))
                if caller == "admin":
                    for stranger, one in strangers.items():
                        refused = one.send(sent)
                        if (refused.status_code, MARK in refused.text) != (401, False):
                            wrong.append((stranger, row.what, refused.status_code, refused.text[:200]))
            if caller == CALLERS[-1]:
                anyio.run(check_untouched, database, named)
    assert not wrong, "\n".join(map(str, wrong))


async def check_untouched(database: Path, named: Mapping[tuple[int, str], Anns]) -> None:
    """After those beyond the limits have tried everything, Ann has what she had."""
    async with open_memory(database) as memory:
        shop = await memory.of_owner("ann").in_project(SHOP)
        for theirs in named.values():
            stats = await shop.conversations.stats(theirs.session)
            assert (stats.total_messages, stats.total_pins, stats.state) == (2, 0, "OPEN")
            for record_id in (theirs.message, theirs.note):
                record = await shop.records.get(record_id)
                assert (record.revision, record.is_deleted, record.led_to) == (1, False, ())
            assert (await shop.files.look(theirs.file))[1] is not None


def test_the_tools_that_only_read_are_those_that_a_reading_token_may_call() -> None:
    readers = {row.what for row in TABLE if row.what.isidentifier() and "denied" not in row.expected.split()[0]}
    assert readers == {name for name, needed in PERMISSIONS.items() if needed is Permission.READ}
