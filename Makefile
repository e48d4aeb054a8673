PYTHON ?= python3
BIN := .venv/bin

# What could hang has a deadline in seconds: SIGINT, at which pytest still prints its summary, then SIGKILL. At a terminal
# the command stays in the foreground, so that Ctrl-C reaches it; elsewhere all that it started ends with it.
TIMEOUT := $(shell command -v timeout || command -v gtimeout)
FOREGROUND := $(shell test -t 0 && echo --foreground)
within = $(if $(TIMEOUT),$(TIMEOUT) $(FOREGROUND) --signal=INT --kill-after=10 $(1))

GPU_PYTHON ?= $(or $(wildcard $(BIN)/python),$(PYTHON))
GPU_REPORT ?= dist/gpu.md
# torch's stores look up the name of every address that connects: let a question that nobody answers cost one second
# and not five.
PYTEST := env RES_OPTIONS="$${RES_OPTIONS:-timeout:1}" $(BIN)/python -m pytest
ROOMS := tests collshim/conformance

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test thorough conformance bench faults mutants gpu upstream-torch lint format docs

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

demo: .venv/.installed-examples ## a short tour on this machine, with ranks that talk to each other
	@$(BIN)/python -m collshim demo

test: lint ## lint, then every test; ends by itself
	@$(call within,860) $(PYTEST) --session-timeout=800 $(ROOMS)

thorough: lint ## the same with many more drawn cases; ends within an hour
	@COLLSHIM_THOROUGH=1 $(call within,3300) $(PYTEST) --session-timeout=3200 --timeout=600 $(ROOMS)

conformance: .venv/.installed-test ## the conformance suite alone
	@$(call within,540) $(PYTEST) --session-timeout=480 collshim/conformance

bench: .venv/.installed-test ## what a call costs, and what the engine adds to it; some minutes, one with BENCH=--quick
	@$(BIN)/python -m tests.benchmarks $(BENCH)

gpu: ## the tests that need a GPU, and figures; needs no network: GPU_PYTHON=python3 has torch, pytest, pytest-timeout
	@PYTHONPATH=. $(call within,570) $(GPU_PYTHON) tests/gpu --report $(GPU_REPORT)

faults: .venv/.installed-test ## mistakes across ranks: what collshim tells of them, and torch beside it
	@$(call within,540) $(BIN)/python -m collshim.conformance.faults

mutants: .venv/.installed-test ## small faults put into copies of the code, each of which the suite must catch; up to half an hour
	@$(call within,3300) $(BIN)/python -m collshim.conformance.mutants

upstream-torch: .venv/.installed-upstream ## torch's own distributed tests on the stand-in, on 2 and 4 ranks, some minutes
	@$(call within,1500) $(BIN)/python -m tests.upstream.torch

lint: .venv/.installed-test ## style, format and types
	@$(call within,20) $(BIN)/ruff check --quiet
	@$(call within,20) $(BIN)/ruff format --check --quiet
	@$(call within,120) $(BIN)/mypy
	@$(call within,80) $(BIN)/pyright --pythonpath $(BIN)/python

format: .venv/.installed-test ## mend style and format in place
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: .venv/.installed-test ## write the generated pages, and check the links in README.md and docs/
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/check_links.py

# .venv with the extras after the dash. pip reads its own configuration and PIP_* as always.
.venv/.installed-%: pyproject.toml constraints.txt
	@test -x $(BIN)/pip || { echo 'making .venv'; $(PYTHON) -m venv .venv; }
	@echo 'installing collshim[$*] into .venv (some minutes the first time)'
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$*]'
	@touch $@
