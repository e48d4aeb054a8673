PYTHON ?= python3
BIN := .venv/bin

# What could hang has a deadline in seconds: SIGINT, at which pytest still prints its summary, then SIGKILL. At a terminal
# the command stays in the foreground, so that Ctrl-C reaches it; elsewhere all that it started ends with it.
TIMEOUT := $(shell command -v timeout || command -v gtimeout)
FOREGROUND := $(shell test -t 0 && echo --foreground)
within = $(if $(TIMEOUT),$(TIMEOUT) $(FOREGROUND) --signal=INT --kill-after=30 $(1))

GPU_PYTHON ?= $(or $(wildcard $(BIN)/python),$(PYTHON))
GPU_REPORT ?= dist/gpu.md
# Hundreds of processes of the tests import the package: they share what the first one compiled, whatever
# the environment says.
export PYTHONDONTWRITEBYTECODE =
# torch's stores look up the name of every address that connects: let one without an answer cost one second and not
# five.
# `make gpu` runs the tests that need a GPU; the others run as on a machine without one.
PYTEST := env CUDA_VISIBLE_DEVICES= RES_OPTIONS="$${RES_OPTIONS:-timeout:1}" $(BIN)/python -m pytest
# Tests of ranks wait half of their time: for a deadline, or for each other.
WORKERS ?= 4
SIDE_BY_SIDE := $(PYTEST) --numprocesses=$(WORKERS)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo check fast test thorough conformance bench faults mutants gpu gpu-model gpu-mutants upstream-torch upstream-marker newcomer upstream-invariance torch-newest over-real lint types format docs core

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

demo: .venv/.installed-examples ## a short tour on this machine, with ranks that talk to each other
	@$(BIN)/python -m collshim demo

check: lint ## style, and the tests that start no ranks: under a minute
	@$(call within,900) $(SIDE_BY_SIDE) --session-timeout=840 -m "unranked and not slow"

fast: lint ## these, and the tests whose ranks are threads: 2 minutes
	@$(call within,1800) $(SIDE_BY_SIDE) --session-timeout=1740 -m "not processes and not slow"

test: lint types ## what continuous integration runs: style, types and every behaviour; 7 minutes on two cores, ends by itself
	@$(call within,5400) $(SIDE_BY_SIDE) --session-timeout=5300 -m "not slow"

thorough: lint types ## everything, with many more drawn cases; ends within two hours
	@COLLSHIM_THOROUGH=1 $(call within,7100) $(SIDE_BY_SIDE) --session-timeout=7000 --timeout=900
	@$(MAKE) --no-print-directory docs gpu-model gpu-mutants over-real

conformance: .venv/.installed-test ## the conformance suite alone
	@$(call within,1800) $(SIDE_BY_SIDE) --session-timeout=1740 collshim/conformance

bench: .venv/.installed-test ## what a call costs, and what the engine adds to it; some minutes, one with BENCH=--quick
	@$(BIN)/python -m tests.benchmarks $(BENCH)

gpu: ## the tests that need a GPU, and figures; needs no network: GPU_PYTHON=python3 has torch, NumPy, pytest, pytest-timeout
	@PYTHONPATH=. $(call within,570) $(GPU_PYTHON) tests/gpu --report $(GPU_REPORT)

# 77: the environment cannot be made here; what is missing has been told, and there is nothing that could fail.
gpu-model: ## the tests for GPUs, on simulated ones, without any; the first time a download of 530 MB; 2 to 12 minutes
	@$(call within,1500) $(PYTHON) -m tests.cuda_model --workers $(or $(MODEL_WORKERS),2) $(if $(ARGS),-- $(ARGS)); \
	    status=$$?; test $$status -eq 77 || exit $$status

faults: .venv/.installed-test ## mistakes across ranks: collshim's errors, and torch's beside them
	@$(call within,1800) $(BIN)/python -m collshim faults

mutants: .venv/.installed-test ## small faults put into copies of the code, each of which the suite must catch; half an hour or more
	@$(call within,7200) $(BIN)/python -m collshim.conformance.mutants

over-real: .venv/.installed-test ## the real MegEngine, MindSpore, OneFlow and TensorFlow, each in an environment of its own; downloads
	@RES_OPTIONS="$${RES_OPTIONS:-timeout:1}" $(call within,3000) $(BIN)/python -m tests.over_real; status=$$?; test $$status -eq 77 || exit $$status

