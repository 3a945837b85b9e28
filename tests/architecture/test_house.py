"""The structure of the package, its errors, exports and profiles."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import kalito_mcp
from kalito_mcp import errors
from kalito_mcp.config.settings import KEYS, NAMED, Settings, load_settings
from kalito_mcp.config.sources import OWN_VARIABLES, PREFIX
from kalito_mcp.domain.scope import Scope
from kalito_mcp.inference.registry import ModelServer

ROOT = Path(__file__).parents[2]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in (ROOT / "kalito_mcp").rglob("*.py")
}
"""What each module says."""
MAX_LINES = 400
ADVANCED = "# Advanced: the rules themselves, a section each."
DOES_IO = frozenset(
    "aiosqlite anyio asyncio httpx2 logging mcp os pathlib random secrets shutil socket sqlite3 subprocess tempfile "
    "threading time".split()
)
WORK_MUST_GO_ON = (
    "capturer.py",
    "consolidator.py",
    "delivery.py",
    "hook.py",
    "importer.py",
    "listener.py",
    "owed_worker.py",
    "vector_worker.py",
    "sleep.py",
    "subscriptions.py",
    "watcher.py",
)


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    lengths = {name: len(text.splitlines()) for name, text in SOURCES.items()}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_a_module_that_calls_itself_pure_imports_nothing_that_does_io() -> None:
    impure = [
        (name, module)
        for name, text in SOURCES.items()
        if re.search(r"\bPure\b", ast.get_docstring(ast.parse(text)) or "")
        for module in imported_modules(text)
        if module.partition(".")[0] in DOES_IO
    ]
    assert impure == []


def imported_modules(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_only_composition_roots_know_that_a_database_is_a_file() -> None:
    knowing = {name for name, text in SOURCES.items() if re.search(r"\b(database|address)\.path\b", text)}
    knowing -= {"kalito_mcp/exchange/vscode.py"}  # a database of another program
    assert knowing == {f"kalito_mcp/{name}.py" for name in ("diagnosing", "migrating", "reading", "wiring")}


FOLLOWS_OR_WORKS_BEHIND = {
    "editing/cascade.py": 3,
    "editing/eraser.py": 3,
    "editing/snapshot_eraser.py": 1,
    "editing/writing.py": 1,
    "memory/changes.py": 4,
    "memory/sharing.py": 5,
    "memory/spaces.py": 1,
    "orchestrator/graph_cache.py": 2,
    "orchestrator/snapshot_import.py": 2,
    "pins/collector.py": 1,
    "reading.py": 1,
    "records/named.py": 2,
    "records/repetitions.py": 1,
    "records/sessions.py": 1,
    "retrieval/known_names.py": 1,
    "storage/graphs.py": 1,
    "summaries/existing.py": 1,
    "upkeep/answer_log.py": 1,
    "upkeep/finalizer.py": 1,
    "upkeep/owed_worker.py": 1,
    "upkeep/store_layers.py": 1,
}
"""How many scopes a module makes without the limits of a caller: of what follows a record that the caller reaches, in
background work, and for keys of what is in memory. Whoever adds one makes sure that nobody is shown what it reads."""


def test_a_scope_without_limits_is_made_on_purpose() -> None:
    made: dict[str, int] = {}
    for name, text in SOURCES.items():
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Scope":
                named = {keyword.arg for keyword in call.keywords}
                if "limits" not in named and len(call.args) < len(fields(Scope)):
                    made[name.removeprefix("kalito_mcp/")] = made.get(name.removeprefix("kalito_mcp/"), 0) + 1
    assert made == FOLLOWS_OR_WORKS_BEHIND


def test_row_numbers_stay_in_the_stores() -> None:
    exported = [getattr(kalito_mcp, name) for name in kalito_mcp.__all__]
    assert [one for one in exported if is_dataclass(one) and "key" in {field.name for field in fields(one)}] == []
    above = {name: text for name, text in SOURCES.items() if not name.startswith("kalito_mcp/storage/")}
    assert [name for name, text in above.items() if re.search(r"\.(?:record|session|agent|project)_key\b", text)] == []


def test_the_drawn_tree_of_errors_is_that_of_the_classes() -> None:
    drawn: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ([ │├└─]*)([A-Z]\w+)", line)
        if found is not None:
            depth = len(found[1]) // 4
            path[depth:] = [found[2]]
            if depth:
                drawn[found[2]] = path[depth - 1]
    classes = {
        name: one.__base__.__name__
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.KalitoError) and one is not errors.KalitoError
    }
    assert drawn == classes


def test_every_module_says_what_it_is() -> None:
    assert [name for name, text in SOURCES.items() if not text.lstrip().startswith('"""')] == []


