"""Settings: defaults < TOML file < `KALITO_*` environment < command line, as `sources` reads them. Read once, at the
composition root.

Each section is one policy, defined next to the rule that uses it; its fields are the section's keys. The environment
names a key by section and key, `KALITO_CONTEXT_TOKEN_LIMIT=2000`. An unknown key is an error that names the nearest
one. No secret is a setting: a model server's key is read from the environment variable that its setting names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from kalito_mcp.access.policy import HttpPolicy, OidcPolicy
from kalito_mcp.contexts.cache import CachePolicy
from kalito_mcp.contexts.injector import InjectionPolicy
from kalito_mcp.contexts.parts import ContextPolicy
from kalito_mcp.default_places import default_database
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
from kalito_mcp.domain.wording import did_you_mean
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
from kalito_mcp.sources import OWN_VARIABLES, PREFIX, Sources, read_sources
from kalito_mcp.summaries.summarizer import SummaryPolicy
from kalito_mcp.summaries.window import SummaryWindowPolicy
from kalito_mcp.upkeep.usage_counter import UsagePolicy


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. `servers` are the model servers, as written; wiring checks them. With none, nothing
    leaves the machine."""

    database: Path = field(default_factory=default_database)
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
    session_graph: SessionGraphConfig = SessionGraphConfig()
    agent_graph: GraphConfig = GraphConfig()
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


_QDRANT_KEY: Final = f"{PREFIX}VECTORS_QDRANT_API_KEY_ENV"
_NO_AGE: Final = ": age does not lower what is found; remove the setting"
_NO_BAR: Final = ": a search shows what is nearest, however near; remove the setting"
_GONE: Final = {
    "vectors_exact_up_to": ": a search chooses by itself how it compares vectors; remove the setting",
    "search_min_score": _NO_BAR,
    "search_min_score_by_meaning": _NO_BAR,
    "injection_min_score_if_plain": ": use injection.min_score",
    "injection_min_score_if_asked": ": use injection.min_score",
    "injection_min_share": ": use injection.min_score",
    **dict.fromkeys(("decay", "decay_half_life_days", "decay_importance_weight", "decay_floor"), _NO_AGE),
}
"""What became of settings that were removed."""

_SECTIONS: Final[Mapping[str, type[Policy]]] = {
    one.name: type(one.default) for one in fields(Settings) if isinstance(one.default, Policy)
}


def load_settings(
    environment: Mapping[str, str], *, config: Path | None = None, database: Path | None = None
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
    sections, servers = _checked_form(sources)
    keys = {str(server.get("api_key_env")) for server in servers}
    keys |= {str(sections.get("vectors", {}).get("qdrant_api_key_env")), str(sources.variables.get(_QDRANT_KEY))}
    for name, value in sources.variables.items():
        if name not in keys:
            section, key = _section_and_key(name)
            sections.setdefault(section, {})[key] = value
    return Settings(
        database=sources.checked_database(),
        owner=sources.checked_owner(),
        servers=tuple(servers),
        **{name: checked_section(policy, sections.get(name, {}), name) for name, policy in _SECTIONS.items()},
    )


def _checked_form(sources: Sources) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """The file's sections and model servers."""
    path, sections = sources.config, dict(sources.sections)
    servers = sections.pop("servers", [])
    known = [*_SECTIONS, "database", "owner", "servers"]
    for section, values in sections.items():
        if section not in _SECTIONS:
            remedy = _GONE.get(section) or did_you_mean(section, known)
            raise ConfigurationError(f"{path}: unknown section {section!r}{remedy}")
        if not isinstance(values, dict):
            raise ConfigurationError(f"{path}: {section!r} is a section; write [{section}] with its keys below")
    if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
        raise ConfigurationError(f"{path}: write each model server as [[servers]]")
    return sections, servers


def _section_and_key(variable: str) -> tuple[str, str]:
    name = variable.removeprefix(PREFIX).lower()
    for section, policy in _SECTIONS.items():
        key = name.removeprefix(f"{section}_")
        if key != name and key in {one.name for one in fields(policy)}:
            return section, key
    known = sorted(OWN_VARIABLES) + [
        f"{PREFIX}{section}_{one.name}".upper() for section, policy in _SECTIONS.items() for one in fields(policy)
    ]
    raise ConfigurationError(
        f"unknown environment variable {variable}{_GONE.get(name) or did_you_mean(variable, known)}"
    )


def checked_section(policy: type[Any], values: Mapping[str, Any], section: str) -> Any:
    """The policy with these values. Strings become what the field is, so that the environment can set it.

    Raises:
        ConfigurationError: an unknown key, or a value of the wrong type or out of its bounds.
    """
    names = [one.name for one in fields(policy)]
    for key in values:
        if key not in names:
            remedy = _GONE.get(f"{section}_{key}") or did_you_mean(key, names)
            raise ConfigurationError(f"unknown setting {section}.{key}{remedy}")
    if not values and section in _SECTIONS:
        return policy()
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - only where something is set

    try:
        built = TypeAdapter(policy).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        setting = f"setting {section}.{'.'.join(str(part) for part in first['loc'])}"
        if first["type"] == "missing":
            raise ConfigurationError(f"{setting} is missing; add it") from error
        wanted = first["msg"].removeprefix("Input should be ").partition(", unable")[0].partition(", got")[0]
        wanted = wanted.replace("a valid integer", "a whole number").replace("a valid boolean", "true or false")
        raise ConfigurationError(f"{setting} should be {wanted}") from error
    except InvalidInput as error:
        raise ConfigurationError(f"setting {section}.{error}") from error
    for name, value in values.items():
        if isinstance(value, bool) and not isinstance(getattr(built, name), bool):
            raise ConfigurationError(f"setting {section}.{name} should be a number, not {str(value).lower()}")
    return built
