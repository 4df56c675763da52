# `make demo` and `make test` need Python 3.11 or later, g++, make and git; they install the rest into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# As many workers as there are cores, none idle; what one compiles the others find in their store.
PYTEST := $(BIN)/python -m pytest --numprocesses=logical --dist=worksteal --durations=20 --durations-min=5

.PHONY: demo docs messages test test-slow test-browser test-hipcc test-rest test-thorough test-all check fuzz mutants bench search-bench replays upstream measure-check performance-check own-benchmarks-check schemas dist clean

demo: .venv/installed
	$(BIN)/policygen demo

# Each test is in one tier. The first is for every change: a sample of what takes long, and nothing that needs a tool
# that a machine may lack. Its last lines say what it left out.
FIRST_TIER := -m 'not (slow or thorough or browser or hipcc)'
# COVERAGE=yes records what it covers; `test-rest` with the same adds to it, and fails below the limit.
test: .venv/installed-dev
	$(PYTEST) $(FIRST_TIER) $(if $(COVERAGE),--cov --cov-report= --cov-fail-under=0)

# The rest of what takes long; a third of it with THIRD=1, 2 or 3, and with THIRD=commit what CI runs of it.
THIRD ?=
test-slow: .venv/installed-dev
	THIRD=$(THIRD) $(PYTEST) -m 'slow and not (thorough or browser or hipcc)'

# Pages in Chromium: apt-get install chromium.
test-browser: .venv/installed-dev
	THIRD=$(THIRD) $(PYTEST) -m browser

# Kernels for AMD's GPUs: apt-get install hipcc.
test-hipcc: .venv/installed-dev
	THIRD=$(THIRD) $(PYTEST) -m hipcc

# These three at once.
test-rest: .venv/installed-dev
	THIRD=$(THIRD) $(PYTEST) -m '(slow or browser or hipcc) and not thorough' $(if $(COVERAGE),--cov --cov-append --cov-report=term)

# More versions of CUB and more types of what compiles most. Takes hours; for a release.
test-thorough: .venv/installed-dev
	$(PYTEST) -m 'thorough and not (browser or hipcc)'

# All tiers.
test-all: .venv/installed-dev
	$(PYTEST) -m ''

check: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m benchmarks.house
	$(BIN)/python -m pytest -q -m '' tests/test_imports.py

# For hours, with other seeds each time; SEED repeats one. `make test` tries a sample.
MEASURED ?= 3.6.0
COUNT ?= 500
SEED ?= $(shell date +%s)
fuzz: .venv/installed-dev
	$(BIN)/python -m tests.fuzz.databases --count $(COUNT) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.inputs --count $(COUNT) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.plans --count $(COUNT) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.stores --count $(COUNT) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.kills --count $(COUNT) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.changes --count $(COUNT) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.test_rewrites $(COUNT)
	POLICYGEN_FUZZ=20 $(BIN)/python -m pytest -q tests/fuzz/test_sass_fakes.py tests/headers/test_fuzz.py

# Whether the first tier notices small faults, by the tests that cover the line of each: an error below 85 %.
# What each test covers is kept until a source or a test changes; DATA names a file that was kept elsewhere.
DATA ?= .coverage-contexts/data
mutants: COUNT = 60
mutants: SEED = 1
mutants: .venv/installed-dev $(DATA)
	$(BIN)/python -m benchmarks.mutants --data $(DATA) --count $(COUNT) --seed $(SEED)

.coverage-contexts/data: $(shell find policygen tests -name '*.py') | .venv/installed-dev
	rm -rf $(@D) && mkdir $(@D)
	COVERAGE_FILE=$(CURDIR)/$@ $(PYTEST) $(FIRST_TIER) --cov --cov-context=test --cov-report= --cov-fail-under=0 || { rm -rf $(@D); exit 1; }

bench: .venv/installed-dev
	$(BIN)/python -m benchmarks.run

