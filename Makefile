# Every target sets itself up from nothing: Python 3.11 or newer and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LIGHT := $(VENV)/.light
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
WORKERS ?= 2

.PHONY: install demo dist lowest browser docs test check lint types imports audit torture mutants bench results figures attacks clean

install: $(READY)

# paper and extras are packages of their own: they join undrift here, and are in no wheel
$(READY): pyproject.toml paper/pyproject.toml extras/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[pyg,figures,report,docs,dev]" -e ./paper -e ./extras
	touch $@ $(LIGHT)

# what the demo needs and no more; without compiling what is never imported
$(LIGHT): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile -e ".[figures]"
	touch $@

demo: $(LIGHT)
	$(BIN)/undrift demo

# one torch thread per worker: two-thread torch slows many times when the other core is busy
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

# Debian's Chromium for the tests of the HTML report; without it they skip and say so
browser: $(READY)
	@if command -v chromium >/dev/null; then echo "chromium is there"; \
	elif ! command -v apt-get >/dev/null; then echo "skipped: no apt-get here; install Chromium by hand"; \
	elif [ "$$(id -u)" = 0 ]; then apt-get install -y --no-install-recommends chromium; \
	elif sudo -n true 2>/dev/null; then sudo -n apt-get install -y --no-install-recommends chromium; \
	else echo "skipped: installing chromium needs root, and sudo asks for a password"; fi \
	|| echo "skipped: apt-get could not install chromium; try apt-get update"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/browser

# the site, into build/site; a warning (a broken link, a page in no menu) is an error
docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -E -d build/doctrees -b html docs build/site
	@echo "open build/site/index.html"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

check: lint types imports docs test

# tests marked slow; every fault at every call of what is written, random kills, crowds, changed
# files: most of an hour
torture: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m slow tests
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.harness.torture --workers $(WORKERS)

# small mistakes on purpose, 100 drawn, each with the tests that should notice it; about half an hour
mutants: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m mutants --sample 100 --workers $(WORKERS)

# known vulnerabilities of the pinned versions; asks a service on the network, so no part of check
audit: $(READY)
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python -m pip_audit --disable-pip --no-deps -r constraints.txt

# wheel and source archive, checked; then the wheel alone in a fresh environment does three small jobs
dist: $(READY)
	rm -rf dist
	$(PIP) build twine
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tests.harness.wheel dist

# the tests of what ships, with the lowest versions that pyproject.toml allows
lowest:
	test -x build/lowest/bin/python || $(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet -c constraints-lowest.txt -e ".[pyg,report,tensorboard,mlflow,dask]" -e ./paper -e ./extras pytest pytest-xdist hypothesis pyarrow pandas polars
	OMP_NUM_THREADS=1 build/lowest/bin/python -m pytest -n $(WORKERS) -q tests/analytic tests/graphs tests/learners tests/folder tests/storage tests/cli tests/datasets tests/streams tests/extras tests/scale/test_engines.py

bench: $(READY)
	$(BIN)/python -m benchmarks

# docs/results.md and returning.md from the tables in results/, then the paper's claims on them;
# fails if a page was not what the tables give. With RUNS=folder the tables are made from those runs first.
results: $(READY)
	$(if $(RUNS),$(BIN)/python -m paper compact $(RUNS) results)
	$(BIN)/python -m paper page results docs/results.md $(if $(RUNS),|| [ $$? = 1 ])
	$(BIN)/python -m paper returning results/returning docs/returning.md
	$(BIN)/python -m paper attacks-page results docs/privacy/attacks.md
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/paper/test_claims.py

# every figure of docs/ from the tables in results/. Two need runs that the tables do not hold, 12 and
# 18 of them, kept in build/figures: without them RUNS_TOO= (nothing) draws the others
RUNS_TOO ?= --runs build/figures
figures: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m paper figures results docs/figures $(RUNS_TOO)

# what attacks read out of sums: measured again where AGAIN says so, drawn, and its page made
AGAIN ?= now small_classes
attacks: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m paper attacks results/privacy/attacks.json --again $(AGAIN)
	$(MAKE) figures RUNS_TOO=
	$(BIN)/python -m paper attacks-page results docs/privacy/attacks.md || [ $$? = 1 ]

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info paper/*.egg-info extras/*.egg-info
