"""Settings: defaults < TOML file < `KALITO_*` environment < command line, as `sources` reads them. Read once, at the
composition root.

`Settings` holds a policy for each rule, defined next to it. A file and the environment can set each field of each
policy, so a new field needs no line here: it is a key in the section of its policy, unless `NAMED` gives it another
name. The environment names a key by section and key, `KALITO_CONTEXT_TOKEN_LIMIT=2000`. An unknown key is an error that
names the nearest one. No secret is a setting: a model server's key is read from the environment variable that its
setting names.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from kalito_mcp.access.policy import HttpPolicy, OidcPolicy
from kalito_mcp.config.sources import OWN_VARIABLES, PREFIX, Sources, read_sources
from kalito_mcp.contexts.cache import CachePolicy
from kalito_mcp.contexts.injector import InjectionPolicy
from kalito_mcp.contexts.parts import ContextPolicy
from kalito_mcp.domain.graph import (
    CheckpointPolicy,
    GraphConfig,
    GraphPolicy,
    PromotionPolicy,
    SessionGraphConfig,
)
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.domain.sleep import (
    SleepCycleOptions,
)
from kalito_mcp.domain.validation import LimitsPolicy, Policy
from kalito_mcp.domain.wording import did_you_mean, listed_choices
from kalito_mcp.domain.zone_names import TimePolicy
from kalito_mcp.errors import ConfigurationError, InvalidInput
from kalito_mcp.pins.automatic import AutoPinPolicy
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.ports.tokens import TokenPolicy
from kalito_mcp.projects import ProjectPolicy
from kalito_mcp.records.chunking import ChunkPolicy
from kalito_mcp.records.importance import ImportancePolicy
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.runtime.database_address import DatabaseAddress, default_database, expanded
from kalito_mcp.summaries.summarizer import SummaryPolicy
from kalito_mcp.summaries.window import SummaryWindowPolicy
from kalito_mcp.upkeep.answer_log import UsagePolicy


@dataclass(frozen=True, slots=True)
class Settings:
    """The policies of all rules. `servers` are the model servers, as written; wiring checks them. With none, nothing
    leaves the machine."""

    database: DatabaseAddress = field(default_factory=default_database)
    owner: str = LOCAL_OWNER
    """Whose memory in the database is opened. No call reaches another's, whatever it names."""
    context: ContextPolicy = ContextPolicy()
    injection: InjectionPolicy = InjectionPolicy()
    window: SummaryWindowPolicy = SummaryWindowPolicy()
    summaries: SummaryPolicy = SummaryPolicy()
    pins: AutoPinPolicy = AutoPinPolicy()
    importance: ImportancePolicy = ImportancePolicy()
    tokens: TokenPolicy = TokenPolicy()
    search: SearchPolicy = SearchPolicy()
    usage: UsagePolicy = UsagePolicy()
    chunking: ChunkPolicy = ChunkPolicy()
    graph: GraphPolicy = GraphPolicy()
    agent_graph: GraphConfig = GraphConfig()
    session_graph: SessionGraphConfig = SessionGraphConfig()
    sleep: SleepCycleOptions = SleepCycleOptions()
    promotion: PromotionPolicy = PromotionPolicy()
    checkpoint: CheckpointPolicy = CheckpointPolicy()
    cache: CachePolicy = CachePolicy()
    limits: LimitsPolicy = LimitsPolicy()
    storage: StoragePolicy = StoragePolicy()
    vectors: VectorPolicy = VectorPolicy()
    projects: ProjectPolicy = ProjectPolicy()
    time: TimePolicy = TimePolicy()
    http: HttpPolicy = HttpPolicy()
    oidc: OidcPolicy = OidcPolicy()
    servers: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Raises ConfigurationError for a folder of snapshots that depends on where a process was started."""
        if self.checkpoint.folder and not expanded(Path(self.checkpoint.folder)).is_absolute():
            raise ConfigurationError(f"setting checkpoint.folder={self.checkpoint.folder!r} must be a whole path")

    @property
    def snapshots(self) -> Path:
        """The folder of the database's snapshots."""
        beside = self.database.files.snapshots
        return expanded(Path(self.checkpoint.folder)) / beside.name if self.checkpoint.folder else beside


