"""Scripts of the pages that a setting names may call and read, over a real server; those of others may not."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.server.web import Web, web

APP = "https://app.example.org"
ASKED = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server that names one page."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "config.toml").write_text(f'[models]\nembedder = "none"\n[http]\norigins = ["{APP}"]\n', encoding="utf-8")
    with web("http", folder / "memory.db", login=True, KALITO_CONFIG=str(folder / "config.toml")) as one:
        yield one


def test_the_named_page_is_told_that_it_may_call_with_a_token(serving: Web) -> None:
    for path in ("/mcp", "/api/search", "/metrics"):
        answer = httpx2.options(serving.url.replace("/mcp", path), headers={"Origin": APP, **ASKED})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, APP)
        assert "authorization" in answer.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in answer.headers


def test_the_named_page_reads_refusals_and_how_to_get_a_token(serving: Web) -> None:
    answer = httpx2.post(serving.url, headers={"Origin": APP}, json={})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == APP
    assert "www-authenticate" in answer.headers["access-control-expose-headers"]


def test_no_other_page_is_let_in(serving: Web) -> None:
    for origin in ("https://evil.example", "null", "https://app.example.org.evil.example"):
        for path in ("/mcp", "/api/search", "/health/live"):
            url = serving.url.replace("/mcp", path)
            for method, sent in (("OPTIONS", ASKED), ("GET", {})):
                answer = httpx2.request(method, url, headers={"Origin": origin, **sent})
                assert answer.status_code in (400, 403), (origin, path)
                assert "access-control-allow-origin" not in answer.headers


def test_without_the_setting_no_page_is(tmp_path: Path) -> None:
    with web("http", tmp_path / "memory.db", login=True) as one:
        answer = httpx2.options(one.url, headers={"Origin": APP, **ASKED})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
