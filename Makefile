# A fresh machine needs Python 3.11 or newer and make; everything else is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What users have, and beside it what developing needs.
USABLE := $(VENV)/.usable
STAMP := $(VENV)/.installed
OUT := results
# a checkout finds itself first, then what users have on this path, such as by pip install --target
SEARCHED := $(CURDIR)/.package$(if $(PYTHONPATH),:$(PYTHONPATH))
# What is installed: these versions; or, with LOCK=.ci/locked.txt as in CI, files of known hashes.
CONSTRAINTS ?= constraints.txt
LOCK ?=
# cpu, cu130 and so on, as uv names builds of torch; empty: the one that pip finds.
TORCH_BACKEND ?=
BASE ?= HEAD
# What the tests need beside what users have; old packages warn, so warnings are no errors there.
TEST_TOOLS := pytest pytest-xdist hypothesis jsonschema pypdf hatchling ruff mypy import-linter playwright axe-playwright-python
SHORT := not nightly and not long
IN_PARALLEL := --numprocesses auto --maxprocesses 4 --dist worksteal
# Where a GPU's results go; and the file with all of them, if not there.
GPU_OUT := results/gpu
ARCHIVE ?=
# The versions that `make rehearsal` stands in for a GPU's machine with.
PYTHON312 ?= python3.12
TORCH ?= torch==2.11.*
TRITON ?= triton==3.6.*

.PHONY: lock demo test test-all contract test-lowest nightly cookbook check approve bench gate false-alarms faults net-proof gpu wheels rehearsal pictures site dist report format clean

demo: $(USABLE)  ## measure scenarios/quickstart.yaml on this machine and write the page
	@run=$$($(BIN)/attnbench run quickstart --runs $(OUT)); code=$$?; \
	if [ -n "$$run" ]; then echo "open this page:" >&2; $(BIN)/attnbench show "$$run" --format html; fi; exit $$code

test: $(STAMP)  ## before each commit: the short tests of the core, which need no GPU; two minutes on two cores
	$(BIN)/python -m pytest -m "$(SHORT)" $(IN_PARALLEL)

test-all: $(STAMP)  ## as in CI: also the long ones, which start hundreds of processes, and those of the packs; 17 minutes
	$(BIN)/python -m pytest -m "not nightly" $(IN_PARALLEL)

contract: $(STAMP)  ## what a user relies on, seen from outside: processes, files, exit codes; 6 minutes on two busy cores
	$(BIN)/python -m pytest tests/contract -m "contract and not nightly" --numprocesses auto --maxprocesses 4 --dist loadfile

nightly: $(STAMP)  ## what takes minutes each: compiled backends on every problem, all cheats, then bench, faults, net-proof and cookbook; an hour and a half
	$(BIN)/python -m pytest -m nightly $(IN_PARALLEL)
	$(MAKE) bench faults net-proof cookbook

cookbook:  ## the cookbook's entries for other tools, with those installed, in .venv-cookbook
	$(PYTHON) -m venv .venv-cookbook
	.venv-cookbook/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . duckdb 'mlflow-skinny>=3' sqlalchemy alembic wandb $(TEST_TOOLS)
	.venv-cookbook/bin/python -m pytest tests/test_cookbook.py

test-lowest:  ## the same with the lowest versions that pyproject.toml allows, in .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) .ci/floors.py parquet hf pytest > .venv-lowest/floors.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/floors.txt -e '.[parquet,hf,pytest]' $(TEST_TOOLS)
	.venv-lowest/bin/python -m pytest -m "$(SHORT)" -o filterwarnings=default --disable-warnings $(IN_PARALLEL)

check: $(STAMP)  ## format, lint, types, import directions, and no more code than .ci/budget.toml allows
	$(BIN)/python .ci/budget.py
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	cd .package && ../$(BIN)/lint-imports --config ../pyproject.toml

