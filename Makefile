# A fresh machine needs Python 3.11 or newer and make; everything else is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= results
# What is installed: these versions; or, with LOCK=.ci/locked.txt as in CI, files of known hashes.
CONSTRAINTS ?= constraints.txt
LOCK ?=
BASE ?= HEAD
# What the tests need beside what users have; old packages warn, so warnings are no errors there.
TEST_TOOLS := pytest pytest-xdist hypothesis jsonschema pypdf hatchling ruff mypy import-linter playwright axe-playwright-python
# The scenarios that `make gpu` measures: under 9 minutes on one GPU.
GPU_SCENARIOS ?= quickstart kernel_sweep memory_wall head_cost backends training sparse linear recurrent

.PHONY: lock demo test test-all test-lowest slow check bench gate false-alarms faults gpu pictures dist report format clean

demo: $(STAMP)  ## measure scenarios/quickstart.yaml on this machine and write the page
	@run=$$($(BIN)/attnbench run quickstart --out $(OUT)); code=$$?; \
	if [ -n "$$run" ]; then echo "open this page:" >&2; $(BIN)/attnbench report "$$run"; fi; exit $$code

test: $(STAMP)  ## before each commit: the tests that need no GPU, except the long ones; five minutes on two cores
	$(BIN)/python -m pytest -m "not slow and not long" --numprocesses auto --maxprocesses 4 --dist worksteal

test-all: $(STAMP)  ## as in CI: also the long ones, which start hundreds of processes; a quarter of an hour
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test-lowest:  ## the same with the lowest versions that pyproject.toml allows, in .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) .ci/floors.py parquet hf > .venv-lowest/floors.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/floors.txt -e '.[parquet,hf]' $(TEST_TOOLS)
	.venv-lowest/bin/python -m pytest -m "not slow and not long" -o filterwarnings=default --disable-warnings --numprocesses auto --maxprocesses 4 --dist worksteal

slow: $(STAMP)  ## compiled backends on every problem, in every dtype and scope; twenty minutes of compiling
	$(BIN)/python -m pytest -m slow --numprocesses auto --maxprocesses 4

check: $(STAMP)  ## format, lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	cd .package && ../$(BIN)/lint-imports --config ../pyproject.toml

bench: $(STAMP)  ## benchmarks of the harness itself
	$(BIN)/python -m pytest tests/bench --benchmark-enable --benchmark-only

gate: $(STAMP)  ## is this tree slower than the commit BASE? Both are measured interleaved on this machine
	rm -rf .gate && git worktree prune
	PYTHONPATH=.package $(BIN)/python -m attnbench gate $(BASE) . --scenario .ci/gate.yaml --code .package --threads 1 --out .gate

false-alarms: $(STAMP)  ## false alarms of the gate: 20 comparisons of this tree with itself; half an hour
	$(BIN)/python tests/bench/false_alarms.py 20

faults: $(STAMP)  ## attack attnbench: kills, full disks, broken files, hostile backends; at most 20 minutes on two idle cores, or FAULTS_MINUTES; ARGS="--short --seed 7"
	PYTHONPATH=.package $(BIN)/python -m tests.faults $(if $(FAULTS_MINUTES),--minutes $(FAULTS_MINUTES)) $(ARGS)

pictures: $(STAMP)  ## the README's pictures, from the committed reference run; needs chromium
	$(BIN)/python docs/pictures.py

dist: $(STAMP)  ## wheel and sdist of the last commit, checked, installed elsewhere and used; five minutes
	$(BIN)/python .ci/dist.py  # TAG=v0.2.0: is it that version, and has it notes?

report: $(STAMP)  ## the page of the newest run
	@$(BIN)/attnbench report latest --out $(OUT)

gpu:  ## on a machine with its own torch: GPU tests, calibration, reference scenarios; installs nothing, needs no network
	PYTHONPATH=.package $(PYTHON) -m pytest -m gpu
	PYTHONPATH=.package $(PYTHON) -m attnbench doctor --calibrate --device cuda --out $(OUT) || [ $$? -eq 1 ]  # 1: a check failed
	for scenario in $(GPU_SCENARIOS); do \
	  run=$$(PYTHONPATH=.package $(PYTHON) -m attnbench run $$scenario --device cuda --plan quick --out $(OUT)); code=$$?; \
	  [ -n "$$run" ] && PYTHONPATH=.package $(PYTHON) -m attnbench report "$$run"; \
	  [ $$code -le 1 ] || exit $$code; \
	done

format: $(STAMP)  ## format the code and fix what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock:  ## .ci/locked.txt from constraints.txt; needs uv
	uv pip compile pyproject.toml --extra dev --constraints constraints.txt --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --quiet --no-header --output-file .ci/locked.txt
	sed -i '1i # What CI installs: `make lock` writes it from pyproject.toml and constraints.txt.' .ci/locked.txt

clean:
	rm -rf $(VENV) .venv-lowest .gate .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist build

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "attnbench needs Python 3.11 or newer; choose one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
ifeq ($(LOCK),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS:%=-c %) -e '.[dev]'
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	touch $@