# 77 as above.
upstream-torch: .venv/.installed-upstream ## torch's own distributed tests on collshim.torch, then other people's programs over it; downloads
	@$(call within,1500) $(BIN)/python -m tests.upstream.torch
	@$(call within,7200) $(BIN)/python -m tests.upstream.programs; status=$$?; test $$status -eq 77 || exit $$status

# 77 as above.
upstream-marker: .venv/.installed-test ## test suites of other projects on the marker `ranks`, without their own harness; downloads, 2 minutes
	@$(call within,1800) $(BIN)/python -m tests.upstream.marker; status=$$?; test $$status -eq 77 || exit $$status

newcomer: .venv/.installed-test ## the wheel in fresh environments of Python 3.10 and 3.13, and the pages' programs; downloads, 20 minutes
	@$(call within,5400) $(BIN)/python -m tests.packaging.newcomer; status=$$?; test $$status -eq 77 || exit $$status

upstream-invariance: .venv/.installed-test ## releases of other projects whose gradients depend on the number of ranks; downloads, 3 minutes
	@COLLSHIM_THOROUGH=1 $(call within,1800) $(BIN)/python -m pytest -q --timeout=600 tests/upstream/invariance

# 77 as above.
torch-newest: ## what concerns torch on its newest release, 2.15, on simulated GPUs and without; 530 MB the first time, 20 minutes
	@$(call within,2700) $(PYTHON) -m tests.cuda_model.newest --workers $(or $(MODEL_WORKERS),2); \
	    status=$$?; test $$status -eq 77 || exit $$status

# 77 as above.
gpu-mutants: .venv/.installed-test ## small faults in the code for GPUs, each of which the tests on the model must find; 20 minutes
	@$(call within,3300) $(BIN)/python -m tests.cuda_model.mutants $(ARGS); status=$$?; test $$status -eq 77 || exit $$status

lint: .venv/.installed-test ## style and format
	@$(call within,300) $(BIN)/ruff check --quiet
	@$(call within,300) $(BIN)/ruff format --check --quiet

TYPES_LIMIT := 1800
types: .venv/.installed-test ## mypy and pyright, side by side
	@$(call within,$(TYPES_LIMIT)) $(BIN)/mypy & \
	    $(call within,$(TYPES_LIMIT)) $(BIN)/pyright --pythonpath $(BIN)/python; pyright=$$?; wait $$!; mypy=$$?; \
	    for status in $$mypy $$pyright; do case $$status in 124|137) \
	        echo 'types: ended at its limit of $(TYPES_LIMIT) s, of mypy or of pyright; is the machine busy?' ;; esac; done; \
	    test $$mypy -eq 0 -a $$pyright -eq 0

format: .venv/.installed-test ## mend style and format in place
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: .venv/.installed-test .venv/.installed-docs ## write the generated pages, check the links, and build the site in build/site, once with zensical and once with mkdocs
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/check_links.py
	@$(BIN)/python docs/site.py
	@$(BIN)/zensical build
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

core: ## compile the core of shared memory in this checkout, or fail; needs a C compiler and Python's headers
	@COLLSHIM_CORE=require $(or $(wildcard $(BIN)/python),$(PYTHON)) compile_core.py

CORE := compile_core.py $(wildcard collshim/transports/shared_memory/*.[ch])
# A group of pyproject.toml comes with the extras that its tests need; anything else is an extra. Older releases of pip
# do not know groups.
GROUPS := test docs upstream dev
EXTRAS := check,cli,examples,keras,notebooks
WANTED = $(if $(filter $*,$(GROUPS)),--group $* --editable '.[$(EXTRAS)]',--editable '.[$*]')
INSTALL = echo 'installing collshim and what $* needs into .venv (some minutes the first time)' && \
    $(BIN)/python -m pip install --quiet 'pip>=25.1' && \
    $(BIN)/python -m pip install --quiet --constraint constraints.txt $(WANTED)

# .venv with the group or extra after the dash. pip reads its own configuration and PIP_* as always. It installs nothing
# if only the sources of the core have changed; and it hides warnings, so the core is compiled once more.
.venv/.installed-%: pyproject.toml constraints.txt $(CORE)
	@test -x $(BIN)/pip || { echo 'making .venv'; $(PYTHON) -m venv .venv; }
	@$(if $(filter-out $(CORE),$?),$(INSTALL))
	@$(BIN)/python compile_core.py
	@touch $@