approve: $(STAMP)  ## after a change of what is printed on purpose: renew tests/approved, then review the diff
	ATTNBENCH_APPROVE=1 $(BIN)/python -m pytest -q tests/approved tests/scenarios/test_shipped.py tests/harness/rows/test_tables.py; git diff --stat tests/approved scenarios docs/format.md

bench: $(STAMP)  ## benchmarks of the harness itself
	$(BIN)/python -m pytest tests/bench --benchmark-enable

gate: $(STAMP)  ## is this tree slower than the commit BASE? Both are measured interleaved on this machine
	rm -rf .gate && git worktree prune
	PYTHONPATH="$(SEARCHED)" $(BIN)/python -m attnbench gate $(BASE) . --scenario .ci/gate.yaml --code .package --threads 1 --out .gate

false-alarms: $(STAMP)  ## false alarms of the gate: 20 comparisons of this tree with itself; half an hour
	$(BIN)/python tests/bench/false_alarms.py 20

faults: $(STAMP)  ## attack attnbench: kills, full disks, broken files, hostile backends; at most 20 minutes on two idle cores, or FAULTS_MINUTES; ARGS="--short --seed 7"
	PYTHONPATH="$(SEARCHED)" $(BIN)/python -m tests.faults $(if $(FAULTS_MINUTES),--minutes $(FAULTS_MINUTES)) $(ARGS)

net-proof: $(STAMP)  ## 24 defects, planted one at a time into a copy of this tree: does a test notice each? 15 minutes; ARGS="'W for mW'"
	PYTHONPATH="$(SEARCHED)" $(BIN)/python -m tests.net_proof $(ARGS)

pictures: $(STAMP)  ## what README and the notebook show, from the kept quickstart; needs chromium
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/notebook.py

site: $(STAMP)  ## the site, into .site-pages: docs/, and a page of every run under results/reference; seconds, no network
	PYTHONPATH="$(SEARCHED)" $(BIN)/python .ci/site.py

dist: $(STAMP)  ## wheel and sdist of the last commit, checked, installed elsewhere and used; release/ tells of them; five minutes
	$(BIN)/python .ci/dist.py  # TAG=v0.2.0: is it that version, and has it notes?

report: $(USABLE)  ## the page of the newest run
	@$(BIN)/attnbench show --format html --runs $(OUT)

gpu:  ## on a machine with a GPU and its own torch: most worth first, in 9 minutes; installs nothing, needs no network; ARGS="--dry-run"
	$(PYTHON) -m tests.gpu_day --out "$(GPU_OUT)" $(ARCHIVE:%=--archive "%") $(ARGS)

wheels: $(STAMP)  ## into .whl: what a GPU's machine without a network lacks (.ci/gpu_machine.txt)
	$(BIN)/python .ci/wheels.py

rehearsal: wheels  ## a day with a GPU without one: its versions in a venv, every step small on the CPU
	$(BIN)/python .ci/rehearsal.py --python "$(PYTHON312)" --torch "$(TORCH)" --triton "$(TRITON)"

format: $(STAMP)  ## format the code and fix what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock:  ## .ci/locked.txt from constraints.txt; needs uv
	uv pip compile pyproject.toml --group dev --constraints constraints.txt --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --quiet --no-header --output-file .ci/locked.txt
	sed -i '1i # What CI installs: `make lock` writes it from pyproject.toml and constraints.txt.' .ci/locked.txt

clean:
	rm -rf $(VENV) .venv-lowest .venv-cookbook .venv-rehearsal .rehearsal .whl .site .site-pages .gate .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist release build

$(USABLE): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "attnbench needs Python 3.11 or newer; choose one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
ifneq ($(TORCH_BACKEND),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --torch-backend $(TORCH_BACKEND) $(CONSTRAINTS:%=-c %) torch
endif
ifeq ($(LOCK),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS:%=-c %) -e .
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	touch $@

$(STAMP): $(USABLE)
ifeq ($(LOCK),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'  # the first that knows --group
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS:%=-c %) --group dev
endif
	touch $@
