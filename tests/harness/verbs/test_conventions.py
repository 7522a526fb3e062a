"""Options that users know from other programs: accepted, or answered with what is wanted."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.made_runs import case, problem, read_rows, row, write_run

SMALL = shlex.split("--seq-len 32 --heads 2 --device cpu --plan quick --set measure=[memory]")


# ---- shapes and limits ---------------------------------------------------------------------------


@pytest.mark.long
def test_a_head_dim_gives_the_width_of_the_model(here, tmp_path):
    done = here(
        "run", "--backends", "sdpa", *SMALL, "--head-dim", "16", "--memory-gib", "1", "--threads",
        "1", "--dtype", "bfloat16",
        check=True,
    )  # fmt: skip
    run = tmp_path / done.stdout.strip()
    (found,) = read_rows(run)
    assert (found["d_model"], found["d_k"], found["d_v"]) == (32, 16, 16)
    assert found["dtype"] == "bf16"
    meta = json.loads((run / "run.json").read_text())
    assert meta["memory_bytes"] == 1 << 30
    assert meta["environment"]["threads"] == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [("bfloat16", "bf16"), ("float16", "fp16"), ("half", "fp16"), ("float32", "fp32")],
)
def test_dtypes_have_the_names_of_torch_too(here, given, meant):
    words = f"run --backends sdpa --seq-len 32 --heads 2 --d-model 8 --dtype {given} --device cpu"
    assert f"-{meant}-forward-core" in here(*words.split(), "--dry-run").stdout


def test_a_scenario_may_use_them_as_well(here, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nquestion: which?\nbackends: sdpa\ndtype: bfloat16\ndevice: gpu\n"
        "grid: {seq_len: 32, d_model: 8, heads: 2}\n"
        "cases: [{seq_len: 64, dtype: float16, device: gpu}]\n"
    )
    done = here("run", "mine.yaml", "--dry-run", "--device", "cpu")
    assert done.returncode == 0
    assert "mine: 1 case on cpu" in done.stdout
    assert "-bf16-forward-core" in done.stdout


# ---- values with spaces between them -------------------------------------------------------------


def test_values_in_quotes_may_have_spaces_between_them(here):
    words = shlex.split("run --heads 2 --d-model 8 --device cpu --backends 'naive sdpa'")
    done = here(*words, "--dry-run", "--seq-len", "32, 64")
    assert done.stdout.count("-b1-n") == 4, done.stderr


# ---- runs by name --------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path):
    """Two runs of quickstart and a baseline."""
    root = tmp_path / "results"
    planned = [case("fused", problem(64))]
    for day in (1, 2):
        name = f"2026110{day}T000000Z-quickstart-0000000{day}"
        write_run(root, planned, [row(planned[0])]).rename(root / name)
    return root


def test_the_name_of_a_scenario_is_its_newest_run(here, results):
    here("show", "quickstart", "--format", "md", check=True)
    page = here("show", "quickstart", "--format", "html")
    assert "20261102T000000Z-quickstart-00000002" in page.stdout
    assert here("show", "quickstart").returncode == 0


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("quickstar", "quickstart"),
        ("20261102T000000Z-quickstart-0000000", "20261102T000000Z-quickstart-0000000"),
        ("mian", "main"),
        ("baseline:mian", "main"),
    ],
)
def test_a_run_that_is_not_there_is_answered_with_one_that_is(here, results, name, close):
    here("compare", "quickstart", "--save", "main")
    done = here("show", name)
    assert done.returncode == 2
    assert f"did you mean {close}" in done.stderr


# ---- a run that is finished ----------------------------------------------------------------------

REFERENCE = Path(__file__).parents[3] / "results" / "reference" / "cpu-20261124-quickstart"


@pytest.fixture
def finished(tmp_path, monkeypatch) -> Path:
    """A copy of a run that is kept with the project, where no worker can be started."""

    def refused(*arguments: object, **settings: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr("attnbench.harness.run.session.open_workers", refused)
    run = tmp_path / "results" / json.loads((REFERENCE / "run.json").read_text())["run"]
    shutil.copytree(REFERENCE, run)
    return run


def test_resume_without_the_folder_of_an_own_backend_is_refused_and_writes_no_row(here, finished):
    meta = json.loads((finished / "run.json").read_text())
    first = meta["cases"][0]
    first |= {"backend": "mine", "case": f"mine-{first['case'].partition('-')[2]}"}
    (finished / "run.json").write_text(json.dumps(meta))
    rows = (finished / "rows.jsonl").read_bytes()
    done = here("run", "--resume", finished)
    assert done.returncode == 4
    assert done.stderr.startswith(
        "error: backend 'mine' of this run is missing here; set ATTNBENCH"
    )
    assert (finished / "rows.jsonl").read_bytes() == rows


# ---- help, lists and completion ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("attnbench run quick", "quickstart"),
        ("attnbench run --backends naive,fus", "naive,fused"),
        ("attnbench wall --backends sdpa:fl", "sdpa:flash"),
        ("attnbench run --baseline nai", "naive"),
        ("attnbench run --dtype fp32,bf", "fp32,bf16"),
        ("attnbench run --passes back", "backward"),
        ("attnbench run --plan rig", "rigorous"),
        ("attnbench run --device cu", "cuda"),
        ("attnbench run --resume quick", "quickstart"),
        ("attnbench show lat", "latest"),
        ("attnbench show --runs results/more 2", "20261101T000000Z-quickstart-00000001"),
        ("attnbench compare 20261102", "20261102T000000Z-quickstart-00000002"),
        ("attnbench show latest --format par", "parquet"),
        ("attnbench show latest --format m", "md"),
        ("attnbench gate main . --scenario memory", "memory_wall"),
        ("attnbench run --dry-run memory", "memory_wall"),
        ("attnbench run --set grid.seq_", "grid.seq_len="),
        ("attnbench run --set grid.dtype=bf", "grid.dtype=bf16"),
    ],
)
def test_the_shell_completes(here, results, line, offered):
    (results / "latest").symlink_to("20261102T000000Z-quickstart-00000002")
    (results / "more").mkdir()
    first = "20261101T000000Z-quickstart-00000001"
    (results / first).rename(results / "more" / first)
    settings = {
        "_ATTNBENCH_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    assert offered in here(env=settings).stdout.split()
