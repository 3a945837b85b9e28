# make demo, make test: all the set-up they need is a Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Tests start the command a hundred times, and would compile it each time where this is set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check format catalogue lint types imports coverage bulk package bench campaigns lock clean

demo: $(VENV)/.runtime
	@$(BIN)/kalito-mcp demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal

# What has to hold before a change is taken. The floor of the coverage only ever rises.
check: lint types imports coverage bulk package

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

imports: $(VENV)/.dev
	$(BIN)/lint-imports

coverage: $(VENV)/.dev
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n auto --dist worksteal -m "not bulk"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# The tests that coverage leaves out, under which they take twice as long and reach no line that others do not.
bulk: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m bulk

# The wheel, installed into a clean environment and started from there.
package: $(VENV)/.dev
	sh tests/package.sh $(BIN)/python

bench: $(VENV)/.dev
	$(BIN)/python -m bench

# The long ones: servers that are killed, stopped, cut short or robbed of their files; power cuts, which need strace; and
# the benchmarks at full size, and mixed calls of three hosts. Each runs to its end, and a broken promise in any fails the target.
campaigns: $(VENV)/.dev
	@failed=0; \
	$(BIN)/python -m bench --campaigns || failed=1; \
	$(BIN)/python -m bench --full || failed=1; \
	MIXED_OPERATIONS=1000 $(BIN)/python -m pytest tests/flows/test_projects.py || failed=1; \
	exit $$failed

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
		--group meaning --output-file requirements/meaning.txt

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

# The extra `meaning` gets a folder of its own, which the tests that need it put on their path: the others run without.
$(VENV)/.dev: requirements/dev.txt requirements/meaning.txt $(VENV)/.runtime
	$(PIP) --require-hashes --requirement requirements/dev.txt
	$(PIP) --require-hashes --no-deps --upgrade --target $(VENV)/meaning --requirement requirements/meaning.txt
	@touch $@