_POLICIES: Final[Mapping[str, type[Policy]]] = {
    one.name: type(one.default) for one in fields(Settings) if isinstance(one.default, Policy)
}


def _fields_of(policy: str) -> dict[str, str]:
    return {one.name: f"{policy}.{one.name}" for one in fields(_POLICIES[policy])}


NAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "memory": {
        "zone": "time.zone",
        "pins": "pins.enabled",
        "graph": "graph.enabled",
        "max_text_bytes": "limits.max_text_bytes",
        "ignored": "projects.ignored",
        "moved": "projects.paths",
        "busy_timeout_s": "storage.busy_timeout_s",
        "query_s": "storage.query_s",
        "max_document_bytes": "limits.max_document_bytes",
        "max_messages": "limits.max_messages",
        "readers": "storage.readers",
    },
    "context": {
        "in_prompts": "injection.enabled",
        "prompt_tokens": "injection.max_tokens",
        "start_tokens": "injection.known_tokens",
        "min_score": "injection.min_score",
        "timeout_s": "injection.timeout_s",
        **_fields_of("context"),
    },
    "models": {
        "embedder": "vectors.embedder",
        "embedding_model": "vectors.model",
        "batch": "vectors.batch",
        "query_prefix": "vectors.query_prefix",
        "passage_prefix": "vectors.passage_prefix",
        "summaries": "summaries.cloud_model",
        "token_counter": "tokens.counter",
        "qdrant": "vectors.qdrant",
        "qdrant_api_key_env": "vectors.qdrant_api_key_env",
        "qdrant_timeout_s": "vectors.qdrant_timeout_s",
        "max_chars": "vectors.max_chars",
        "safety_factor": "tokens.safety_factor",
    },
    "summaries": _fields_of("window"),
    "http": _fields_of("http"),
    "oidc": _fields_of("oidc"),
}
"""The sections that people write most often: by section and key, the policy and its field."""


def _keys() -> dict[str, dict[str, str]]:
    keys = {section: dict(named) for section, named in NAMED.items()}
    taken = {field for named in NAMED.values() for field in named.values()}
    for policy in _POLICIES:
        if rest := {key: field for key, field in _fields_of(policy).items() if field not in taken}:
            keys[policy] = rest
    return keys


KEYS: Final[Mapping[str, Mapping[str, str]]] = _keys()
"""What can be set: the named keys, and each other field of a policy in the section of that policy."""

_VARIABLES: Final = {
    f"{PREFIX}{section}_{key}".upper(): (section, key) for section, keys in KEYS.items() for key in keys
}
_SETTINGS: Final = {field: f"{section}.{key}" for section, keys in KEYS.items() for key, field in keys.items()}
_QDRANT_KEY: Final = f"{PREFIX}MODELS_QDRANT_API_KEY_ENV"


def load_settings(
    environment: Mapping[str, str], *, config: Path | None = None, database: Path | str | None = None
) -> Settings:
    """Settings from all sources. `config` and `database` are the command line's and win over the environment.

    Raises:
        ConfigurationError: an unknown key, a value of the wrong type or range, or a file that cannot be read.
    """
    return settings_from(read_sources(environment, config=config, database=database))


