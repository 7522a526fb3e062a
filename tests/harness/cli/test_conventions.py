"""Options that users know from other programs: accepted, or answered with what is wanted."""

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from attnbench import __version__
from attnbench.harness.cli import completion
from attnbench.harness.cli.texts import separated
from attnbench.harness.scenario.fields import PLANS
from tests.made_runs import case, fake_run, problem, row, write_run

SMALL = shlex.split("--seq-len 32 --heads 2 --device cpu --plan quick --set measure=[memory]")


def rows_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_the_version_is_printed(here):
    assert here("--version").stdout == f"attnbench {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --plan", "attnbench run: Option --plan requires an argument; see `attnbench run -h`"),
        ("run x --out", "attnbench run: Option --out requires an argument; see `attnbench run -h`"),
        (
            "list runs --out",
            "attnbench list runs: Option --out requires an argument; see `attnbench list runs -h`",
        ),
        (
            "run quickstart --timeout abc",
            "attnbench run: --timeout: wanted a number; see `attnbench run -h`",
        ),
        ("run --devise cpu", "attnbench run: No such option: --devise (Possible options: --device"),
        ("run --device tpu", "attnbench run: --device: 'tpu' is not one of auto, cpu, cuda"),
        (
            "report",
            "attnbench report: Missing argument 'RUN', such as latest; see `attnbench report -h`",
        ),
        (
            "quickstart",
            "attnbench: No such command 'quickstart'; a scenario is measured with `attnbench run"
            " quickstart`; see `attnbench -h`",
        ),
        (
            "baseline remove x",
            "attnbench baseline: No such command 'remove'; there are: save, list",
        ),
        ("compre a b", "attnbench: No such command 'compre'"),
        ("run --\x1b[31m", r"attnbench run: No such option: --\x1b[31m; see"),
    ],
)
def test_a_misused_option_is_one_line_that_says_what_is_wanted(here, words, said):
    done = here(*words.split())
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_word_after_wall_is_answered_with_what_takes_a_model(here):
    done = here("wall", "llama-3-8b")
    assert done.returncode == 2
    assert "attnbench advise MODEL" in done.stderr


def test_a_missing_option_is_named_once_and_as_an_option(here):
    done = here("run", "--seq-len", "32")
    wanted = (
        "--backends: missing; wanted: names of backends, such as naive, fused and sdpa; see"
        " `attnbench list backends`.\n"
    )
    assert (done.returncode, done.stderr) == (2, wanted)


def test_a_group_without_a_command_prints_its_help(here):
    done = here("baseline")
    assert done.returncode == 2
    assert "save" in done.stdout + done.stderr
    assert "Usage" in done.stdout + done.stderr


# ---- shapes and limits ---------------------------------------------------------------------------


def test_a_head_dim_gives_the_width_of_the_model(attnbench, tmp_path):
    done = attnbench(
        "run", "--backends", "sdpa", *SMALL, "--head-dim", "16", "--memory-gib", "1", "--threads",
        "1", "--dtype", "bfloat16",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = tmp_path / done.stdout.strip()
    (found,) = rows_of(run)
    assert (found["d_model"], found["d_k"], found["d_v"]) == (32, 16, 16)
    assert found["dtype"] == "bf16"
    meta = json.loads((run / "run.json").read_text())
    assert meta["memory_bytes"] == 1 << 30
    assert meta["environment"]["threads"] == 1


def test_threads_are_those_of_the_workers(attnbench, tmp_path):
    done = attnbench("run", "--backends", "sdpa", *SMALL, "--d-model", "32", "--threads", "2")
    meta = json.loads((tmp_path / done.stdout.strip() / "run.json").read_text())
    assert meta["environment"]["threads"] == 2


def test_with_d_model_a_head_dim_is_the_width_of_each_head(here):
    words = "run --backends sdpa --seq-len 32 --heads 1,2 --d-model 64 --head-dim 8 -n"
    done = here(*words.split(), "--device", "cpu")
    assert done.stdout.count("-dk8-dv8-") == 2, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--heads 1,2 --head-dim 8", "with 2 numbers of heads the width of the model is open"),
        ("--heads 2 --head-dim 8,16", "2 widths; wanted one"),
        ("--heads 2 --head-dim wide", "found 'wide'; wanted a whole number"),
        ("--heads 2 --d-model 8 --threads 0", "--threads"),
    ],
)
def test_a_head_dim_that_says_too_little_is_refused(here, words, said):
    done = here("run", "--backends", "sdpa", "--seq-len", "32", *words.split())
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


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
    done = here("validate", "mine.yaml")
    assert (done.returncode, done.stdout) == (0, "mine.yaml: ok, 1 case on a CPU, 2 on a GPU\n")


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has a GPU")  # noqa: PTH110
@pytest.mark.parametrize(
    "verb",
    [
        "run --backends sdpa --seq-len 32 --heads 2 --d-model 8",
        "doctor --calibrate",
        "selfcheck",
        "list backends",
    ],
)
def test_gpu_is_cuda(here, verb):
    done = here(*verb.split(), "--device", "gpu")
    assert done.returncode == 4
    assert "no cuda device" in done.stderr


