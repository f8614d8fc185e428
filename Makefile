# make run    the server, with everything that it needs fetched and installed first
# make test   every test: Python, HTTP, JavaScript, browser, pretrained models
# make lint   formatting, lint, types
# make bench  what recording costs
# make clean  removes what the others have made, but not the data folder

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= $(or $(HEADWATER_DATA_DIR),data)
# Extra arguments: make run ARGS="--port 9000", make test ARGS="tests/lm -x"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test lint bench clean models

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

run: $(VENV)/runtime.done
	@$(BIN)/headwater fetch --quiet
	@exec $(BIN)/headwater serve $(ARGS)

test: $(VENV)/tests.done $(VENV)/node.done models
	@scripts/chromium.sh
	HEADWATER_TEST_DATA="$(abspath $(DATA))" $(BIN)/python -m pytest --complete $(ARGS)

lint: $(VENV)/tests.done $(VENV)/node.done
	$(BIN)/ruff format --check app tests $(wildcard bench)
	$(BIN)/ruff check app tests $(wildcard bench)
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" node_modules/.bin/tsc -p tsconfig.json

bench: $(VENV)/runtime.done
	@$(BIN)/headwater fetch --quiet smollm2-135m
	$(BIN)/python -m bench.cost $(ARGS)

models: $(VENV)/runtime.done
	@HEADWATER_DATA_DIR="$(DATA)" $(BIN)/headwater fetch --quiet

clean:
	rm -rf $(VENV) node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info

# Each of these files is written last, so that a step that was interrupted is done again.
$(VENV)/runtime.done: pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" scripts/venv.sh $(VENV)
	@echo "Installing the packages of constraints.txt (torch is the large one)"
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -c constraints.txt -e . | { grep -v "^Requirement already" || true; }
	@$(BIN)/python -c "import fastapi, torch, transformers"
	@touch $@

$(VENV)/tests.done: $(VENV)/runtime.done
	@echo "Installing what the tests need"
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]' | { grep -v "^Requirement already" || true; }
	@touch $@

$(VENV)/node.done: package.json package-lock.json $(VENV)/tests.done
	@echo "Installing the type checker of the page's modules"
	@PATH="$(abspath $(BIN)):$$PATH" npm ci --no-audit --no-fund --loglevel=error
	@touch $@
