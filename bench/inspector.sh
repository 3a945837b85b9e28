#!/bin/sh
# Runs the MCP Inspector's command line against the server: every transport, both protocol eras, every tool.
#
#   INSPECTOR="npx -y @modelcontextprotocol/inspector@2.12.0" sh bench/inspector.sh
#
# INSPECTOR is the Inspector's command (2.12 or newer), PYTHON the interpreter that has kalito-mcp (python3). Prints one
# line a check, and exits with 1 where one failed.
set -u
: "${INSPECTOR:?set it to the command of the MCP Inspector}"
PYTHON=${PYTHON:-python3}
folder=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
# The Inspector keeps a catalogue in the home directory.
HOME=$folder
KALITO_CONFIG=/dev/null
export HOME KALITO_CONFIG
unset KALITO_SESSION CLAUDE_CODE_SESSION_ID
failed=0

start() { # transport; sets server and target
    KALITO_DATABASE="$folder/$1.db"
    export KALITO_DATABASE
    : >"$folder/stderr"
    "$PYTHON" -m kalito_mcp serve --transport "$1" --port 0 --without-login 2>"$folder/stderr" &
    server=$!
    target=
    while test -z "$target"; do
        kill -0 "$server" 2>/dev/null || { cat "$folder/stderr"; exit 1; }
        target=$(sed -n 's/^kalito-mcp: serving at //p' "$folder/stderr")
        test -n "$target" || sleep 0.1
    done
}

check() { # name, words that the answer must hold, options of the Inspector
    name=$1 words=$2
    shift 2
    if test "$transport" = stdio; then
        $INSPECTOR --cli -e KALITO_DATABASE="$folder/stdio.db" -e KALITO_CONFIG=/dev/null --protocol-era "$era" -q \
            "$@" -- "$PYTHON" -m kalito_mcp serve >"$folder/out" 2>"$folder/err" </dev/null
    else
        $INSPECTOR --cli "$target" --transport "$transport" --protocol-era "$era" -q "$@" \
            >"$folder/out" 2>"$folder/err" </dev/null
    fi
    code=$?
    verdict=ok
    test "$code" -eq 0 && grep -q -- "$words" "$folder/out" || verdict=FAILED
    printf '%-6s %-7s %-6s %3d  %s\n' "$transport" "$era" "$verdict" "$code" "$name"
    if test "$verdict" = FAILED; then
        failed=1
        head -c 2000 "$folder/out" "$folder/err" | sed 's/^/    /'
    fi
}

tool() { # tool, words, arguments as JSON
    check "tools/call $1" "$2" --method tools/call --tool-name "$1" --tool-args-json "$3"
}

for transport in stdio http sse; do
    test "$transport" = stdio || start "$transport"
    for era in modern legacy; do
        session="inspected/$era"
        uri="memory://sessions/inspected%2F$era/stats"
        check 'tools/list --strict' finalize_session --method tools/list --strict
        messages='[{"role":"user","text":"Where is the kite?"},{"role":"assistant","text":"The kite is in the attic."}]'
        tool record_messages '"recorded": *2' "{\"session_id\":\"$session\",\"messages\":$messages}"
        answer=$(sed -n 's/.*\(msg_[0-9]*\).*/\1/p' "$folder/out" | tail -n 1)
        tool build_context attic "{\"session_id\":\"$session\",\"query\":\"kite\"}"
        tool search_memory attic "{\"query\":\"kite\",\"session_id\":\"$session\"}"
        narrow='"roles":["assistant"],"since":"yesterday","min_importance":"low"'
        tool search_memory because "{\"query\":\"kite -cellar\",\"session_id\":\"$session\",$narrow,\"explain\":true}"
        tool create_pin pin_ "{\"session_id\":\"$session\",\"content\":\"Flies kites.\",\"client_key\":\"kites\"}"
        tool summarize_session summary_ "{\"session_id\":\"$session\",\"summary\":\"About a kite.\"}"
        tool record_feedback feedback_ "{\"target_id\":\"$answer\",\"label\":\"up\"}"
        tool finalize_session '"dry_run": *true' "{\"session_id\":\"$session\",\"dry_run\":true}"
        tool finalize_session FINALIZED "{\"session_id\":\"$session\",\"checkpoint_name\":\"$era\"}"
        tool search_memory '"source": *"agent"' '{"query":"where is my kite?"}'
        note="{\"type\":\"note\",\"text\":\"The spare key hangs in the shed ($transport $era).\"}"
        tool remember '"revision": *1' "$note"
        kept=$(sed -n 's/.*\(document_[0-9]*_[a-z0-9]*\).*/\1/p' "$folder/out" | head -n 1)
        new='{"text":"The spare key hangs in the hall."}'
        tool update_memory '"revision": *2' "{\"record_id\":\"$kept\",\"changes\":$new,\"expected_revision\":1}"
        tool restore '"revision": *3' "{\"record_id\":\"$kept\",\"version\":1}"
        tool memory_history revert "{\"record_id\":\"$kept\"}"
        tool list_tasks tasks '{}'
        check 'resources/read record' shed --method resources/read --uri "memory://records/$kept"
        check 'resources/read history' revert --method resources/read --uri "memory://records/$kept/history"
        tool forget forgotten "{\"record_ids\":[\"$kept\"]}"
        tool forget erased "{\"record_ids\":[\"$kept\"],\"purge\":true,\"confirmed\":true}"
        check 'resources/list' memory://agent --method resources/list
        check 'resources/templates/list' 'memory://snapshots/{snapshot_id}' --method resources/templates/list
        check 'resources/read' inspected --method resources/read --uri memory://sessions
        check 'resources/read stats' FINALIZED --method resources/read --uri "$uri"
        check 'resources/read graph' kite --method resources/read --uri "${uri%stats}graph"
        check 'resources/read agent' kite --method resources/read --uri memory://agent
        check 'resources/read snapshots' "$era" --method resources/read --uri memory://snapshots
        check 'resources/read snapshot' kite --method resources/read --uri "memory://snapshots/$era"
        check 'prompts/list' resume_session --method prompts/list
        check 'prompts/get' attic --method prompts/get --prompt-name resume_session --prompt-args "session_id=$session"
    done
    test -z "$server" || { kill "$server"; wait "$server" 2>/dev/null; server=; }
done
exit "$failed"
