"""Where a server of a memory listens: found while it runs and is ready, and never after it was killed."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kalito_mcp.server.address_file import local_url, naming, running_server


@contextmanager
def answering(status: int) -> Iterator[str]:
    """The URL of a server on this machine that answers every request with this status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base calls it
            del format, args

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, args=(0.01,))
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_a_server_is_found_for_as_long_as_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "memory.db.address"
    assert running_server(file) is None
    with answering(200) as url:
        with naming(file, url):
            assert file.stat().st_mode & 0o777 == 0o600
            assert running_server(file) == url
            with naming(file, "http://127.0.0.1:1"):
                assert running_server(file) == url, "the first one stays"
            assert running_server(file) == url
        assert not file.exists()
        file.write_text(url)
        assert running_server(file) is None, "a killed server leaves its file: the port may be anybody's by now"
        with naming(file, url):
            assert running_server(file) == url


def test_a_server_that_is_not_ready_is_not_found(tmp_path: Path) -> None:
    file = tmp_path / "memory.db.address"
    with answering(503) as url, naming(file, url):
        assert running_server(file) is None
    for gone in (url, "", "nonsense", "http://127.0.0.1:many"):
        with naming(file, gone):
            assert running_server(file) is None


def test_a_folder_that_takes_no_file_stops_no_server(tmp_path: Path) -> None:
    with naming(tmp_path / "missing" / "memory.db.address", "http://127.0.0.1:1"):
        pass
    with pytest.raises(OSError, match="of the block"), naming(tmp_path / "file", "http://127.0.0.1:1"):
        raise OSError("of the block")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("localhost", "http://localhost:80"),
        ("::1", "http://[::1]:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),  # noqa: S104 - compared, not listened on
        ("::", "http://[::1]:80"),
        ("192.168.1.5", None),
        ("kalito.example.org", None),
    ],
)
def test_only_loopback_is_of_this_machine(host: str, url: str | None) -> None:
    assert local_url(host, 80) == url
