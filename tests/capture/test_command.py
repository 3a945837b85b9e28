"""The command of hooks looks where the server has its memory."""

from pathlib import Path

import pytest

from kalito_mcp.cli.hook import run
from kalito_mcp.config.sources import read_sources


@pytest.mark.parametrize("named", ["by a variable", "by the file", "by the file of the user", "by nobody"])
def test_an_event_is_kept_beside_the_memory_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    for variable, folder in (("HOME", "home"), ("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "settings")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "data"))
    monkeypatch.delenv("KALITO_CONFIG", raising=False)
    file = tmp_path / "settings" / "kalito" / "config.toml"
    file.parent.mkdir(parents=True)
    text = f"database = '{tmp_path / 'other.db'}'"
    environment = {}
    if named == "by a variable":
        environment["KALITO_DATABASE"] = str(tmp_path / "own.db")
        file.write_text(text)
    elif named == "by the file":
        environment["KALITO_CONFIG"] = str(tmp_path / "own.toml")
        (tmp_path / "own.toml").write_text(text)
    elif named == "by the file of the user":
        file.write_text(text)

    assert run(["codex", "Stop"], b"{}", environment, started=0.0) == ""
    place = read_sources(environment).checked_database().files.hooks
    assert place.is_relative_to(tmp_path)
    assert len(list((place / "spool").iterdir())) == 1
