# `make demo` and `make test` do all of the set-up on a machine that has git, make and Python 3.11 to 3.13.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The machine's uv when it has one, else one that is installed into the environment.
UV := $(shell command -v uv 2>/dev/null || echo $(BIN)/uv)
READY := $(VENV)/.ready

.PHONY: demo test lint bench clean setup

setup: $(READY)

$(READY): uv.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] < (3, 14)))' \
		|| { echo "codeenv needs Python 3.11, 3.12 or 3.13; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x "$(UV)" || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --quiet --locked --inexact --python $(BIN)/python
	@touch $(READY)

# What a newcomer sees: a perfect policy and a plausible, wrong one, on the real sandbox, scored by the hidden tests.
demo: $(READY)
	$(BIN)/codeenv eval starter --policy oracle --policy wrong -n 6 -r 1

test: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not alone and not live"
	$(BIN)/python -m pytest -m alone $$(grep -rl --include='*.py' 'mark\.alone' tests)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(READY)
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/episodes.py
	$(BIN)/python benchmarks/validate.py
	$(BIN)/python benchmarks/functions.py
	$(BIN)/python benchmarks/humaneval.py
	$(BIN)/python benchmarks/stdio.py
	$(BIN)/python benchmarks/large_sets.py
	$(BIN)/python benchmarks/recording.py
	$(BIN)/python benchmarks/beam.py

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .hypothesis outputs
