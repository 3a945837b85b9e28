"""What registries and marketplaces read about this package agrees with the package."""

import base64
import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import click
import pytest

from kalito_mcp.cli.commands import commands
from kalito_mcp.hosts import codex, gemini
from kalito_mcp.hosts.facts import HookFile, Host, Launcher, plugin_line
from kalito_mcp.version import __version__
from tests.server.wire import request, served

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REGISTRY_NAME: Final = "io.github.kalito-mcp/kalito-mcp"
REPOSITORY: Final = "https://github.com/kalito-mcp/kalito-mcp"
COMMANDS: Final = commands.list_commands(click.Context(commands))
PROGRAMS: Final = set(PROJECT["scripts"])
SKILL: Final = "skills/recall/SKILL.md"


def content(name: str) -> Any:
    text = (ROOT / name).read_text(encoding="utf-8")
    return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("server.json", ("version",)),
        ("server.json", ("packages", 0, "version")),
        (".claude-plugin/marketplace.json", ("plugins", 0, "version")),
        ("plugins/claude-code/.claude-plugin/plugin.json", ("version",)),
        ("plugins/claude-desktop/manifest.json", ("version",)),
        ("plugins/claude-desktop/pyproject.toml", ("project", "version")),
        ("plugins/codex/.codex-plugin/plugin.json", ("version",)),
        ("plugins/gemini/gemini-extension.json", ("version",)),
    ],
    ids=str,
)
def test_every_file_has_the_version_of_the_package(file: str, place: tuple[str | int, ...]) -> None:
    found = content(file)
    for step in place:
        found = found[step]
    assert found == __version__


def test_the_package_takes_its_version_from_its_own_file() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert content("pyproject.toml")["tool"]["hatch"]["version"]["path"] == "kalito_mcp/version.py"


def test_the_registry_can_see_that_the_package_is_ours() -> None:
    server = content("server.json")
    assert server["name"] == REGISTRY_NAME
    assert f"<!-- mcp-name: {REGISTRY_NAME} -->" in page(PROJECT["readme"])
    assert f'io.modelcontextprotocol.server.name="{REGISTRY_NAME}"' in page("Containerfile")
    assert server["packages"][0]["identifier"] == PROJECT["name"]
    assert server["repository"]["url"] == REPOSITORY == PROJECT["urls"]["Homepage"]


def test_the_registry_starts_the_server_with_variables_that_there_are() -> None:
    server = content("server.json")
    assert 0 < len(server["description"]) <= 100
    (package,) = server["packages"]
    # uvx runs the program that has the name of the package.
    assert package["runtimeHint"] == "uvx"
    assert package["identifier"] in PROGRAMS
    assert [argument["value"] for argument in package["packageArguments"]] == ["serve"]
    written = page("kalito_mcp/config/sources.py")
    assert all(f'"{variable["name"]}"' in written for variable in package["environmentVariables"])


@pytest.mark.parametrize(
    "file", ["plugins/claude-code/.mcp.json", "plugins/codex/.mcp.json", "plugins/gemini/gemini-extension.json"]
)
def test_plugins_start_a_program_of_the_package(file: str) -> None:
    servers = content(file)["mcpServers"]
    assert list(servers) == ["kalito"]
    assert servers["kalito"]["command"] in PROGRAMS
    (command,) = servers["kalito"]["args"]
    assert command in COMMANDS


@pytest.mark.parametrize(("host", "folder"), [(codex.HOST, "codex"), (gemini.HOST, "gemini")])
def test_the_hooks_of_a_plugin_are_those_that_are_installed(host: Host, folder: str) -> None:
    assert isinstance(host.hooks, HookFile)
    assert {"kalito-mcp", "kalito-hook"} <= PROGRAMS
    installed = host.hooks.hooks(Launcher("kalito-mcp", "kalito-hook"))
    for event, group in installed.items():
        group["hooks"][0]["command"] = plugin_line(host.key, event)
    assert content(f"plugins/{folder}/hooks/hooks.json")["hooks"] == {
        event: [hook] for event, hook in installed.items()
    }
    entry = content("plugins/codex/.mcp.json" if folder == "codex" else "plugins/gemini/gemini-extension.json")
    assert entry["mcpServers"]["kalito"] == host.entry.entry(Launcher("kalito-mcp", "kalito-hook"))


@pytest.mark.parametrize("folder", ["codex", "gemini"])
def test_all_plugins_have_the_same_skill(folder: str) -> None:
    assert page(f"plugins/{folder}/{SKILL}") == page(f"plugins/claude-code/{SKILL}")


def test_marketplaces_name_plugins_that_are_there() -> None:
    (claude,) = content(".claude-plugin/marketplace.json")["plugins"]
    (for_codex,) = content(".agents/plugins/marketplace.json")["plugins"]
    assert content(f"{claude['source']}/.claude-plugin/plugin.json")["name"] == claude["name"]
    folder = for_codex["source"]["path"]
    plugin = content(f"{folder}/.codex-plugin/plugin.json")
    assert plugin["name"] == for_codex["name"]
    assert all((ROOT / folder / plugin[part]).exists() for part in ("skills", "mcpServers", "hooks"))


def test_the_extension_for_claude_desktop_installs_this_package_and_names_its_tools() -> None:
    project, manifest = (
        content("plugins/claude-desktop/pyproject.toml")["project"],
        content("plugins/claude-desktop/manifest.json"),
    )
    assert project["dependencies"] == [f"{PROJECT['name']}=={__version__}"]
    assert project["requires-python"] == PROJECT["requires-python"]
    assert manifest["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]
    face = json.loads(page("tests/server/public_face.json"))
    assert {tool["name"] for tool in manifest["tools"]} == set(face["tools"])
    assert manifest["server"]["mcp_config"]["args"][-1] == manifest["server"]["entry_point"]


def test_the_extension_for_claude_desktop_serves_without_arguments(tmp_path: Path) -> None:
    start = f"import runpy; runpy.run_path({str(ROOT / 'plugins' / 'claude-desktop' / 'server.py')!r})"
    with served(tmp_path / "memory.db", code=start) as wire:
        wire.send(request(1, "tools/list"))
        names = {tool["name"] for tool in wire.answer(1)["result"]["tools"]}
    assert names == {tool["name"] for tool in content("plugins/claude-desktop/manifest.json")["tools"]}


def test_the_links_that_install_say_what_the_registry_says() -> None:
    wanted = {"command": "uvx", "args": [PROJECT["name"], "serve"]}
    text = page("docs/connect.md")
    links = {urlsplit(link).hostname: urlsplit(link) for link in re.findall(r"\]\((https://[^)]+)\)", text)}
    cursor = parse_qs(links["cursor.com"].query)
    assert cursor["name"] == ["kalito"]
    assert json.loads(base64.b64decode(cursor["config"][0])) == wanted
    scheme, _, given = parse_qs(links["insiders.vscode.dev"].query)["url"][0].partition("?")
    assert scheme == "vscode:mcp/install"
    assert json.loads(unquote(given)) == {"name": "kalito", "type": "stdio"} | wanted


def test_the_container_runs_the_server_as_somebody_who_is_not_root() -> None:
    lines = page("Containerfile").splitlines()
    said = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines if re.match(r"[A-Z]+ ", line)}
    assert json.loads(said["ENTRYPOINT"])[0] in PROGRAMS
    assert json.loads(said["CMD"])[0] in COMMANDS
    assert int(said["USER"]) > 0
    assert said["VOLUME"] == "/data" == str(Path(re.search(r"KALITO_DATABASE=(\S+)", page("Containerfile"))[1]).parent)
