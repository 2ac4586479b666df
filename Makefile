# Two commands for a new user: `make demo` and `make test`. Both make the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test slow check format lint types unit benchmarks clean help

help:
	@echo "make demo        qualify the quickstart reranker, verify the root, say where to look next"
	@echo "make test        format check, lint, types, tests"
	@echo "make slow        the tests that climb longest, which CI runs as well"
	@echo "make benchmarks  speed as ratios in one run"

$(READY): constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "qualify: expected Python 3.11 or newer, got " + sys.version.split()[0] + "; call make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[run,report,dev]'
	@touch $(READY)

demo: $(READY)
	@BIN=$(BIN) sh ci/demo

test: $(READY) check unit

check: format lint types

format: $(READY)
	$(BIN)/ruff format --check .

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

slow: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

benchmarks: $(READY)
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
