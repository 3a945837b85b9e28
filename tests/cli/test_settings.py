"""Defaults < TOML file < environment < command line, and the refusals of impossible settings."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from kalito_mcp.config.settings import KEYS, Settings, load_settings
from kalito_mcp.config.sources import read_sources
from kalito_mcp.domain.validation import MOST, Policy
from kalito_mcp.errors import ConfigurationError, InvalidInput
from tests.cli.conftest import Invoke
from tests.wordings import approve

SECRET = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, so that no configuration of this machine takes part."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def toml(folder: Path, text: str) -> Path:
    path = folder / "kalito.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(environment: Mapping[str, str], config: Path | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(environment, config=config)
    return str(caught.value)


def test_without_anything_the_settings_are_the_defaults(home: Path) -> None:
    settings = load_settings({"PATH": "/bin", "UNRELATED": "x"})
    assert settings == Settings()
    assert settings.context.token_limit == 3000
    assert settings.servers == ()
    assert settings.database.path.is_relative_to(home)


def test_each_source_wins_over_the_one_before(home: Path) -> None:
    config = toml(
        home, 'database = "file.db"\n[context]\ntoken_limit = 2000\nprompt_tokens = 50\n[memory]\nquery_s = 5\n'
    )
    environment = {"KALITO_CONTEXT_TOKEN_LIMIT": "1000", "KALITO_DATABASE": "environment.db"}
    assert load_settings({}, config=config).context.token_limit == 2000
    assert load_settings({}, config=config).database.path == Path("file.db")
    both = load_settings(environment, config=config)
    assert (both.context.token_limit, both.injection.max_tokens, both.context.pins) == (1000, 50, 5)
    assert (both.storage.query_s, both.database.path) == (5, Path("environment.db"))
    assert load_settings(environment, config=config, database="line.db").database.path == Path("line.db")


def test_the_command_lines_file_wins_over_the_environments(home: Path) -> None:
    named = toml(home, "[context]\ntoken_limit = 2000\n")
    other = home / "other.toml"
    other.write_text("[context]\ntoken_limit = 1500\n")
    environment = {"KALITO_CONFIG": str(other)}
    assert load_settings(environment).context.token_limit == 1500
    assert load_settings(environment, config=named).context.token_limit == 2000


def test_the_users_own_file_is_read_where_it_exists(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    folder = home / ".config" / "kalito"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[context]\ntoken_limit = 1234\n")
    assert load_settings({}).context.token_limit == 1234


def test_a_tilde_is_the_home(home: Path) -> None:
    assert load_settings({"KALITO_DATABASE": "~/m.db"}).database.path == home / "m.db"


def test_the_owner_is_that_of_the_environment_then_of_the_file(home: Path) -> None:
    config = toml(home, 'owner = "ann"\n')
    assert load_settings({}, config=config).owner == "ann"
    assert load_settings({"KALITO_OWNER": "ben"}, config=config).owner == "ben"
    assert load_settings({}).owner == "local"
    assert "owner" in refusal({"KALITO_OWNER": "b\nn"})
    assert "in quotes" in refusal({}, toml(home, "owner = 3\n"))


def test_a_file_may_begin_with_a_byte_order_mark(home: Path) -> None:
    assert load_settings({}, config=toml(home, "\ufeff[context]\ntoken_limit = 9\n")).context.token_limit == 9


def test_every_field_has_one_key_and_each_number_and_switch_can_be_set_by_the_environment() -> None:
    numbered = [
        (policy.name, one.name)
        for policy in fields(Settings)
        if isinstance(policy.default, Policy)
        for one in fields(policy.default)
    ]
    assert sorted(field for keys in KEYS.values() for field in keys.values()) == sorted(map(".".join, numbered))
    for section, keys in KEYS.items():
        for key, field in keys.items():
            policy, _, name = field.partition(".")
            value = getattr(getattr(Settings(), policy), name)
            if isinstance(value, bool | int | float | str):
                variable = f"KALITO_{section}_{key}".upper()
                assert load_settings({variable: str(value)}) == load_settings({}), variable


NEXT = 1e-6
BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(
        """checkpoint.top_k chunking.target_chars chunking.max_chars context.recent_messages context.summaries
        context.min_recent context.fallback_messages limits.max_text_bytes limits.max_document_bytes limits.max_messages
        search.max_k search.max_terms search.candidates search.read search.phrase_texts storage.readers
        vectors.max_chars window.threshold window.dense_threshold agent_graph.max_nodes session_graph.max_nodes
        sleep.summary_max_length
        """.split(),
        (1, MOST),
    ),
    **dict.fromkeys(
        """context.known_share promotion.min_rank agent_graph.diffusion
        session_graph.diffusion sleep.min_rank injection.min_score importance.base importance.question
        importance.code importance.problem importance.length importance.assistant""".split(),
        (0, 1),
    ),
    **dict.fromkeys(
        "agent_graph.tau_dup agent_graph.tau_sim session_graph.tau_dup session_graph.tau_sim "
        "sleep.similarity_threshold".split(),
        (NEXT, 1),
    ),
    **dict.fromkeys("agent_graph.half_life_min session_graph.half_life_min".split(), (NEXT, MOST)),
    "context.token_limit": (1, 10_000_000),
    "injection.max_tokens": (0, 10_000_000),
    "injection.known_tokens": (0, 10_000_000),
    "sleep.min_cluster_size": (2, MOST),
    "http.calls_per_minute": (1, MOST),
    "http.writes_per_minute": (1, MOST),
    "http.refusals_per_minute": (1, MOST),
    "storage.busy_timeout_s": (0, 86_400),
    "storage.query_s": (0, 86_400),
    "vectors.batch": (1, 256),
    "vectors.qdrant_timeout_s": (0.1, 30),
    "tokens.safety_factor": (0.5, 5),
    "injection.timeout_s": (0, 4),
}
"""The least and the most of each number that does not lie from 0 to MOST."""
NUMBERS = [
    (section.name, one.name)
    for section in fields(Settings)
    if isinstance(section.default, Policy)
    for one in fields(section.default)
    if type(getattr(section.default, one.name)) in (int, float)
]


def test_a_number_holds_its_bounds_however_its_policy_is_made() -> None:
    for section, key in NUMBERS:
        policy, field = getattr(Settings(), section), f"{section}.{key}"
        least, most = BOUNDS.get(field, (0, MOST))
        step = NEXT if isinstance(getattr(policy, key), float) else 1
        for wrong, bound in ((least - step, "at least|above"), (most + step, "at most"), (math.nan, "at least|above")):
            with pytest.raises(InvalidInput, match=f"^{key}={wrong} must be ({bound})"):
                replace(policy, **{key: wrong})
            named = next((f"{one}.{name}" for one, keys in KEYS.items() for name in keys if keys[name] == field), None)
            if named is not None and not math.isnan(wrong):
                variable = f"KALITO_{named.replace('.', '_')}".upper()
                assert f"setting {named}={wrong} must be " in refusal({variable: str(wrong)})
        for right in (least, most):
            try:
                replace(policy, **{key: right})
            except InvalidInput as error:
                assert "lower the one" in str(error)


def test_every_bound_is_of_a_number_that_there_is() -> None:
    assert BOUNDS.keys() <= {f"{section}.{key}" for section, key in NUMBERS}


WRONG_FILES = (
    "[contxt]\n",
    "[context]\ntoken_limt = 5\n",
    "context = 5\n",
    "[servers]\nname = 'a'\n",
    "servers = 5\n",
    "database = 5\n",
    "[context]\ntoken_limit = 'many'\n",
    "[context]\ntoken_limit = 1.5\n",
    "[context]\ntoken_limit = true\n",
    "[context]\ntoken_limit = 0\n",
    "[context]\ntoken_limit = 99999999999\n",
    "[memory]\nbusy_timeout_s = inf\n",
    "[memory]\nbusy_timeout_s = nan\n",
    "[models]\nembeder = 'none'\n",
    "[memory]\npins = 'perhaps'\n",
    "[models]\ntoken_counter = 5\n",
    "[vector]\n",
    "[graph]\ntau_dup = 0.9\n",
    "[graph]\nenabled = false\n",
    "[agent_graph]\ntauDup = 0.9\n",
    "[agent_graph]\ntau_dup = 0.5\n",
    "[importance]\ncode = 1.5\n",
    "[checkpoint]\npretty = 2\n",
    "[checkpoint]\nfolder = 'snaps'\n",
    "[http]\nproxies = ['x']\n",
)
WRONG_VARIABLES = (
    ("KALITO_CONTEXT_TOKEN_LIMT", "5"),
    ("KALITO_DATABSE", "x"),
    ("KALITO_MEMORY_GRAPH", "perhaps"),
    ("KALITO_QUUX", "x"),
    ("KALITO_CONTEXT_TOKEN_LIMIT", "lots"),
    ("KALITO_CONTEXT_TOKEN_LIMIT", ""),
    ("KALITO_CONTEXT_TOKEN_LIMIT", "0"),
    ("KALITO_MEMORY_PINS", "perhaps"),
    ("KALITO_PROMOTION_MIN_RANK", "2"),
    ("KALITO_SLEEP_COOLDOWN", "5"),
)


def test_what_cannot_be_is_refused_by_its_place_or_its_name(home: Path) -> None:
    said = {text: refusal({}, toml(home, text)).replace(str(home), "~") for text in WRONG_FILES}
    said |= {f"{name}={value}": refusal({name: value}) for name, value in WRONG_VARIABLES}
    for one in said.values():
        assert not re.search("pydantic|Input should|unable to", one)
    approve("settings", said)


def test_a_named_file_must_be_there(home: Path) -> None:
    for name in ("none.toml", "."):
        assert refusal({"KALITO_CONFIG": str(home / name)}).startswith("cannot read the configuration")


def test_a_broken_file_or_one_in_another_encoding_is_refused(home: Path) -> None:
    assert "is not TOML" in refusal({}, toml(home, "x = [\n"))
    path = home / "latin.toml"
    path.write_bytes("database = 'café.db'".encode("latin-1"))
    assert "is not TOML" in refusal({}, path)


def test_a_path_that_cannot_be_a_file_is_refused() -> None:
    for database in ("/", "~nobody-of-that-name/m.db", "x" * 300):
        assert refusal({"KALITO_DATABASE": database})


def test_a_variable_that_a_model_server_names_for_its_key_is_no_setting(home: Path) -> None:
    server = '[[servers]]\nname="a"\nkind="openai"\nurl="https://models.example/v1"\nmodels=["x"]\n'
    environment = {"KALITO_MODEL_KEY": SECRET}
    assert "unknown environment variable KALITO_MODEL_KEY" in refusal(environment, toml(home, server))
    settings = load_settings(environment, config=toml(home, f'{server}api_key_env="KALITO_MODEL_KEY"\n'))
    assert SECRET not in repr(settings)


def test_a_secret_in_the_wrong_place_is_never_printed(invoke: Invoke, home: Path) -> None:
    database = str(home / "memory.db")
    server = '[[servers]]\nname="a"\nkind="openai"\nmodels=["x"]\n'
    for text in (
        f'[context]\napi_key = "{SECRET}"\n',
        f'[context]\ntoken_limit = "{SECRET}"\n',
        f'[models]\nsummaries = ["{SECRET}"]\n',
        f'{server}url="https://h/v1"\napi_key="{SECRET}"\n',
        f'{server}url="https://u:{SECRET}@h/v1"\n',
        f'{server}url="https://h/v1"\napi_key_env="{SECRET}"\n',
        f'{server}url="https://h/v1?key={SECRET}"\n',
        f"api_key = {SECRET}\n",
    ):
        said = invoke("reindex", "--database", database, KALITO_CONFIG=str(toml(home, text)))
        also = invoke("stats", "--database", database, "--config", str(toml(home, text)))
        assert SECRET not in said.out + said.err + also.out + also.err
    for variable in ("KALITO_API_KEY", "KALITO_CONTEXT_TOKEN_LIMIT", "KALITO_MEMORY_QUERY_S"):
        outcome = invoke("stats", "--database", database, **{variable: SECRET})
        assert outcome.code == 1
        assert variable.removeprefix("KALITO_")[:6].lower() in outcome.err.lower()
        assert SECRET not in outcome.out + outcome.err


@pytest.mark.parametrize(
    ("environment", "content"),
    [
        ({}, ""),
        ({"KALITO_DATABASE": "~/m.db", "KALITO_OWNER": "ann", "KALITO_PROJECT": "x", "KALITO_LOG": "debug"}, ""),
        ({}, "database = 'file.db'\nowner = 'ben'"),
    ],
)
def test_where_the_memory_is_is_known_without_the_policies(
    home: Path, environment: dict[str, str], content: str
) -> None:
    config = toml(home, content)
    found, settings = (
        read_sources(environment, config=config).reader_settings(),
        load_settings(environment, config=config),
    )
    assert found is not None
    for name in ("database", "owner", "storage"):
        assert getattr(found, name) == getattr(settings, name)


def test_whatever_else_is_set_is_left_to_the_settings_to_check(home: Path) -> None:
    for name, content in (("ZONE", ""), ("", "[time]"), ("", "[nothing_like_it]"), ("", "servers = 3")):
        environment = {f"KALITO_MEMORY_{name}": "UTC"} if name else {}
        assert read_sources(environment, config=toml(home, content)).reader_settings() is None
