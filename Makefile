# `make demo`, `make docs` and `make test` do all the set-up themselves: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
DOCS := $(VENV)/.docs
# hundreds of processes import the package: none of them shall compile it again
export PYTHONDONTWRITEBYTECODE =
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode
# arrays come and go: the GNU library keeps their pages (up to 1 GB) instead of fetching zeros anew
KEEP_MEMORY := MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1073741824

.PHONY: demo explore test most-tests page-tests quick lowest lint docs evidence dist system clean

demo: $(INSTALLED)  ## the main job on a small built-in experiment: a table and a figure
	$(BIN)/onegrad run quickstart --out results/quickstart

explore: $(INSTALLED)  ## the page: sliders, theory curves, simulated points
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[explore]"
	$(BIN)/onegrad explore

test: $(READY) system  ## style, types, every test; those of the page beside the others, three alone
	$(MAKE) --no-print-directory --jobs=3 --keep-going lint most-tests page-tests
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest tests/page tests/chaos -m alone

most-tests:
	$(KEEP_MEMORY) OPENBLAS_NUM_THREADS=1 \
		$(BIN)/pytest -n auto --dist worksteal -m "not alone" --ignore=tests/page

page-tests:
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest tests/page -m "not alone" > $(VENV)/page.log 2>&1 \
		|| { cat $(VENV)/page.log; exit 1; }
	@tail -n 1 $(VENV)/page.log

quick: $(READY)  ## the tests that take seconds, those of plain pytest
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal

lowest:  ## some quick tests with the lowest versions of all that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check -r tools/lowest.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	OPENBLAS_NUM_THREADS=1 $(VENV)-lowest/bin/python -m pytest -q -W default -n auto \
		$(shell grep -v '^\#' tools/lowest_tests.txt)

docs: $(DOCS)  ## the site, in docs/_build/html: pages from the code, examples run, no warning
	$(BIN)/python docs/make_spec.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -j 2 -W --keep-going -q docs docs/_build/html

evidence: $(READY)  ## predict the frozen problems, write docs/accuracy.md; SAMPLE=0.1 is quick, BASE=FILE compares
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m evidence $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(BASE),--base $(BASE))

dist: $(READY)  ## wheel and sdist in dist/, the wheel tried in an empty environment
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . > $(VENV)/build.log || { cat $(VENV)/build.log; exit 1; }
	$(PYTHON) -m venv dist/.venv
	dist/.venv/bin/python -m pip install --quiet --disable-pip-version-check dist/onegrad-*.whl
	cd dist && .venv/bin/onegrad --version && .venv/bin/onegrad predict quickstart > /dev/null
	tar -tzf dist/onegrad-*.tar.gz | grep -q docs/index.md

system:  ## a browser and a data set for the tests, where Debian's package manager can bring them
	tools/system_packages

lint: $(READY)  ## style, types, order of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("onegrad needs Python 3.11 or newer: make PYTHON=python3.12 …" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(READY): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

$(DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-lowest results .pytest_cache .mypy_cache .ruff_cache