def test_broad_excepts_raise_again_except_where_work_must_go_on() -> None:
    swallowing = [
        (name, handler.lineno)
        for name, text in SOURCES.items()
        if name.rpartition("/")[2] not in WORK_MUST_GO_ON
        for handler in ast.walk(ast.parse(text))
        if isinstance(handler, ast.ExceptHandler)
        and (handler.type is None or getattr(handler.type, "id", "") in ("Exception", "BaseException"))
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(handler))
    ]
    assert swallowing == []


def test_every_exported_name_can_be_imported() -> None:
    assert set(kalito_mcp.__all__) == set(kalito_mcp._HOMES) == set(dir(kalito_mcp))
    for name in kalito_mcp.__all__:
        assert getattr(kalito_mcp, name) is not None
    stub = Path(kalito_mcp.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: module for module, name in re.findall(r"from kalito_mcp\.([\w.]+) import (\w+) as \2", stub)}
    assert homes == kalito_mcp._HOMES
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = kalito_mcp.nothing_like_it


def test_help_and_stats_never_import_mcp(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom kalito_mcp.cli.commands import commands\n"
        "try: commands(sys.argv[1:])\nexcept BaseException: pass\n"
        "assert not {'mcp', 'mcp_types'} & set(sys.modules), 'mcp was imported'"
    )
    for arguments in (["--help"], ["--version"], ["stats", "--database", str(tmp_path / "none.db")]):
        subprocess.run([sys.executable, "-c", script, *arguments], check=True, capture_output=True)


def advanced_sections() -> Iterator[str]:
    """The sections that no person wrote: a policy each, with its docstring as the comment."""
    for section in (one for one in KEYS if one not in NAMED):
        policy = getattr(Settings(), section)
        for line in inspect.cleandoc(type(policy).__doc__ or "").splitlines():
            yield f"# {line}".rstrip()
        yield f"[{section}]"
        for key in KEYS[section]:
            yield f"{key} = {json.dumps(getattr(policy, key))}"
        yield ""


def test_the_default_profile_holds_every_setting_with_its_default() -> None:
    """RENEW_PROFILE=1 writes the advanced sections again."""
    path = ROOT / "configs" / "default.toml"
    text = path.read_text(encoding="utf-8")
    written = text.partition(ADVANCED)[0] + "\n".join([ADVANCED, *advanced_sections()])
    if os.environ.get("RENEW_PROFILE"):
        path.write_text(written, encoding="utf-8")
    assert written == path.read_text(encoding="utf-8"), "renew it with RENEW_PROFILE=1"
    profile = tomllib.loads(written)
    assert profile.keys() == KEYS.keys()
    for section, keys in KEYS.items():
        for key, field in keys.items():
            policy, _, name = field.partition(".")
            default = getattr(getattr(Settings(), policy), name)
            assert profile[section].pop(key, None) == (list(default) if isinstance(default, tuple) else default), key
        assert profile[section] == {}
    for one in fields(ModelServer):
        assert f"# {one.name} = " in text


@pytest.mark.parametrize("profile", sorted((ROOT / "configs").glob("*.toml")), ids=lambda path: path.name)
def test_every_profile_loads(profile: Path, tmp_path: Path) -> None:
    settings = load_settings({}, config=profile, database=tmp_path / "memory.db")
    for server in settings.servers:
        assert ModelServer(**{**server, "models": tuple(server["models"])}).name == server["name"]


def test_every_variable_in_a_document_is_one_that_a_command_knows() -> None:
    """Others that begin with KALITO_ are refused: in a shell that has followed the document, no command would run."""
    keys = {f"{PREFIX}{section}_{key}".upper() for section, names in KEYS.items() for key in names}
    files = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "configs").iterdir(), ROOT / "README.md", ROOT / "compose.yaml"]
    for file in files:
        named = set(re.findall(r"\bKALITO_[A-Z_]*[A-Z]\b", file.read_text(encoding="utf-8")))
        assert named <= OWN_VARIABLES | keys, file
