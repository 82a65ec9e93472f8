# Every target makes its own environment: a fresh machine needs Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help demo test studies lint format bench quality clean

help:
	@echo "make demo    install, then assess, fit and apply on predictions from scikit-learn's digits"
	@echo "make test    install, then run every test (doctests and simulations included)"
	@echo "make studies rewrite tables, figures and pages of the paper's studies, a few minutes"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff rewrite the files"
	@echo "make quality held-out log loss beside other packages, an hour or two; stops and goes on"
	@echo "make bench   timings beside other packages and R, an hour; make bench BENCH=--quick, minutes"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@

$(VENV)/installed-lint: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[lint]"
	@touch $@

demo: $(VENV)/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto

studies: $(VENV)/installed
	$(BIN)/python -m studies all

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/installed-bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	@touch $@

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks speed $(BENCH)

quality: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks quality --workers 2
	$(BIN)/python -m benchmarks harmless --workers 2
	$(BIN)/python -m benchmarks page

clean:
	rm -rf $(VENV) demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
