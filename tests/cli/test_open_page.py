"""`kalito-mcp open`: finds the server of the memory or is one, and opens a link that works once. Real processes."""

import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2

from kalito_mcp.bridge.connection import Connection, write_connection
from kalito_mcp.domain.access import Permission
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke
from tests.server.prepared import start
from tests.server.web import web
from tests.server.wire import COVERED, PATIENCE_S, clean_environment


@contextmanager
def opening(database: Path, *options: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """`kalito-mcp open` in a process of its own, which is interrupted at the end of the block."""
    process = start(
        [sys.executable, "-m", "kalito_mcp", "open", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(KALITO_DATABASE=str(database), **environment, **COVERED),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def first_lines(process: subprocess.Popen[bytes], count: int = 1) -> list[str]:
    assert process.stderr is not None
    return [process.stderr.readline().decode().strip() for _ in range(count)]


def printed(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def enters(database: Path, links: Sequence[str]) -> list[bool]:
    """Whether the link lets a browser in as somebody who may do everything."""

    async def enter() -> list[bool]:
        found = []
        async with open_memory(database) as memory:
            for link in links:
                made = await memory.access.pages.enter(link.rpartition("/enter/")[2])
                found.append(made is not None and made.token.permission is Permission.ADMIN)
        return found

    return anyio.run(enter)


def browser(folder: Path) -> dict[str, str]:
    """A browser that notes the link in the file `opened`."""
    script = folder / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > "{folder}/opened"\n')
    script.chmod(stat.S_IRWXU)
    return {"BROWSER": f"{script} %s"}


def test_it_serves_until_interrupted_and_is_found_by_the_next_one(tmp_path: Path, invoke: Invoke) -> None:
    database = tmp_path / "memory.db"
    with opening(database, "--no-browser") as process:
        assert first_lines(process) == ["kalito-mcp: serving the page until Ctrl-C"]
        link = printed(process)
        base = link.partition("/enter/")[0]
        assert (urlsplit(link).hostname, httpx2.get(f"{base}/health/ready").status_code) == ("127.0.0.1", 200)
        assert httpx2.get(f"{base}/api/stats").status_code == 401, "other programs need a token, as ever"
        second = invoke("open", "--no-browser", "--database", str(database))
        assert (second.code, second.err) == (0, "")
        assert second.out.startswith(f"{base}/enter/kal_")
        links = [link, second.out.strip()]
        assert enters(database, [*links, link]) == [True, True, False]
    assert not (tmp_path / "memory.db.address").exists()


def test_a_server_that_runs_already_is_opened(tmp_path: Path, invoke: Invoke) -> None:
    database = tmp_path / "memory.db"
    with web("http", database, login=True) as serving:
        outcome = invoke("open", "--no-browser", "--database", str(database))
        assert outcome.out.startswith(f"{serving.url.removesuffix('/mcp')}/enter/")
        assert enters(database, [outcome.out.strip()]) == [True]


def test_the_link_leads_to_the_page_and_needs_no_code_where_everybody_may_call(tmp_path: Path, invoke: Invoke) -> None:
    for login, status in ((True, 200), (False, 303)):
        database = tmp_path / f"{login}.db"
        with web("http", database, login=login), httpx2.Client() as http:
            link = invoke("open", "--no-browser", "--database", str(database)).out.strip()
            assert http.get(link).status_code == status
            house = http.get(f"{link.partition('/enter/')[0]}/house")
            assert (house.status_code, "<h1>House</h1>" in house.text) == (200, True)


def test_the_browser_gets_the_link_and_nothing_else_does(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with opening(database, **browser(tmp_path)) as process:
        lines = first_lines(process, 2)
        assert [line.partition("http")[0] for line in lines] == [
            "kalito-mcp: serving the page until Ctrl-C",
            "kalito-mcp: opened ",
        ]
        assert enters(database, [(tmp_path / "opened").read_text().strip()]) == [True]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert b"kal_" not in out + err


def test_without_a_browser_the_link_is_printed(tmp_path: Path) -> None:
    with opening(tmp_path / "memory.db", PATH=str(tmp_path), BROWSER="", DISPLAY="", WAYLAND_DISPLAY="") as process:
        assert "no browser can be opened" in first_lines(process, 2)[1]
        assert "/enter/kal_" in printed(process)


def test_the_memory_of_another_machine_is_opened_there(tmp_path: Path, invoke: Invoke) -> None:
    write_connection(tmp_path / "memory.db.home", Connection("https://kalito.example.org/mcp"), "kal_x")
    outcome = invoke("open", "--database", str(tmp_path / "memory.db"))
    assert outcome.out == (
        "the memory of this machine is at https://kalito.example.org; open that address in a browser\n"
    )
    assert not (tmp_path / "memory.db").exists()
