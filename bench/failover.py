"""The failover campaign: the primary of a PostgreSQL dies under load, and its synchronous standby goes on.

Two servers of the memory serve over HTTP, with both hosts in their URL. Each client writes messages for an owner of its
own, each with a key of its own, and sends a message again until it is acknowledged. In a round all clients work; then
the primary and all its processes are killed with SIGKILL at a random moment, and the standby is promoted. A client goes
on when a message of it is acknowledged that it first sent after the kill. Then every message that was acknowledged has
to be there once, and nothing else but what was sent. Then the dead server is set up again, as the standby of the next
round.
"""

import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
import asyncpg

from bench.ledger import Violations
from bench.report import ROOT, in_rounds, progress
from bench.wire import clean_environment
from kalito_mcp.domain.access import Permission
from kalito_mcp.errors import SessionNotFound
from kalito_mcp.wiring import open_memory
from tests.postgres import APP, OWNER, SUPERUSER, Server, lay_template, new_server

_WORKERS: Final = 2
_CLIENTS: Final = 8
_WORKING_S: Final = (0.3, 2.0)
_AFTERWARDS: Final = 3
"""Messages of each client that have to be acknowledged after the kill, before a round ends."""
_LIMIT_S: Final = 10.0
_LOST_S: Final = 120.0
_AGAIN_S: Final = 0.05
_COUNT_STANDBYS: Final = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
_EVERY_SEQ: Final = 1 << 40
_DURABLE: Final = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


@dataclass(slots=True)
class _Client:
    """One writer. Its owner has one session, which nobody else writes to."""

    number: int
    token: str
    ports: list[int]
    sent: list[str] = field(default_factory=list[str])
    acknowledged: list[str] = field(default_factory=list[str])
    repeated: int = 0
    since_kill: int = 0
    went_on_at: float = 0.0
    refusals: Counter[str] = field(default_factory=Counter[str])

    def run(self, over: threading.Event, killed: threading.Event) -> None:
        """Write until it is over. After a refusal another worker is asked, as a balancer does."""
        ports = self.ports
        connection = http.client.HTTPConnection("127.0.0.1", ports[0], timeout=_LOST_S)
        try:
            while not over.is_set():
                text = f"client {self.number} says {len(self.sent)}"
                self.sent.append(text)
                was_killed = killed.is_set()
                while not self._send(connection, text):
                    self.repeated += 1
                    if over.wait(_AGAIN_S):
                        return
                    connection.close()
                    ports.append(ports.pop(0))
                    connection = http.client.HTTPConnection("127.0.0.1", ports[0], timeout=_LOST_S)
                self.acknowledged.append(text)
                if was_killed:
                    self.since_kill += 1
                    self.went_on_at = self.went_on_at or time.monotonic()
        finally:
            connection.close()

    def _send(self, connection: http.client.HTTPConnection, text: str) -> bool:
        """Whether the message was acknowledged."""
        body = {"messages": [{"role": "user", "text": text}]}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}", "Idempotency-Key": text}
        try:
            connection.request("POST", "/api/sessions/talk/messages", json.dumps(body), headers)
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.refusals[type(error).__name__] += 1
            return False
        if answer.status in (200, 201):
            return True
        self.refusals[f"{answer.status} {json.loads(said)['error']}"] += 1
        return False


class _Cluster:
    """Two servers, of which one follows the other, and a memory on them."""

    def __init__(self) -> None:
        self.primary = new_server(**_DURABLE)
        lay_template(self.primary)
        self.standby = new_server(primary=self.primary, **_DURABLE)
        self.url = f"postgresql://{APP}@/kalito?host={self.primary.folder},{self.standby.folder}"
        self.direct_url = self.url.replace(APP, OWNER)
        anyio.run(_wait_for_standby, self.primary)

    def fail_over(self, killed: threading.Event) -> None:
        """Kill the primary, and promote the standby."""
        self.primary.kill_all()
        killed.set()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def rebuild(self) -> None:
        """Make the dead server the standby."""
        self.standby.follow(self.primary)
        anyio.run(_wait_for_standby, self.primary)


async def _wait_for_standby(primary: Server) -> None:
    """Acknowledge nothing from now on that the standby does not have."""
    admin = await asyncpg.connect(primary.url("postgres", SUPERUSER))
    try:
        await admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        await admin.execute("SELECT pg_reload_conf()")
        while await admin.fetchval(_COUNT_STANDBYS) != 1:
            await admin.execute(f"SELECT pg_sleep({_AGAIN_S})")
    finally:
        await admin.close()


async def _tokens(url: str) -> list[str]:
    """A token for each client's owner."""
    async with open_memory(url) as memory:
        return [
            (await memory.access.create_token(Permission.WRITE, owner=f"client {number}")).text
            for number in range(_CLIENTS)
        ]


