# What a person does with Ninefold. Needs Python 3.11–3.13 with venv, and nothing else that is running.

PYTHON ?= python3
DETACH ?=
UPGRADE ?=
ARGS ?=

BIN := .venv/bin
# Files, database and ports of its own, whatever those of the product are.
DEMO := NINEFOLD_DEMO=1 NINEFOLD_HOME=var/demo NINEFOLD_DATABASE_URL= NINEFOLD_CONTROL_URL= \
	NINEFOLD_GATEWAY_URL= NINEFOLD_WEB_PORT=$(or $(DEMO_PORT),8010) \
	NINEFOLD_GATEWAY_PORT=$(or $(DEMO_GATEWAY_PORT),8011)
BOOTSTRAP := $(PYTHON) -I platform/launcher/bootstrap.py
# Checks read Django's settings but touch no database.
CHECKED := DJANGO_SETTINGS_MODULE=config.settings.test $(BIN)/python -W ignore::RuntimeWarning manage.py
COMPILE := UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal \
	--generate-hashes --python-version 3.11 $(UPGRADE)

# Set in many images, it would have each process compile all that it imports: 3.5 s of processor time for each of ours.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up down demo demo-down status logs test test-real test-full real-tools test-cluster check check-types check-rest bench drill screens client engine lock wheel release format product development

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: product ## Start the product and keep it running (DETACH=1: in the background)
	@$(BIN)/python -m launcher up $(if $(filter-out 0,$(DETACH)),--detach)

down: product ## Stop the product and the jobs of this machine
	@$(BIN)/python -m launcher down

demo: product ## Start a made-up company with 2,048 simulated cards, beside the product (DEMO_PORT=8010)
	@$(DEMO) $(BIN)/python -m launcher up $(if $(filter-out 0,$(DETACH)),--detach)

demo-down: product ## Stop the made-up company; the next make demo goes on with it
	@$(DEMO) $(BIN)/python -m launcher down

status: product ## Show what runs
	@$(BIN)/python -m launcher status || test $$? -eq 3

logs: product ## Show the last lines of the logs (ARGS=web: of one process)
	@$(BIN)/python -m launcher logs $(ARGS)

test: development ## Test all but the slow: real PostgreSQL, and Redis if there is one
	@echo "set-up: programs that some tests use"
	@$(BIN)/python -m tests.system_packages redis-server
	$(BIN)/python -m pytest tests/unit tests/contract tests/integration tests/functional \
		-m "not slow and not engine and not browser and not product and not kubernetes" -n logical --dist loadfile $(ARGS)

test-real: real-tools ## Test with the real engine, a real browser and the whole product
	@# More workers than cores would gain nothing: each of these tests keeps a core busy. What runs beside what is in
	@# tests/conftest.py.
	$(BIN)/python -m pytest tests/engine tests/kubernetes tests/contract tests/drill tests/functional \
		tests/integration tests/e2e -m "(engine or kubernetes or product or browser or slow) and not full" \
		-n 2 --dist loadgroup --durations=25 $(ARGS)

test-full: real-tools ## Test what takes too long for every change; the results are in docs/verification.md
	NINEFOLD_TEST_FULL=1 $(BIN)/python -m pytest tests/unit -n logical --dist loadfile $(ARGS)
	NINEFOLD_DEATHS_EVERY=1 $(BIN)/python -m pytest tests/integration -k "killed or crash" -n logical --dist loadfile $(ARGS)
	$(BIN)/python -m pytest tests/engine tests/kubernetes tests/drill tests/e2e -m full --durations=25 $(ARGS)

real-tools: development
	@echo "set-up: programs that some tests use, and the engine's environment"
	@$(BIN)/python -m tests.system_packages chromium-headless-shell redis-server prometheus
	@$(BIN)/python -m launcher engine
	@$(BIN)/python -m tests.kubernetes build || echo "tests that need a cluster are skipped"

test-cluster: development ## Start a real Kubernetes on this machine, for tests by hand (ARGS=stop, status)
	@$(BIN)/python -m tests.kubernetes $(or $(ARGS),start)

check: development ## Lint, check types, imports, terms, settings, migrations and committed files
	@# Types take as long as everything else together.
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=target check-types check-rest

check-types:
	$(BIN)/mypy

check-rest:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m tests.terms
	$(BIN)/python -m tests.reasons
	$(BIN)/python -m tests.settings_reference
	$(BIN)/python client/generate.py --check
	$(CHECKED) check --fail-level WARNING
	$(CHECKED) makemigrations --check --dry-run
	$(BIN)/python -m pytest -q tests/unit/test_committed_files.py

bench: development ## Measure, and write the figures below var/bench (ARGS=…: only some)
	$(BIN)/python -m tests.benchmarks $(ARGS)

drill: development ## Break a simulated fleet in every known way, and measure what is done about it (ARGS=--help)
	@$(BIN)/python -m tests.drill $(ARGS)

screens: development ## Take screenshots of the main pages, and write the contact sheets in docs/screens (ARGS=…)
	@$(BIN)/python -m tests.system_packages chromium-headless-shell
	$(BIN)/python -m tests.e2e.gallery --main --sheet docs/screens $(ARGS)

client: development ## Generate the typed API client in client/ from the OpenAPI document
	$(BIN)/python client/generate.py

engine: product ## Create the engine's environment now rather than with the first job
	@$(BIN)/python -m launcher engine

lock: development ## Resolve the lock files anew (UPGRADE=--upgrade: to the newest versions)
	$(COMPILE) pyproject.toml --group build --output-file requirements.lock
	$(COMPILE) pyproject.toml client/pyproject.toml --group build --extra dev --constraint requirements.lock \
		--output-file requirements-dev.lock
	echo uv | $(COMPILE) - --output-file platform/launcher/requirements-uv.lock
	$(COMPILE) tests/clients/requirements.in --output-file tests/clients/requirements.lock

wheel: development ## Build wheels and source distributions of server and client in dist
	$(BIN)/python -m hatchling build --target sdist --target wheel --directory dist
	cd client && $(abspath $(BIN))/python -m hatchling build --target sdist --target wheel --directory $(abspath dist)

release: development ## Date the changelog, set the version, commit, tag, set the next version; no push (VERSION=0.2.0)
	@$(BIN)/python -m tests.release $(VERSION)

format: development ## Put the code into its shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

product:
	@$(BOOTSTRAP)

development:
	@$(BOOTSTRAP) --dev
