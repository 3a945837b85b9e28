"""What a server writes to its log has no word of the memory and no token, whatever is called. What it answers has no
path, no SQL and no traceback."""

import json
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.web.rest.table import TABLE
from tests.campaign import first_of
from tests.flows.test_paused import GOES_ON, TAKES_WORDS
from tests.web.rest.test_table import BODIES
from tests.web.talking import Caller, talking, token

WORD: Final = "quetzalcoatlus"
UNKNOWN: Final = f"kal_{WORD}{'x' * 29}"
NEVER_ANSWERED: Final = ("Traceback", "sqlite", "SELECT ", "INSERT ", "site-packages", ".py", "kalito_mcp.")


def with_word(value: Any) -> Any:
    """The same value with the word in each text that is none of the program's own."""
    if isinstance(value, dict):
        return {name: with_word(one) for name, one in value.items()}
    if isinstance(value, list):
        return [with_word(one) for one in value]
    return f"{value} {WORD}" if isinstance(value, str) and (" " in value or value in ("s", "tea")) else value


@pytest.mark.parametrize("level", first_of(["DEBUG", "INFO"]))
def test_no_word_and_no_token_gets_into_the_log_and_no_inside_into_an_answer(tmp_path: Path, level: str) -> None:
    database = tmp_path / "memory.db"
    admin, reader = token(database, Permission.ADMIN), token(database, Permission.READ)
    answers: list[str] = []
    with talking(
        database, KALITO_LOG=level, KALITO_MEMORY_TOOL="1", KALITO_HOOKS="claude-code", KALITO_CHATGPT="1"
    ) as (serving, http):
        caller = Caller.connect(http, serving.url, admin)
        for tool, calls in [*TAKES_WORDS.items(), *GOES_ON.items()]:
            for call in calls:
                answers.append(json.dumps(caller.call(tool, with_word(call))))
                answers.append(json.dumps(caller.call(tool, {**call, WORD: WORD, "session_id": f"{WORD}\0"})))
        answers.append(json.dumps(caller.call(WORD, {})))
        answers += _rest(http, admin) + _rest(http, reader)
        for text in (UNKNOWN, f"{admin}x", f"Basic {admin}"):
            answers.append(http.get("/metrics", headers={"Authorization": f"Bearer {text}"}).text)
            answers.append(http.get(f"/{WORD}?token={admin}", headers={"Authorization": f"Bearer {admin}"}).text)
        answers.append(http.post("/mcp", content=f"{{{WORD}", headers=caller.headers).text)
    log = b"".join(serving.log).decode()
    for secret in (WORD, admin, reader, admin[4:20], reader[4:20]):
        assert secret.lower() not in log.lower()
    for answer in answers:
        assert [one for one in (*NEVER_ANSWERED, str(tmp_path)) if one in answer.replace(WORD, "")] == [], answer


def _rest(http: httpx2.Client, text: str) -> list[str]:
    """What each endpoint answers to a call that fits, and to one that does not."""
    answers = []
    for endpoint in TABLE:
        path = "/api" + endpoint.path
        for name in ("session_id", "record_id", "token_id"):
            path = path.replace(f"{{{name}}}", f"{WORD}-9")
        for body in (with_word(BODIES.get(endpoint.name, {})), {WORD: WORD}):
            headers = {"Authorization": f"Bearer {text}", "If-Match": '"1"'}
            answer = http.request(
                endpoint.method, path, headers=headers, **({} if endpoint.method == "GET" else {"json": body})
            )
            if endpoint.path not in ("/openapi.json", "/export"):
                answers.append(answer.text)
    return answers


def test_a_database_that_fails_is_said_without_its_path_over_http(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    admin = token(database, Permission.ADMIN)
    with talking(database) as (serving, http):
        caller = Caller.connect(http, serving.url, admin)
        caller.call("record_messages", {"session_id": "s", "messages": [{"role": "user", "text": "To Oslo."}]})
        with database.open("r+b") as damaged:
            damaged.seek(4_096)
            damaged.write(b"\xff" * (database.stat().st_size - 4_096))
        with database.with_name("memory.db-wal").open("r+b") as wal:
            wal.truncate(0)
        calls = [("search_memory", {"query": "Oslo"}), ("remember", {"type": "note", "text": "Tea."})]
        sent = [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
            for name, given in calls
        ]
        answers = [caller.send(one) for one in sent]
        answers.append(http.get("/api/records", headers={"Authorization": f"Bearer {admin}"}))
    for answer in answers:
        assert "memory.db" not in answer.text
        assert str(tmp_path) not in answer.text
        assert "the reason is in the server's log" in answer.text
    log = b"".join(serving.log).decode()
    assert "memory.db" in log
    assert "Traceback" not in log
