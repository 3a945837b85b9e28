#!/bin/sh
# Builds the wheel, installs it into a clean environment, and starts the command from there.
set -eu
python=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m build --wheel --no-isolation --outdir "$folder/dist" . >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
# With the pip that is there, and nothing compiled that is not run: half the time.
"$python" -m venv --without-pip "$folder/clean"
install() {
	"$python" -m pip --python "$folder/clean/bin/python" install --no-compile --quiet --disable-pip-version-check "$@"
}
install --require-hashes -r requirements/runtime.txt
install --no-deps "$folder"/dist/*.whl
cd "$folder"
KALITO_DATABASE="$folder/memory.db"
export KALITO_DATABASE
clean/bin/kalito-mcp --version
clean/bin/python -c 'from kalito_mcp.server.catalogue import load; assert load(), "the catalogue is not used as installed"'
clean/bin/python -c 'import kalito_mcp.testing'
clean/bin/python -c 'from kalito_mcp.web.page.rendering import rendered; assert "/static/" in rendered("again.html", {"place": "/"})'
clean/bin/kalito-mcp demo >"$folder/demo.txt"
tail -n 3 "$folder/demo.txt"
clean/bin/kalito-mcp doctor