def settings_from(sources: Sources) -> Settings:
    """Settings from what the sources say.

    Raises:
        ConfigurationError: an unknown key, or a value of the wrong type or range.
    """
    written, servers = _in_file(sources)
    keys = {str(server.get("api_key_env")) for server in servers}
    keys |= {str(written.get(("models", "qdrant_api_key_env"))), str(sources.variables.get(_QDRANT_KEY))}
    for name, value in sources.variables.items():
        if name not in keys:
            written[_section_and_key(name)] = value
    values: dict[str, dict[str, Any]] = {}
    for (section, key), value in written.items():
        policy, _, field_name = KEYS[section][key].partition(".")
        values.setdefault(policy, {})[field_name] = value
    return Settings(
        database=sources.checked_database(),
        owner=sources.checked_owner(),
        servers=tuple(servers),
        **{name: checked(_POLICIES[name], given, partial(_setting, name)) for name, given in values.items()},
    )


def _setting(policy: str, field_name: str) -> str:
    return _SETTINGS[f"{policy}.{field_name}"]


def _in_file(sources: Sources) -> tuple[dict[tuple[str, str], Any], list[dict[str, Any]]]:
    """The values of the file by section and key, and its model servers."""
    path, sections = sources.config, dict(sources.sections)
    servers = sections.pop("servers", [])
    written: dict[tuple[str, str], Any] = {}
    for section, values in sections.items():
        if section not in KEYS:
            remedy = did_you_mean(section, [*KEYS, "database", "owner", "servers"])
            raise ConfigurationError(f"{path}: unknown section {section!r}{remedy}")
        if not isinstance(values, dict):
            raise ConfigurationError(f"{path}: {section!r} is a section; write [{section}] with its keys below")
        for key, value in values.items():
            if key not in KEYS[section]:
                raise ConfigurationError(f"unknown setting {section}.{key}{_remedy(section, key)}")
            written[section, key] = value
    if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
        raise ConfigurationError(f"{path}: write each model server as [[servers]]")
    return written, servers


def _remedy(section: str, key: str) -> str:
    """What to write instead of this key: the field's other name, the same key of other sections, or the nearest key."""
    renamed = [name for field, name in _SETTINGS.items() if field == f"{section}.{key}"]
    elsewhere = [f"{other}.{key}" for other, keys in KEYS.items() if key in keys]
    found = renamed or elsewhere
    return f"; did you mean {listed_choices(found)}?" if found else did_you_mean(key, list(KEYS[section]))


def _section_and_key(variable: str) -> tuple[str, str]:
    if (found := _VARIABLES.get(variable.upper())) is not None:
        return found
    known = [*sorted(OWN_VARIABLES - {"KALITO_CRASH_POINT"}), *_VARIABLES]
    raise ConfigurationError(f"unknown environment variable {variable}{did_you_mean(variable, known)}")


def checked(policy: type[Any], values: Mapping[str, Any], named: Callable[[str], str]) -> Any:
    """The policy with these values by field; `named` says what the user calls a field. Strings become what the field
    is, so that the environment can set it.

    Raises:
        ConfigurationError: an unknown field, or a value of the wrong type or out of its bounds.
    """
    known = [one.name for one in fields(policy)]
    for key in values:
        if key not in known:
            raise ConfigurationError(f"unknown setting {named(key)}{did_you_mean(key, known)}")
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - only where something is set

    try:
        built = TypeAdapter(policy).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = [str(part) for part in first["loc"]]
        setting = f"setting {'.'.join([named(place[0]), *place[1:]])}"
        if first["type"] == "missing":
            raise ConfigurationError(f"{setting} is missing; add it") from error
        wanted = first["msg"].removeprefix("Input should be ").partition(", unable")[0].partition(", got")[0]
        wanted = wanted.replace("a valid integer", "a whole number").replace("a valid boolean", "true or false")
        raise ConfigurationError(f"{setting} should be {wanted}") from error
    except InvalidInput as error:
        message = re.sub(r"\w+(?==)|^\w+", lambda found: named(found[0]) if found[0] in known else found[0], str(error))
        raise ConfigurationError(f"setting {message}") from error
    for name, value in values.items():
        if isinstance(value, bool) and not isinstance(getattr(built, name), bool):
            raise ConfigurationError(f"setting {named(name)} should be a number, not {str(value).lower()}")
    return built
