# `make run` opens the app, `make test` checks everything; both set up what they need.

PORT ?= 8501
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# each loads the model, so more of them want 2 GB of memory each
WORKERS ?= 2
PYTEST_ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
RUN_READY := $(VENV)/.run-ready
DEV_READY := $(VENV)/.dev-ready

.DEFAULT_GOAL := help
.PHONY: help run test lint format format-check types bench clean

help:
	@echo "make run           open the app on http://localhost:$(PORT)"
	@echo "make test          run all tests"
	@echo "make lint          ruff;  make format  rewrites;  make types  mypy"
	@echo "make bench         the numbers to reach"
	@echo "make clean         remove the environment and caches (not the model)"

run: $(RUN_READY)
	@$(PY) -m kvviz.ui.set_up
	$(PY) -m kvviz.ui.shell.serve --server.port "$(PORT)"

test: $(DEV_READY)
	@$(PY) -m kvviz.models.warm
	$(PY) -m pytest -n $(WORKERS) $(PYTEST_ARGS)

lint: $(DEV_READY)
	$(PY) -m ruff check .

format: $(DEV_READY)
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

format-check: $(DEV_READY)
	$(PY) -m ruff format --check .

types: $(DEV_READY)
	$(PY) -m mypy kvviz app.py pages

bench: $(DEV_READY)
	@$(PY) -m kvviz.models.warm
	$(PY) -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# the stamps are newer than the requirements they stand for, so a second run installs nothing
$(RUN_READY): requirements.txt | $(PY)
	$(PY) -m pip install --disable-pip-version-check -r requirements.txt
	@touch $@

$(DEV_READY): requirements.txt requirements-dev.txt | $(PY)
	$(PY) -m pip install --disable-pip-version-check -r requirements-dev.txt
	@touch $@ $(RUN_READY)

$(PY):
	@test -n "$(PYTHON)" || { echo "No python3 found: install Python 3.11 or newer, or pass PYTHON=/path/to/python." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kvviz needs Python 3.11 or newer; pass PYTHON=/path/to/python." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