async def _stored(url: str) -> list[list[str]]:
    """The texts that are stored of each client, in order."""
    found: list[list[str]] = []
    async with open_memory(url) as memory:
        for number in range(_CLIENTS):
            whose = memory.of_owner(f"client {number}")
            try:
                _, messages = await whose.conversations.messages("talk", last_seq=_EVERY_SEQ)
            except SessionNotFound:
                messages = ()
            found.append([one.text for one in messages])
    return found


@contextmanager
def _worker(cluster: _Cluster, folder: Path, number: int) -> Iterator[int]:
    """A server of the memory; the port at which it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **clean_environment(folder),
        "KALITO_DATABASE": cluster.url,
        "KALITO_DATABASE_DIRECT": cluster.direct_url,
        "KALITO_HTTP_CALLS_PER_MINUTE": "1000000",
        "KALITO_HTTP_WRITES_PER_MINUTE": "1000000",
        "XDG_DATA_HOME": str(folder / str(number)),
    }
    command = [sys.executable, "-m", "kalito_mcp", "serve", "--transport", "http", "--port", str(port)]
    with (folder / f"{number}.log").open("wb") as log:
        server = subprocess.Popen(command, stderr=log, env=environment, cwd=ROOT)
    try:
        while server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(_AGAIN_S)
        yield port
    finally:
        server.terminate()
        server.wait()


def _round(
    cluster: _Cluster, clients: list[_Client], working_s: float, violations: Violations, when: str
) -> tuple[float, float]:
    """Let all clients write, fail over, and wait until each has gone on. The longest that one had to wait since the
    kill, and how long the promotion took of that."""
    over, killed = threading.Event(), threading.Event()
    threads = [threading.Thread(target=client.run, args=(over, killed)) for client in clients]
    for client, thread in zip(clients, threads, strict=True):
        client.since_kill, client.went_on_at = 0, 0.0
        thread.start()
    time.sleep(working_s)
    killed_at = time.monotonic()
    cluster.fail_over(killed)
    promoted_s = time.monotonic() - killed_at
    while any(client.since_kill < _AFTERWARDS for client in clients) and time.monotonic() < killed_at + _LOST_S:
        time.sleep(_AGAIN_S)
    over.set()
    for thread in threads:
        thread.join()
    waited = [client.went_on_at - killed_at if client.went_on_at else _LOST_S for client in clients]
    for client, waited_s in zip(clients, waited, strict=True):
        if waited_s > _LIMIT_S:
            violations.add("did_not_go_on", f"{when}: client {client.number} waited {waited_s:.1f} s")
    return max(waited), promoted_s


def _compare(clients: list[_Client], stored: list[list[str]], violations: Violations, when: str) -> None:
    for client, texts in zip(clients, stored, strict=True):
        counts = Counter(texts)
        for text in client.acknowledged:
            if not counts[text]:
                violations.add("lost", f"{when}: {text}")
        for text, count in counts.items():
            if count > 1:
                violations.add("duplicate", f"{when}: {text}, {count} times")
        for text in counts.keys() - set(client.sent):
            violations.add("never_sent", f"{when}: {text}")


def campaign(*, rounds: int, seed: int = 1) -> dict[str, Any]:
    """Run `rounds` rounds. Returns the figures."""
    violations, rng = Violations(), random.Random(seed)
    waited, promoted = list[float](), list[float]()
    cluster = _Cluster()
    try:
        tokens = anyio.run(_tokens, cluster.url)
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            folder = Path(name)
            ports = [stack.enter_context(_worker(cluster, folder, number)) for number in range(_WORKERS)]
            clients = [
                _Client(number, token, ports[number % _WORKERS :] + ports[: number % _WORKERS])
                for number, token in enumerate(tokens)
            ]
            for number in range(rounds):
                when = f"round {number + 1}"
                if number:
                    cluster.rebuild()
                waited_s, promoted_s = _round(cluster, clients, rng.uniform(*_WORKING_S), violations, when)
                waited.append(waited_s)
                promoted.append(promoted_s)
                _compare(clients, anyio.run(_stored, cluster.url), violations, when)
                progress(f"failover: {when}, {waited_s:.1f} s ({promoted_s:.1f} s), {dict(violations.counts)}")
    finally:
        cluster.primary.kill()
        cluster.standby.kill()
    refusals = sum((client.refusals for client in clients), Counter[str]())
    return {
        "rounds": rounds,
        "acknowledged": sum(len(client.acknowledged) for client in clients),
        "repeated": sum(client.repeated for client in clients),
        "refusals": dict(refusals),
        "longest_wait_s": max(waited),
        "median_longest_wait_s": statistics.median(waited),
        "longest_promotion_s": max(promoted),
        "median_promotion_s": statistics.median(promoted),
        **violations.figures(),
    }


if __name__ == "__main__":
    sys.exit(in_rounds("failover", __doc__, campaign, usual=20, quick=2))
