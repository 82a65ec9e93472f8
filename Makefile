# Every target makes its own environment: a fresh machine needs Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := UV_SYSTEM_CERTS=1 $(BIN)/uv
KERNEL := hatch_build.py src/mcllo/_math/kernel.c
.DEFAULT_GOAL := help
.PHONY: help environments demo test lowest pythons fuzz mutants docs studies lint format wheels release bench quality clean

help:
	@echo "make demo    install, then assess, fit and apply on predictions from scikit-learn's digits"
	@echo "make test    install, then run every test (doctests and simulations included)"
	@echo "make lowest  the fast tests with the lowest versions that pyproject.toml allows, on one thread"
	@echo "make pythons the fast tests with each newer Python that is installed"
	@echo "make fuzz    odd inputs, SECONDS=60 for each target; make mutants: wrong programs that tests must notice"
	@echo "make docs    build the site into site/, then follow its links and open it in a browser"
	@echo "make studies rewrite tables, figures and pages of the paper's studies, a few minutes"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff rewrite the files"
	@echo "make wheels  into dist/, one for each platform and one without C, then try those that run here"
	@echo "make release wheels and sdist, checked, with checksums, bill of materials and provenance, into dist/"
	@echo "make quality held-out log loss beside other packages, an hour or two; stops and goes on"
	@echo "make bench   timings beside other packages and R, half an hour; make bench BENCH=--quick, minutes"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@

$(VENV)/installed-lint: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[lint]"
	@touch $@

# For .ci/run: all that the targets below install, by uv in one go, a tenth of pip's time. The line for
# the tests is still to come: pip then finds everything there, and says so if it does not agree.
environments: pyproject.toml $(KERNEL) | $(BIN)/uv
	$(UV) pip install --quiet --python $(BIN)/python --editable ".[test,lint,fuzz,docs,wheels]"
	@touch $(addprefix $(VENV)/installed-,lint fuzz docs wheels)

demo: $(VENV)/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal --durations 20

# The lowest versions, as uv resolves them, on one thread. Left out: what needs more packages (browser,
# Dask, exports, notebooks, boosters), frames of half floats and Int128, simulations, studies, pages.
LOWEST := .venv-lowest
FAST := tests/ground tests/math/test_kernel.py tests/math/test_compiled.py tests/input/test_labels.py \
  tests/input/test_predictions.py tests/input/test_probabilities.py tests/input/test_votes.py \
  tests/cli/test_command_line.py tests/report/test_render.py tests/public/test_model_files.py \
  tests/files tests/public/test_sklearn_parity.py tests/public/test_logits.py \
  tests/docs/test_scikit_learn_page.py
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

$(BIN)/uv: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(LOWEST)/installed: pyproject.toml $(KERNEL) | $(BIN)/uv
	$(UV) venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(UV) pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable ".[fast]"
	@touch $@

lowest: $(LOWEST)/installed
	$(ONE_THREAD) $(LOWEST)/bin/python -m pytest -n 2 -m "not slow" $(FAST)

NEWER := 3.12 3.13 3.14

pythons:
	for v in $(NEWER); do \
	  if python$$v -c "" 2>/dev/null; then \
	    python$$v -m venv --clear .venv-$$v && \
	    .venv-$$v/bin/python -m pip install --quiet --disable-pip-version-check ".[fast]" && \
	    .venv-$$v/bin/python -m pytest -n 2 -m "not slow" $(FAST) || exit 1; \
	  else echo "no python$$v here"; fi; \
	done

SECONDS := 60
SEED := 0
ENGINE := auto
WORKERS := 2

$(VENV)/installed-fuzz: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[fuzz]"
	@touch $@

fuzz: $(VENV)/installed-fuzz
	$(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED) --engine $(ENGINE) --workers $(WORKERS)

mutants: $(VENV)/installed-test
	$(BIN)/python -m mutants

$(VENV)/installed-docs: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

docs: $(VENV)/installed-docs
	$(BIN)/python -m pytest -q --confcutdir=tests/docs tests/docs/test_tutorials.py \
	  -k forecaster  # shell lines: Sphinx runs only cells
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/make_site.py
	MCLLO_SITE=site $(BIN)/python -m pytest --confcutdir=tests/site tests/site

studies: $(VENV)/installed
	$(BIN)/python -m studies all

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/installed-wheels: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,wheels]"
	@touch $@

wheels: $(VENV)/installed-wheels
	rm -rf dist
	MCLLO_KERNEL=numpy $(BIN)/python -m hatchling build --target wheel
	$(BIN)/python -c "import hatch_build; print(*hatch_build.TARGETS)" | xargs -n 1 | \
	  xargs -P 2 -I{} env MCLLO_TARGET={} $(BIN)/python -m hatchling build --target wheel
	MCLLO_WHEELS=dist $(BIN)/python -m pytest tests/test_wheels.py

$(VENV)/installed-release: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[release]"
	@touch $@

release: wheels $(VENV)/installed-release
	$(BIN)/python release.py

$(VENV)/installed-bench: pyproject.toml $(KERNEL) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	@touch $@

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks speed $(BENCH)

quality: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks quality --workers 2
	$(BIN)/python -m benchmarks harmless --workers 2
	$(BIN)/python -m benchmarks page

clean:
	rm -rf $(VENV) $(LOWEST) .venv-3.* dist build site demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
