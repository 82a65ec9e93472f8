# Every target makes its own environment: a fresh machine needs Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := UV_SYSTEM_CERTS=1 $(BIN)/uv
KERNEL := hatch_build.py src/mcllo/_model/kernel.c
.DEFAULT_GOAL := help
.PHONY: help environments demo test test-all coverage lowest pythons fuzz mutants docs studies lint format wheels release bench quality clean

help:
	@echo "make demo      install, then assess, fit and apply on handwritten digits, and a report on a network's photographs"
	@echo "make test      install, then the suite of every commit: minutes, with nothing but Python and make"
	@echo "make test-all  all tests: simulations, studies, exports, browsers, wheels, fuzzing, some mutants"
	@echo "make coverage  how much of the package the suite of every commit runs through"
	@echo "make lowest    that suite with the lowest versions that pyproject.toml allows, on one thread"
	@echo "make pythons   that suite with each newer Python that is installed"
	@echo "make fuzz      odd inputs, SECONDS=60 for each target"
	@echo "make mutants   wrong programs, one changed line each, that the suite must notice"
	@echo "make docs      build the site into site/, then follow its links and open it in a browser"
	@echo "make studies   rewrite tables, figures and pages of the paper's studies, a few minutes"
	@echo "make lint      ruff, mypy and numpydoc"
	@echo "make format    let ruff rewrite the files"
	@echo "make wheels    into dist/, one for each platform and one without C, then try those that run here"
	@echo "make release   wheels and sdist, checked, with checksums, bill of materials and provenance"
	@echo "make quality   held-out log loss beside other packages, an hour or two; stops and goes on"
	@echo "make bench     timings beside other packages and R, half an hour; BENCH=--quick, minutes"

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

# What was installed for what: `installed-cli` with the extra `cli`, and so on.
$(VENV)/installed-%: pyproject.toml $(KERNEL) | $(VENV)/pyvenv.cfg
	$(PIP) --editable ".[$*]"
	@touch $@

# For .ci/run: all that the targets below install, by uv in one go, a tenth of pip's time.
EXTRAS := test-all lint fuzz docs wheels
comma := ,
space := $(subst ,, )
environments: pyproject.toml $(KERNEL) | $(VENV)/installed-uv
	$(UV) pip install --quiet --python $(BIN)/python --editable ".[$(subst $(space),$(comma),$(EXTRAS))]"
	@touch $(addprefix $(VENV)/installed-,test $(EXTRAS))

$(VENV)/installed-uv: | $(VENV)/pyvenv.cfg
	$(PIP) uv
	@touch $@

demo: $(VENV)/installed-cli
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

# One worker for each processor. What is marked slow is `make test-all`'s.
test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --durations 10

# Needs more packages, and uses PyTorch, Chromium, R, node, PostgreSQL and ../shared where they are.
test-all: $(VENV)/installed-test-all
	$(BIN)/python -m pytest -n auto --dist worksteal --durations 20
	$(BIN)/python -m mutants --every 9
	$(MAKE) fuzz SECONDS=30 ENGINE=random WORKERS=4
	$(MAKE) wheels

coverage: $(VENV)/installed-test
	$(PIP) pytest-cov
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" -q --cov=mcllo --cov-report=term:skip-covered

# The lowest versions, as uv resolves them, on one thread. Pages print what the newest NumPy prints; the
# served page's test client needs a newer Starlette than the page itself.
LOWEST := .venv-lowest
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

$(LOWEST)/installed: pyproject.toml $(KERNEL) | $(VENV)/installed-uv
	$(UV) venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(UV) pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable ".[test]"
	@touch $@

lowest: $(LOWEST)/installed
	$(ONE_THREAD) $(LOWEST)/bin/python -m pytest -n 2 -m "not slow and not newest" --ignore tests/serve tests src

NEWER := 3.12 3.13 3.14

pythons:
	for v in $(NEWER); do \
	  if python$$v -c "" 2>/dev/null; then \
	    python$$v -m venv --clear .venv-$$v && \
	    .venv-$$v/bin/python -m pip install --quiet --disable-pip-version-check ".[test]" && \
	    .venv-$$v/bin/python -m pytest -n 2 -m "not slow" || exit 1; \
	  else echo "no python$$v here"; fi; \
	done

SECONDS := 60
SEED := 0
ENGINE := auto
WORKERS := 2

fuzz: $(VENV)/installed-fuzz
	$(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED) --engine $(ENGINE) --workers $(WORKERS)

mutants: $(VENV)/installed-test
	$(BIN)/python -m mutants

docs: $(VENV)/installed-docs
	$(BIN)/python -m pytest -q --confcutdir=tests/docs tests/docs/test_tutorials.py \
	  -k forecaster  # shell lines: Sphinx runs only cells
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/make_site.py
	MCLLO_SITE=site $(BIN)/python -m pytest --confcutdir=tests/site tests/site

studies: $(VENV)/installed-cli
	$(BIN)/python -m studies all

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q --confcutdir=tests/public tests/public/test_docstrings.py

format: $(VENV)/installed-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheels: $(VENV)/installed-wheels
	rm -rf dist
	MCLLO_KERNEL=numpy $(BIN)/python -m hatchling build --target wheel
	$(BIN)/python -c "import hatch_build; print(*hatch_build.TARGETS)" | xargs -n 1 | \
	  xargs -P 2 -I{} env MCLLO_TARGET={} $(BIN)/python -m hatchling build --target wheel
	MCLLO_WHEELS=dist $(BIN)/python -m pytest tests/test_wheels.py

release: wheels $(VENV)/installed-release
	$(BIN)/python release.py

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks speed $(BENCH)

quality: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks quality --workers 2
	$(BIN)/python -m benchmarks harmless --workers 2
	$(BIN)/python -m benchmarks copies --workers 2
	$(BIN)/python -m benchmarks page

clean:
	rm -rf $(VENV) $(LOWEST) .venv-3.* dist build site demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