def test_another_device_is_refused_with_those_there_are(here):
    done = here("list", "backends", "--device", "tpu")
    assert done.returncode == 2
    assert "'tpu' is not one of auto, cpu, cuda (or gpu)" in " ".join(done.stderr.split())


# ---- values with spaces between them -------------------------------------------------------------


def test_values_in_quotes_may_have_spaces_between_them(here):
    words = shlex.split("run --heads 2 --d-model 8 --device cpu --backends 'naive sdpa'")
    done = here(*words, "--dry-run", "--seq-len", "32, 64")
    assert done.stdout.count("-b1-n") == 4, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --backends naive fused sdpa --heads 8", "wanted --backends naive,fused,sdpa"),
        ("run --backends=naive fused", "wanted --backends naive,fused"),
        ("run --backends fused --seq-len 512 1k", "wanted --seq-len 512,1k"),
        ("run --backends fused --dtype bf16 fp32", "wanted --dtype bf16,fp32"),
        ("wall --backends naive fused", "wanted --backends naive,fused"),
    ],
)
def test_values_with_spaces_between_them_are_answered_with_commas(here, words, said):
    done = here(*words.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "values are separated by commas" in done.stderr
    assert said in done.stderr


def test_a_scenario_beside_options_is_no_list_of_values():
    assert separated(["quickstart"], ["run", "--heads", "8", "quickstart"]) == ""
    assert separated(["quickstart"], ["run", "--causal", "quickstart"]) == ""
    assert separated(["x"], ["run"]) == ""


@pytest.mark.parametrize("verb", ["run quickstart", "report latest", "list runs"])
def test_a_file_as_results_folder_is_answered_with_the_option_for_files(here, verb):
    done = here(*verb.split(), "--out", "page.html")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--out page.html: a file" in done.stderr
    assert "named with -o FILE" in done.stderr


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
    done = here("report", "quickstart", "--format", "md")
    assert done.returncode == 0, done.stderr
    page = here("report", "quickstart")
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
    here("baseline", "save", "main", "quickstart")
    done = here("show", name)
    assert done.returncode == 2
    assert f"did you mean {close}" in done.stderr


# ---- a run that is finished ----------------------------------------------------------------------

REFERENCE = Path(__file__).parents[3] / "results" / "reference" / "cpu-20261121-quickstart"


@pytest.fixture
def finished(tmp_path, monkeypatch) -> Path:
    """A copy of a run that is kept with the project, where no worker can be started."""

    def refused(*arguments: object, **settings: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr("attnbench.harness.run.start.first_workers", refused)
    run = tmp_path / "results" / json.loads((REFERENCE / "run.json").read_text())["run"]
    shutil.copytree(REFERENCE, run)
    return run


def test_resume_says_that_nothing_is_left_before_it_starts_a_worker(here, finished):
    rows = (finished / "rows.jsonl").read_bytes()
    done = here("run", "--resume", "latest")
    assert done.returncode == 0
    assert done.stdout == f"{finished}\n"
    first, *_ = done.stderr.splitlines()
    assert first.endswith(f", all measured: nothing is left to measure in {finished}")
    assert (finished / "rows.jsonl").read_bytes() == rows
    assert (finished.parent / "latest").resolve() == finished


@pytest.mark.parametrize(("status", "is_retried"), [("crashed", True), ("incorrect", False)])
def test_resume_of_what_failed_names_the_option_that_repeats_it(here, finished, status, is_retried):
    lines = (finished / "rows.jsonl").read_text().splitlines()
    last = {**json.loads(lines[0]), "status": status, "reason": "signal 11"}
    kept = {name: value for name, value in last.items() if name != "block_ms"}
    (finished / "rows.jsonl").write_text("\n".join([json.dumps(kept), *lines[1:]]) + "\n")
    done = here("run", "--resume", finished)
    assert done.returncode == 1
    assert "nothing is left to measure" in done.stderr
    assert ("1 failed; --retry-failed measures again" in done.stderr) == is_retried


def test_resume_without_the_folder_of_an_own_backend_is_refused_and_writes_no_row(here, finished):
    meta = json.loads((finished / "run.json").read_text())
    first = meta["cases"][0]
    first |= {"backend": "mine", "case": f"mine-{first['case'].partition('-')[2]}"}
    (finished / "run.json").write_text(json.dumps(meta))
    rows = (finished / "rows.jsonl").read_bytes()
    done = here("run", "--resume", finished)
    assert done.returncode == 4
    assert done.stderr.startswith(
        "the run has the backend 'mine', which is not here; set ATTNBENCH"
    )
    assert (finished / "rows.jsonl").read_bytes() == rows


def test_resume_measures_what_has_no_row_yet(here, finished):
    lines = (finished / "rows.jsonl").read_text().splitlines()
    (finished / "rows.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(AssertionError, match="a worker was started"):
        here("run", "--resume", finished)


# ---- help, lists and completion ------------------------------------------------------------------

VERBS = shlex.split(
    "run wall gate claims compare report show export doctor selfcheck validate schema"
)


def test_the_help_names_first_what_measures_then_what_reads(here):
    text = here("--help").stdout
    groups = ["Measure", "Read and compare", "This machine", "Files"]
    places = [text.index(f"─ {name} ─") for name in groups]
    assert places == sorted(places)


def test_a_flag_has_no_type_in_the_help(here):
    for command in ("run", "list backends", "kernels audit", "baseline save"):
        text = here(*command.split(), "--help").stdout
        assert "--" in text
        assert "<bool>" not in text


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(here, verb):
    done = here(verb, "--help")
    assert done.returncode == 0
    assert f"attnbench {verb}" in done.stdout.partition("Examples:")[2]


def test_options_of_run_are_in_groups_with_their_defaults(here):
    text = here("run", "--help", env={"COLUMNS": "120"}).stdout
    for group in ("What to measure", "Shape of the problem", "How to measure", "Limits"):
        assert f"─ {group} ─" in text
    assert "fp32 if not given" in " ".join(text.split())
    assert "[default: results]" in text


@pytest.mark.parametrize("width", ["40", "80"])
def test_help_fits_the_terminal(here, width):
    text = here("run", "--help", env={"COLUMNS": width}).stdout
    assert max(map(len, text.splitlines())) <= int(width)


def test_list_without_a_word_lists(here, results):
    done = here("list")
    assert done.returncode == 0, done.stderr
    for word in ("quickstart", "sdpa:flash", "precision", "gpm", "20261102T000000Z-quickstart"):
        assert word in done.stdout


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
        ("attnbench compare 20261102", "20261102T000000Z-quickstart-00000002"),
        ("attnbench export latest --format par", "parquet"),
        ("attnbench report latest --format m", "md"),
        ("attnbench claims --run quick", "quickstart"),
        ("attnbench gate main . --scenario memory", "memory_wall"),
        ("attnbench validate memory", "memory_wall"),
    ],
)
def test_the_shell_completes(here, results, line, offered):
    (results / "latest").symlink_to("20261102T000000Z-quickstart-00000002")
    settings = {
        "_ATTNBENCH_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    assert offered in here(env=settings).stdout.split()


def test_plans_that_are_completed_are_those_there_are():
    assert set(completion.PLANS) == set(PLANS)
    assert completion.in_list(["a", "ab"], "a,a") == ["a,ab"]


# ---- compare --only ------------------------------------------------------------------------------


def test_compare_takes_only_what_matches(here, tmp_path):
    base, new = fake_run(tmp_path / "r", 1), fake_run(tmp_path / "r", 2, 1.3)
    done = here("compare", base, new, "--only", "naive", "--only", "*-n512-*")
    assert done.returncode == 0, done.stderr
    assert "of 4 cases" in done.stdout
    assert "2 cases left out by --only." in done.stdout
    none = here("compare", base, new, "--only", "nothing-like-it")
    assert none.returncode == 5
    assert "no compared case matches nothing-like-it" in none.stderr


def test_only_keeps_the_baseline_of_backends(here, tmp_path):
    done = here("compare", fake_run(tmp_path / "r", 1), "--baseline", "fused", "--only", "native")
    assert "of 2 cases" in done.stdout, done.stderr
    assert "naive" not in done.stdout
