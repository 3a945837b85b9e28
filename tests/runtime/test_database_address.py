"""The address of a database, and the files that a machine keeps outside it."""

import re
import time
from pathlib import Path

import pytest

from kalito_mcp.cli.hook import run
from kalito_mcp.config.settings import load_settings
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.wiring import open_memory

OTHER = "mysql://ann:canary-0123456789@db.example/memory"
REFUSED = (
    r"^a database at mysql:// is not supported; name a SQLite file, such as memory\.db, or postgresql://role@host/"
)
SERVER = "postgresql://ann:canary-0123456789@db.example:5433/memory?sslmode=require"


def test_the_files_outside_a_sqlite_file_are_named_after_it(tmp_path: Path) -> None:
    files = address_of(tmp_path / "memory.db").files
    inside = {files.switch, files.spool, files.conversations, files.trace("codex"), files.answers}
    # People have data there.
    assert {one.relative_to(tmp_path).as_posix() for one in {files.home, files.snapshots, *inside}} == {
        "memory.db.home",
        "memory.db.home/answers",
        "memory.db.hooks/conversations",
        "memory.db.hooks/heard-codex",
        "memory.db.hooks/spool",
        "memory.db.hooks/switch.json",
        "memory.db.snapshots",
    }


@pytest.mark.anyio
async def test_a_database_of_another_kind_is_refused_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "kalito.toml"
    config.write_text(f'database = "{OTHER}"\n')
    for environment, given in (({}, OTHER), ({"KALITO_DATABASE": OTHER}, None), ({}, None)):
        with pytest.raises(ConfigurationError, match=REFUSED):
            load_settings(environment, config=config, database=given)
    with pytest.raises(ConfigurationError, match=REFUSED):
        run(["codex", "Stop"], b"{}", {"KALITO_DATABASE": OTHER}, started=time.monotonic())
    with pytest.raises(ConfigurationError, match=REFUSED):
        async with open_memory(OTHER):
            pass
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize(
    "scheme",
    [
        "postgresql:/",
        "postgres:/",
        "postgresql:",
        "PostgreSQL:",
        "postgresl:",
        " postgresql:/",
        "'postgresql:/",
        "mysql:/",
    ],
)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_url_without_both_slashes_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, kind: type[str] | type[Path]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigurationError, match=f"^a database at {scheme} is not .*postgresql://role@host/"
    ) as refused:
        address_of(kind(f"{scheme}kalito_app:canary@db.example/memory"))
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "path", ["C:/kalito/memory.db", "C:\\kalito\\memory.db", "./a/postgresql:/b.db", "/a/b:/c.db", "notes:2026.db"]
)
def test_a_path_with_a_colon_is_a_file(path: str) -> None:
    assert address_of(path).path == Path(path)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:p@canary@db.example/memory",
        "postgresql://ann:p@ss:w/canary@db.example/memory",
        "postgresql://ann:p/canary@db.example/memory",
        "postgresql://ann:1/canary@db.example/memory",
        "postgresql://ann:1?canary@db.example/memory",
        "postgresql://ann:1?x=canary@db.example/memory",
        "postgresql://ann:p@canary?x=1@db.example/memory",
        "postgresql://ann:p#canary@db.example/memory",
        "postgresql://ann:p[canary@db.example/memory",
        "postgresql://ann:p[canary]@db.example/memory",
        "postgresql://ann:canary\u2100@db.example/memory",
        "postgresql:///ann:canary@db.example/memory",
        "postgresql://ann:canary/memory",  # the host was forgotten
        "postgresql://db.example/memory?user=ann&password=p&canary",
        "postgresql://ann:canary@db.example:port/memory",
        "postgresql://ann:canary@db.example,/memory",
        "postgresql://ann:canary@db1,db2/memory?port=x",
    ],
)
def test_a_url_that_is_read_in_another_way_than_meant_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for named, direct_url, which in ((url, None, "the database"), (SERVER, url, "KALITO_DATABASE_DIRECT")):
        with pytest.raises(ConfigurationError, match=f"^the URL of {which} .*percent-encode") as refused:
            address_of(named, direct_url)
        assert not re.search(r"canary|\bann\b|db1|example", str(refused.value))


@pytest.mark.parametrize("url", ["postgresql:/ann:canary@db.example/memory", "mysql://ann:canary@db.example/memory"])
def test_an_address_of_the_owner_that_is_no_url_of_postgresql_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^the URL of KALITO_DATABASE_DIRECT cannot be read") as refused:
        address_of(SERVER, url)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:c%40n%2F:ry@[::1]:5433,h2,h3:5434/memory",
        "postgresql://ann@/memory?host=/tmp/a,/tmp/b&port=5432,5433",
        "postgresql:///memory?user=ann@example&password=p@ss&host=/tmp",
        "postgresql://db.example/memory?user=ann@example",
        "postgresql://db.example",
        "postgresql://",
    ],
)
def test_a_url_that_can_be_read_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    address = address_of(url, url)
    assert address.server is not None
    assert (address.server.url, address.server.direct_url) == (url, url)


def test_an_address_on_a_server_shows_no_password_and_names_files_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    settings = load_settings({"KALITO_DATABASE": SERVER, "KALITO_DATABASE_DIRECT": f"{SERVER}&direct=1"})
    address = settings.database
    assert str(address) == "postgresql://db.example:5433/memory"
    assert "canary" not in repr(address)
    assert address.server is not None
    assert (address.server.url, address.server.direct_url) == (SERVER, f"{SERVER}&direct=1")
    assert address.exists()
    assert address.files.hooks == address_of("postgres://bob@db.example:5433/memory").files.hooks
    assert str(address_of("postgresql://ann:canary@h1,h2:5433/memory")) == "postgresql://h1,h2:5433/memory"
    assert str(address_of("postgresql://ann:canary@/memory?host=/a,/b")) == "postgresql:///a,/b/memory"
    with pytest.raises(
        ConfigurationError, match=r"postgresql://db\.example:5433/memory is on PostgreSQL.*docs/postgresql"
    ):
        address.path  # noqa: B018
