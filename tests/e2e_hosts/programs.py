"""The hosts that are run: how each is led to the stand-in, and what is typed to talk to it. No I/O.

What is configured here is what a user with a model server of their own would configure; kalito's part is written by
`kalito-mcp install` alone.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

Words = tuple[str, ...]

_KEY: Final = "not-a-key"


@dataclass(frozen=True, slots=True)
class Program:
    """A host. `key` is the name that `kalito-mcp install` knows, `command` the program.

    `environment` and `files` (by path below the home) are made of the address of the stand-in. `new` and `resumed` are
    typed before a prompt, to say it in a new conversation or in the last one; `compact` is typed to compact that one.
    """

    key: str
    command: str
    environment: Callable[[str], Mapping[str, str]]
    files: Callable[[str], Mapping[str, str]]
    new: Words
    resumed: Words
    compact: Words = ()
    allowed: Words | None = None
    """Typed to let the model call every tool of kalito; None where that was not tried."""
    why_no_compaction: str = "no command of it compacts a conversation without a terminal"
    starts_in_time: bool = False
    """Whether its own server is there when the first prompt is said. Otherwise that of another window must be."""


CLAUDE_CODE: Final = Program(
    key="claude-code",
    command="claude",
    environment=lambda url: {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": _KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
    files=lambda _: {
        ".claude.json": '{"hasCompletedOnboarding": true}\n',
        ".claude/settings.json": '{\n    "includeCoAuthoredBy": false\n}',
    },
    new=("claude", "--print"),
    resumed=("claude", "--print", "--continue"),
    compact=("claude", "--print", "--continue", "/compact"),
    allowed=("--allowedTools=mcp__kalito",),
    starts_in_time=True,
)

CODEX: Final = Program(
    key="codex",
    command="codex",
    environment=lambda _: {},
    files=lambda url: {
        ".codex/config.toml": "# the server of the stand-in\n"
        'model = "stand-in"\nmodel_provider = "stand-in"\n\n'
        f'[model_providers.stand-in]\nname = "stand-in"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
    },
    # The user's consent to each hook, for one run. It can be given for good only in its window.
    new=("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
    resumed=("codex", "exec", "resume", "--last", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
    allowed=(),
)

GEMINI: Final = Program(
    key="gemini",
    command="gemini",
    environment=lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": _KEY},
    files=lambda _: {
        ".gemini/settings.json": '{\n  // as chosen when it was started first\n  "security": {"auth": '
        '{"selectedType": "gemini-api-key"}},\n  "privacy": {"usageStatisticsEnabled": false}\n}\n'
    },
    new=("gemini", "--skip-trust", "--model", "gemini-2.5-pro", "--prompt"),
    resumed=("gemini", "--skip-trust", "--model", "gemini-2.5-pro", "--resume", "latest", "--prompt"),
)

OPENCODE: Final = Program(
    key="opencode",
    command="opencode",
    environment=lambda _: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    files=lambda url: {
        ".config/opencode/opencode.json": json.dumps(
            {
                "model": "stand-in/stand-in",
                "provider": {
                    "stand-in": {
                        "npm": "@ai-sdk/openai-compatible",
                        "options": {"baseURL": f"{url}/v1", "apiKey": _KEY},
                        "models": {"stand-in": {}},
                    }
                },
            },
            indent=4,
        )
    },
    new=("opencode", "run"),
    resumed=("opencode", "run", "--continue"),
)

COPILOT: Final = Program(
    key="copilot",
    command="copilot",
    environment=lambda url: {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_MODEL": "stand-in",
    },
    files=lambda _: {".copilot/mcp-config.json": '{"mcpServers": {}}'},
    new=("copilot", "--trust-folder", "--allow-all-tools", "--prompt"),
    resumed=("copilot", "--allow-all-tools", "--continue", "--prompt"),
)

PROGRAMS: Final = (CLAUDE_CODE, CODEX, GEMINI, OPENCODE, COPILOT)
