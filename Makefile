# Every task of the project. `make help` lists them; CONTRIBUTING.md explains them.

PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
# Compiled once, whatever the caller's environment says: tests start hundreds of interpreters.
export PYTHONDONTWRITEBYTECODE :=

# Quick tests first, whole-product tests last; whatever is not named here runs in between, so no folder is left out.
TESTS_FIRST := $(wildcard tests/base tests/domain tests/wire tests/repository)
TESTS_LAST := $(wildcard tests/store) $(wildcard tests/services) $(wildcard tests/e2e) $(wildcard tests/chaos)
TESTS_ALL := $(patsubst %/,%,$(wildcard tests/*/)) $(wildcard tests/test_*.py)
TESTS := $(TESTS_FIRST) $(filter-out $(TESTS_FIRST) $(TESTS_LAST) %/__pycache__,$(TESTS_ALL)) $(TESTS_LAST)

# Test files that run at the same time; 0 runs one after the other, with output as it comes.
TEST_PROCESSES ?= 4

# Files stay whole and begin in the order of tests/rig/longest_first.py, not by their number of tests.
PYTEST := $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

# Tests that repeat what chance decides (tests/rig/effort.py, Hypothesis); the others would only do the same again.
TESTS_OF_CHANCE := $(filter-out tests/repository tests/e2e,$(TESTS))

# What is type-checked beside the product: what the tests and figures stand on.
TYPED := src/camserver $(wildcard tools) $(wildcard tests/rig) $(wildcard tests/fakes) $(wildcard bench/*.py)

BENCHES := $(subst _,-,$(patsubst bench/%.py,%,$(filter-out bench/__init__.py,$(wildcard bench/[a-z]*.py))))

.PHONY: help run test check lint types format setup setup-dev packages ui ui-test e2e screenshots lock wheel fresh soak \
  chaos docs clean FORCE

# `make run WITHOUT_ASSETS=1` does without the model and the footage of assets.toml.
ASSETS := $(if $(WITHOUT_ASSETS),--without-assets)

help: ## List every task
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { sub("%", "NAME", $$1); printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  NAME is one of: $(or $(BENCHES),none yet)"

run: setup ui ## Set up and start camserver with the demo cameras on this machine
	@exec $(BIN)/camserver up --demo

# `make types` and `make ui-test` run beside the tests (tests/repository/test_checks_beside.py).
test: setup-dev packages lint ## Set up, check, and run every test
	@$(BIN)/python tools/ui_build.py --dev
	@CHECKS_BESIDE=1 $(PYTEST) $(TESTS) $(PYTEST_ARGS)

check: lint types ## Check format, lint, import contracts and types

lint: setup-dev ## Check format, lint and import contracts only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: setup-dev ## Check types only
	$(BIN)/mypy $(TYPED)

format: setup-dev ## Format the code and apply the safe fixes of the linter
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: ## Make .venv and fetch what camserver needs; nothing happens when nothing changed
	@$(call needs_python)
	@$(PYTHON) tools/setup.py $(ASSETS)

setup-dev: ## The same with what tests and checks need
	@$(call needs_python)
	@$(PYTHON) tools/setup.py --dev $(ASSETS)

packages: setup-dev ## Install (as root, by apt) or name the system packages that tests use
	@$(BIN)/python tools/system_packages.py

ui: setup ## Build the web UI; nothing happens when nothing changed
	@$(BIN)/python tools/ui_build.py

ui-test: setup-dev ## Check the UI (format, lint, types) and run its unit tests
	@$(BIN)/python tools/ui_build.py --dev --npm verify

e2e: setup-dev packages ## Run the whole-product tests only, browser included
	@$(BIN)/python tools/ui_build.py --dev
	@$(BIN)/python -m pytest tests/e2e $(PYTEST_ARGS)

screenshots: setup-dev packages ## Take pictures of every page, and those that the docs show
	@$(BIN)/python tools/ui_build.py --dev
	@$(BIN)/python -m tests.e2e.ui.screenshots

lock: setup-dev ## Write the hashed lock files anew after pyproject.toml changed (UPGRADE=1: newest versions)
	@PATH="$(CURDIR)/$(BIN):$$PATH"; command -v uv >/dev/null || { \
	  echo "error: make lock needs uv, which is not on PATH. Install it by: $(BIN)/python -m pip install uv" >&2; exit 1; }
	PATH="$(CURDIR)/$(BIN):$$PATH" $(COMPILE) -o requirements.lock
	PATH="$(CURDIR)/$(BIN):$$PATH" $(COMPILE) --extra dev -c requirements.lock -o requirements-dev.lock

COMPILE = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
  $(if $(UPGRADE),--upgrade) pyproject.toml

wheel: setup-dev ui ## Build the wheel, with the UI in it, into dist/
	$(BIN)/python -m hatchling build -t wheel

fresh: ## Clone HEAD into an empty folder and run `make test` and `make run` there
	@$(call needs_python)
	@$(PYTHON) tools/fresh_clone.py $(FRESH_ARGS)

soak: bench-soak packages ## Run the whole product under faults for a long time, then tests of chance many times over
	@TEST_THOROUGH=1 $(PYTEST) $(TESTS_OF_CHANCE) $(PYTEST_ARGS)

chaos: setup-dev packages ## Run a whole fleet under faults for 30 minutes (QUICK=1: two); as root
	@$(BIN)/python -m bench.chaos $(BENCH_ARGS)

docs: setup-dev ## Build the documentation as a static site into build/docs, and check its links
	@$(BIN)/python tools/docs_site.py build/docs

bench-%: setup-dev FORCE ## Measure one thing and print its figures
	@test -f bench/$(subst -,_,$*).py || { \
	  echo "error: there is no bench named '$*'. There are: $(or $(BENCHES),none yet)" >&2; exit 2; }
	@$(BIN)/python -m bench.$(subst -,_,$*) $(BENCH_ARGS)

clean: ## Remove .venv, caches and built files; data and configuration stay
	rm -rf .venv .setup .assets .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build \
	  ui/node_modules ui/test-results ui/src/api/schema.d.ts src/camserver/services/web/ui_dist
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

define needs_python
command -v $(PYTHON) >/dev/null || { \
  echo "error: camserver needs Python 3.11 or newer; there is no '$(PYTHON)' on PATH." >&2; \
  echo "Install it by: apt install python3 python3-venv (Debian, Ubuntu), or name one: make PYTHON=/path/to/python3" >&2; \
  exit 3; }
endef
