"""A server that speaks what kalito uses of Qdrant's REST, in front of the client's local mode.

It is no Qdrant: it shows that requests are well formed, and what happens when a server refuses, hangs or is gone.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any

from kalito_mcp.storage.qdrant.collections import MODULE
from tests.qdrant import LocalClient


class QdrantServer(ThreadingHTTPServer):
    """`client` is what it answers from. It refuses all requests with `status`, and holds them while `is_hanging`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.client = LocalClient()
        self.models: Any = import_module(f"{MODULE}.models")
        self.status = 200
        self.is_hanging = False
        self.goes_on = threading.Event()
        self.lock = threading.Lock()
        self.asked: list[tuple[str, str, Any]] = []
        """Method, path and body of every request."""
        self.keys: set[str | None] = set()

    def answer(self, method: str, path: str, body: Any) -> Any:  # noqa: PLR0911 - one for each request
        """The result of one request."""
        client, models = self.client, self.models
        parts = path.strip("/").split("/")
        name = parts[1] if len(parts) > 1 else ""
        match method, parts[0], parts[2:]:
            case "GET", "collections", [] if not name:
                return client.get_collections()
            case "GET", "collections", ["exists"]:
                return {"exists": client.collection_exists(name)}
            case "GET", "collections", []:
                return client.get_collection(name)
            case "PUT", "collections", []:
                return client.create_collection(name, vectors_config=models.VectorParams(**body["vectors"]))
            case "PUT", "collections", ["index"]:
                return {"operation_id": 1, "status": "completed"}
            case "PUT", "collections", ["points"]:
                points = [models.PointStruct(**one) for one in body["points"]]
                return client.upsert(name, points=points)
            case "POST", "collections", ["points", "query"]:
                return client.query_points(
                    name,
                    query=body["query"]["nearest"],
                    query_filter=models.Filter(**body["filter"]),
                    limit=body["limit"],
                    with_payload=body["with_payload"],
                )
            case "POST", "collections", ["points", "count"]:
                return client.count(name, count_filter=models.Filter(**body["filter"]), exact=body["exact"])
            case "POST", "collections", ["points", "scroll"]:
                page, offset = client.scroll(
                    name,
                    scroll_filter=models.Filter(**body["filter"]),
                    limit=body["limit"],
                    offset=body.get("offset"),
                    with_payload=False,
                )
                return {"points": [one.model_dump() for one in page], "next_page_offset": offset}
            case "POST", "collections", ["points", "delete"]:
                chosen = models.FilterSelector(filter=models.Filter(**body["filter"]))
                return client.delete(name, points_selector=chosen)
        raise AssertionError(f"unexpected: {method} {path}")


class _Answers(BaseHTTPRequestHandler):
    server: QdrantServer

    def _answer(self) -> None:
        server = self.server
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path = self.path.partition("?")[0]
        with server.lock:
            server.asked.append((self.command, self.path, body))
            server.keys.add(self.headers.get("api-key"))
        if server.is_hanging:
            server.goes_on.wait(30)
        if server.status != 200:
            self._send(server.status, {"status": {"error": "refused"}})
            return
        with server.lock:
            try:
                result = server.answer(self.command, path, body)
            except ValueError as error:
                self._send(404, {"status": {"error": str(error)}})
                return
        plain = result.model_dump(mode="json", exclude_none=True) if hasattr(result, "model_dump") else result
        self._send(200, {"time": 0.0, "status": "ok", "result": plain})

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _send(self, status: int, answer: Any) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[QdrantServer]:
    """A server of its own, until the block ends."""
    with QdrantServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.goes_on.set()
            server.shutdown()
            thread.join()
