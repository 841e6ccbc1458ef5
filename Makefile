# Everything a person or a CI machine runs. `make setup` needs Python 3.11 or later and nothing else.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

# One BLAS thread per process: the tests run JOBS processes, and small matrices are slower on more threads.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export PYTHONPATH := $(CURDIR)/src

EXPERIMENTS := $(BIN)/python -m experiments
# The real census file where it was fetched, and its stand-in where not.
CENSUS := $(if $(wildcard $(or $(NOISEWISE_DATA),data)/census1990/USCensus1990.data.txt),census,census-standin)

.DEFAULT_GOAL := help
.PHONY: help setup accountant demo test test-slow check format docs bench reproduce reproduce-full clean lock

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready  ## Make .venv with everything in it

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "noisewise needs Python 3.11 or later; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[holder,postgres,spark,dev,experiments]"
	$(MAKE) accountant
	@touch $@

accountant:  ## Install the second accountant beside the environment (setup does it)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --no-deps \
		--target $(VENV)/accountant --requirement tests/oracles/second_accountant.txt

demo: setup  ## Run the built-in example through every stage (about half a minute)
	$(BIN)/noisewise demo --replace

test: setup  ## Run the tests
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup

test-slow: setup  ## Run the long statistical suites (hours)
	$(BIN)/python -m pytest -m slow --numprocesses $(JOBS)

check: setup  ## Format, lint, types, import contracts, freshness of generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/reference.py --check

format: setup  ## Format the code and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup  ## Write the generated parts of the documentation anew
	$(BIN)/python scripts/reference.py

bench: setup  ## Measure speed and memory, side by side
	$(BIN)/python -m benchmarks

reproduce: setup  ## Run the experiments, reduced (half an hour); tables in benchmarks/results-local/tables
	$(EXPERIMENTS) run toy --repeats 30 --reduced --workers $(JOBS)
	$(EXPERIMENTS) run adult $(CENSUS) --repeats 4 --reduced --workers $(JOBS)
	$(EXPERIMENTS) run sdnist --repeats 10 --reduced --workers $(JOBS)
	$(EXPERIMENTS) tables toy adult $(CENSUS) sdnist --folder benchmarks/results-local/tables

reproduce-full: setup  ## Run the experiments at their published size (hours); tables in docs/experiments
	$(EXPERIMENTS) run toy adult $(CENSUS) sdnist honesty --workers $(JOBS)
	$(EXPERIMENTS) tables toy adult $(CENSUS) sdnist honesty

lock: setup  ## Write the versions that are installed now into constraints.txt
	$(BIN)/python -m pip list --format freeze --exclude-editable --exclude pip --exclude setuptools --exclude noisewise > constraints.txt

clean:  ## Remove what make made
	rm -rf $(VENV) build dist src/*.egg-info noisewise-demo .hypothesis .mypy_cache .ruff_cache .import_linter_cache
