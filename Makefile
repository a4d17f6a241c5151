# attnscope: every target sets up .venv by itself. The network is needed for the package registries only.
PYTHON ?= python3

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test fuzz lint lint-scripts format-scripts docs bench census wheel-smoke clean chromium

bin := .venv/bin
scripts := .ci/js
# as many as CI has cores: three make browsers wait for each other
workers ?= 2
prettier := $(scripts)/node_modules/.bin/prettier --config $(scripts)/package.json --log-level warn \
  src/attnscope/views/*.js src/attnscope/views/*.d.ts src/attnscope/app/client/*.js tests/views/js/*.mjs
pip := $(bin)/python -m pip install -q --disable-pip-version-check -c constraints.txt
cli_page := $(bin)/python -m typer attnscope.cli utils docs --name attnscope
# mkdocs-material advertises its successor otherwise
export NO_MKDOCS_2_WARNING := 1

help: ## Show this help
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

demo: .venv/.core ## Show what the shipped model attends to, and write report.html and survey.html
	$(bin)/attnscope demo

test: .venv/.dev chromium ## Run every test and every example of the docstrings
	$(bin)/python -m pytest -n $(workers) --dist loadfile --no-loadscope-reorder

fuzz: .venv/.dev ## Read 100,000 mutations of real files: each must be as it should, or refused in one sentence
	OMP_NUM_THREADS=1 $(bin)/python tests/fuzz/files.py 100000

lint: .venv/.dev ## Run every checker: format, lint, types, imports, scripts, command-line page, docs
	$(bin)/ruff format --check
	$(bin)/ruff check
	$(bin)/mypy
	$(bin)/lint-imports
	@$(MAKE) --no-print-directory lint-scripts
	@made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT \
	  && $(cli_page) --output "$$made/cli.md" >/dev/null \
	  && { diff docs/cli.md "$$made/cli.md" || { echo "docs/cli.md is stale: run make docs." >&2; exit 1; }; } \
	  && $(bin)/mkdocs build --strict --quiet --site-dir "$$made/site"

# The scripts are checked where node and npm are found; npm needs its registry once, for two packages.
lint-scripts:
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "The scripts (.js) are not checked: node and npm are not found."; \
	elif ! $(MAKE) --no-print-directory $(scripts)/node_modules/.made; then \
	  echo "The scripts (.js) are not checked: npm could not install what checks them."; \
	else $(prettier) --check && $(scripts)/node_modules/.bin/tsc -p $(scripts); fi

format-scripts: $(scripts)/node_modules/.made ## Format the scripts of the views and of the app
	$(prettier) --write

$(scripts)/node_modules/.made: $(scripts)/package.json
	@npm install --prefix $(scripts) --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

docs: .venv/.dev ## Write docs/cli.md and build the site into site/
	$(cli_page) --output docs/cli.md
	$(bin)/mkdocs build --strict

bench: ## Measure against the peers
	@if [ ! -d src/attnscope/bench ]; then echo "There is no benchmark yet: src/attnscope/bench is not built."; exit 1; fi
	@$(MAKE) .venv/.bench
	$(bin)/attnscope bench

census: .venv/.dev ## Record every architecture of transformers, compare it with eager, and write docs/families.md
	$(bin)/python tests/census/run.py

wheel-smoke: .venv/.made ## Build the wheel, install it without extras into a clean environment, and try it there (minutes)
	$(bin)/python .ci/wheel_smoke.py

clean: ## Remove .venv, caches and what was built
	rm -rf .venv $(scripts)/node_modules site build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- set-up: a stamp in .venv says what is installed; a change of the versions makes it anew

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "attnscope needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 (now it is $(PYTHON))." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

# numba compiles the kernels of flow and of the sweep when they are first used, and keeps them: that is set-up too
warm_up := import torch, attnscope as a; a.flow(a.AttentionRecord.from_weights(torch.eye(2).expand(3, 1, 2, 2), "ab")).map; \
  from attnscope.lab.sweep.training import warm_up; warm_up()

# with the app, because the demo names attnscope serve
.venv/.core: .venv/.made pyproject.toml constraints.txt
	$(pip) -e '.[app]'
	@$(bin)/python -c '$(warm_up)'
	@touch $@

.venv/.dev: .venv/.core
	$(pip) -e '.[all,bench,dev]'
	@touch $@

.venv/.bench: .venv/.core
	$(pip) -e '.[bench]'
	@touch $@

# The browser tests drive Debian's Chromium. Without it they skip and say so.
chromium:
	@if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "Installing Chromium for the browser tests."; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  { apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 \
	    || echo "Chromium could not be installed: the browser tests skip."; \
	fi
