# Every target sets up what it needs; `make help` lists them.
#
#   PYTHON=python3.12   the interpreter the virtual environment is made with (default: the first one that is 3.11+)
#   ARGS="-k cvar"      extra arguments for pytest
#   UPGRADE=1           let `make lock` move to newer versions

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
PARALLEL := --numprocesses auto --maxprocesses 8
LOCKS := base test docs bench clients dev
# With hashes, so that pip installs nothing else: what users install, and what tests and documents it. The clients bring
# torch, of which pip finds other builds on other machines.
HASHED := base test docs

export MPLBACKEND := Agg
export SDL_VIDEODRIVER := dummy
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDARY:

##@ Use
.PHONY: demo bench docs docs-serve
demo: $(VENV)/.base  ## train SENTINEL-4 on CartPole for about a minute, and show how it decides
	@$(BIN)/sentinel demo

bench: $(VENV)/.bench $(VENV)/.clients  ## run the benchmarks
	@for script in benchmarks/[!_]*.py; do \
		echo "== $$script"; $(BIN)/python "$$script" || exit; \
	done

docs: $(VENV)/.docs  ## build the documentation into site/
	@$(BIN)/mkdocs build --strict --quiet
	@echo "docs: site/index.html"

docs-serve: $(VENV)/.docs  ## serve the documentation and rebuild it on change
	@$(BIN)/mkdocs serve

##@ Check
.PHONY: test test-clients test-long test-package test-faults lint format
test: lint  ## lint, then the light tests and doctests
	@$(PYTEST) $(PARALLEL) $(ARGS)

test-clients: $(VENV)/.test $(VENV)/.clients $(VENV)/.zoo  ## the tests against heavy real parts (torch, highway-env, ...)
	@$(call run-marked,clients and not slow)

test-long: $(VENV)/.test $(VENV)/.clients  ## the tests that take minutes
	@$(call run-marked,slow)

test-faults: $(VENV)/.test $(VENV)/.clients  ## the attacks on files, options, environments and processes, counted
	@$(PYTEST) $(PARALLEL) -m attack --attacks $(ARGS)

test-package: $(VENV)/.test  ## build the wheel, install it in clean environments, run doctor and demo there
	@$(PYTEST) tests/package -m slow $(ARGS)

lint: $(VENV)/.test  ## style, types and layers
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/.test  ## put the code in shape
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format

# pytest ends with 5 when it selects nothing, which is no failure here.
define run-marked
$(PYTEST) $(PARALLEL) -m "$(1)" $(ARGS) || { \
	status=$$?; \
	[ $$status -eq 5 ] && echo 'no test is marked "$(1)" yet' || exit $$status; }
endef

##@ Maintain
.PHONY: lock hooks clean distclean help
# Each lock is constrained by those before it, so that all of them fit into one environment. What torch needs on a
# GPU is left out: pip adds it only where the torch build it finds asks for it.
lock: $(VENV)/.dev  ## pin requirements/*.in and pyproject.toml into requirements/*.txt
	@constraints=; for name in $(LOCKS); do \
		echo "locking requirements/$$name.txt"; \
		project=; [ $$name != base ] || project=pyproject.toml; \
		case " $(HASHED) " in *" $$name "*) hashes=--generate-hashes ;; *) hashes= ;; esac; \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate $$hashes \
			--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) $$constraints \
			--output-file requirements/$$name.txt $$project requirements/$$name.in >/dev/null || exit; \
		constraints="$$constraints --constraints requirements/$$name.txt"; \
	done
	@grep -Ev '^(cuda|nvidia|triton)' requirements/clients.txt > requirements/clients.tmp
	@mv requirements/clients.tmp requirements/clients.txt

hooks: $(VENV)/.test $(VENV)/.dev  ## check every commit (pre-commit)
	@$(BIN)/pre-commit install

clean:  ## remove caches and built files
	@rm -rf build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean  ## clean, and remove the virtual environment
	@rm -rf $(VENV)

help:  ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The virtual environment. A stamp $(VENV)/.NAME says that requirements/NAME.txt is installed as it stands.
$(VENV)/.created:
	@for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "setting up $(VENV) with $$("$$python" --version) (once, about a minute)"; \
			"$$python" -m venv $(VENV) && touch $@; exit; \
		fi; \
	done; \
	echo "sentinel-rl needs Python 3.11 or newer, and" \
		"$(or $(PYTHON),python3) is $$($(or $(PYTHON),python3) --version 2>/dev/null || echo missing)." \
		"Install one, or name it: make PYTHON=/path/to/python3.12" >&2; \
	exit 1

$(VENV)/.base: requirements/base.txt pyproject.toml | $(VENV)/.created
	@echo "installing $< and sentinel-rl"
	@$(PIP) install --requirement $<
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# RL Baselines3 Zoo does not fit into the environment: it has a folder of its own within it.
$(VENV)/.zoo: requirements/zoo.txt $(VENV)/.base
	@echo "installing $<"
	@$(PIP) install --upgrade --no-deps --target $(VENV)/zoo --requirement $<
	@touch $@

# gymnax asks for an older Gymnasium than ours, with which it runs nevertheless.
$(VENV)/.clients: requirements/clients.txt requirements/gymnax.txt $(VENV)/.base
	@echo "installing $<"
	@$(PIP) install --requirement $<
	@$(PIP) install --no-deps --requirement requirements/gymnax.txt
	@touch $@

$(VENV)/.%: requirements/%.txt $(VENV)/.base
	@echo "installing $<"
	@$(PIP) install --requirement $<
	@touch $@
