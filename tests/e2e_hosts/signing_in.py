"""Claude Code signs in to a memory that is served over HTTP: it registers, is let in, renews, and is revoked."""

import asyncio
import os
import re
import select
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.e2e_hosts.home import Home
from tests.e2e_hosts.scenes import Report
from tests.server.web import web
from tests.sign_in.harness import PASSPHRASE, Browser

_LINK: Final = re.compile(rb"http://127\.0\.0\.1:\d+/authorize\?[!-~]+")
_PATIENCE_S: Final = 60.0


def sign_in(home: Home, database: Path, report: Report) -> None:
    """All of it. AssertionError if it cannot go on."""
    set_it = home.run("kalito-mcp", "passphrase", "--database", str(database), typed=f"{PASSPHRASE}\n")
    assert set_it.code == 0, set_it.said
    with web("http", database, login=True) as server:
        home.run("claude", "mcp", "add", "--transport", "http", "served", server.url)
        report.claim(
            "it sees that it has to sign in", holds="Needs authentication" in _listed(home), seen=_listed(home)
        )
        said = _login(home)
        report.claim("it signs in on our page", holds="Authenticated" in said, seen=said)
        report.claim("and is connected", holds="Connected" in _listed(home), seen=_listed(home))
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE access_tokens SET expires_at = 1 WHERE kind = 'access'")
        report.claim("it renews what has expired", holds="Connected" in _listed(home), seen=_listed(home))
        tokens = home.kalito("token", "list", "--database", str(database))
        grant = re.search(r"grant_\w+", tokens)
        report.claim(
            "it is in `kalito-mcp token list`", holds=grant is not None and "Claude Code" in tokens, seen=tokens
        )
        assert grant is not None
        home.kalito("token", "revoke", grant[0], "--database", str(database))
        listed = _listed(home)
        report.claim("once revoked, it has to sign in again", holds="Needs authentication" in listed, seen=listed)


def _listed(home: Home) -> str:
    return home.run("claude", "mcp", "list").said


def _login(home: Home) -> str:
    """What it says to the end, while a person follows its link."""
    said, link = b"", None
    with home.on_terminal("claude", "mcp", "login", "--no-browser", "served") as terminal:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and b"Authenticated" not in said:
            if not select.select([terminal], [], [], 1.0)[0]:
                continue
            try:
                said += os.read(terminal, 65_536)
            except OSError:  # it has ended
                break
            if link is None and (link := _LINK.search(said)) is not None:
                asyncio.run(_follow(link[0].decode()))
    return said.decode(errors="replace")


async def _follow(link: str) -> None:
    browser = Browser()
    answer = await browser.answer(await browser.open(link))
    await browser.send("GET", answer.headers["location"])