# policygen's search beside Kernel Tuner's strategies on recorded spaces, CUB's and, with HUB, those of a checkout of
# AutoTuningAssociation/benchmark_hub that ONLY matches. Needs no GPU; five minutes for each space on two cores.
ONLY ?= _[IF][0-9]+$$|(convolution|dedispersion|hotspot|gemm)(_milo)? (A100|A4000|MI250X|RTX_3090)$$
search-bench: .venv/installed-dev
	$(PIP) install 'kernel-tuner>=1.5'
	$(BIN)/python -m benchmarks.strategies $(if $(HUB),--hub '$(HUB)') --only '$(ONLY)'

# Upstream's tuning history once more, from its own labels; CHECKOUT is a clone of CCCL with its pull requests. Hours.
replays: .venv/installed-dev
	$(BIN)/policygen headers fetch -q 3.0.1 3.2.0 3.6.0
	$(BIN)/python -m benchmarks.replays all $(CHECKOUT) --page docs/findings.md

# The results that come with policygen as patches for CHECKOUT, a clone of CCCL: a commit and a review page for each
# algorithm, below OUT.
OUT ?= upstream
upstream: .venv/installed-dev
	$(BIN)/python -m benchmarks.upstream $(CHECKOUT) $(OUT)

# On a GPU: what is measured twice agrees, results are right, and kill -9 loses nothing. Under five minutes;
# with CHECKOUT, a checkout of CCCL, events and CCCL's own benchmarks agree, which takes ten.
measure-check: .venv/installed-dev
	$(BIN)/policygen headers fetch -q $(MEASURED)
	$(BIN)/python -m benchmarks.measure_check $(MEASURED) $(CHECKOUT)

# On a GPU: equal code is called equal, and what is 3 % slower or faster is found. RUNS of each:
# the default, twenty, takes some forty minutes on an H200; what a run was ended in is gone on with.
performance-check: .venv/installed-dev
	$(BIN)/policygen headers fetch -q $(MEASURED)
	$(BIN)/python -m benchmarks.performance_check $(MEASURED) $(RUNS)

# On a GPU: benchmarks that `policygen bench new` writes measure what CUB's own do; CHECKOUT is one of CCCL.
own-benchmarks-check: .venv/installed-dev
	$(BIN)/python -m benchmarks.own_benchmarks $(CHECKOUT) $(RUNS)

# Writes schemas/json/ anew from the models; a test fails when the two differ.
schemas: .venv/installed
	$(BIN)/python -m policygen.json_schemas

# Writes docs/reference/ anew from the program, and builds all pages in site/; a test holds docs/reference/.
docs: .venv/installed-docs
	$(BIN)/python -m docs.make_reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Every message with an example of each, from the first tier of tests, in some minutes; fails if one has none.
messages: .venv/installed-dev
	@mkdir -p build && rm -f build/examples
	@EXAMPLES=$(CURDIR)/build/examples $(PYTEST) -p tests.message_examples $(FIRST_TIER) > /dev/null
	@$(BIN)/python -m docs.make_reference messages build/examples

# What is published, in dist/, checked as an index would check it.
dist: .venv/installed-dev
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/python -m twine check --strict dist/*

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python found; install python3.11" >&2; exit 3; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is too old; install python3.11" >&2; exit 3; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "$(PYTHON) cannot make a .venv; install its venv package, python3-venv on Debian" >&2; exit 3; }

.venv/installed: pyproject.toml | .venv/bin/python
	$(PIP) install --constraint .ci/cuda.txt --editable '.[cuda]'
	@touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(PIP) install --constraint .ci/cuda.txt --editable '.[cuda,benchmarks,measure,parquet,dev]'
	@touch $@ .venv/installed

.venv/installed-docs: pyproject.toml | .venv/bin/python
	$(PIP) install --constraint .ci/cuda.txt --editable '.[cuda,docs]'
	@touch $@ .venv/installed

clean:
	rm -rf .venv build dist site .coverage .coverage.* .coverage-contexts .mypy_cache .pytest_cache .ruff_cache
