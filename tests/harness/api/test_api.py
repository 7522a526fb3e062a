"""attnbench from Python: the same runs and refusals as on the command line, quiet, inside
the caller's process.
"""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import attnbench
from tests.conftest import ROOT, environment, ran, wait_for
from tests.made_runs import fake_run, quickstart

PAGE = (ROOT / "docs" / "api.md").read_text()
TINY = {
    "name": "tiny",
    "question": "?",
    "backends": ["fused"],
    "grid": {"seq_len": 32, "d_model": 16, "heads": 2},
}


def python(code: str, folder: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-c", code], cwd=folder, env=environment(changes))


@pytest.mark.long
def test_the_examples_of_the_documentation_run_in_their_order_and_print_nothing_else(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    done = python("\n".join(blocks), tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        rf"<attnbench.Run {tmp_path}/results/\d{{8}}T\d{{6}}Z-two_backends-[0-9a-f]{{8}}: 4 ok>\n",
        done.stdout,
    )
    assert done.stderr == ""


def test_importing_and_listing_names_loads_nothing_heavy() -> None:
    code = "import sys, attnbench; dir(attnbench); attnbench.BadInput; attnbench.Run; attnbench.run"
    code += (
        "; print([name for name in ('torch', 'pandas', 'pydantic', 'numpy') if name in"
        " sys.modules])"
    )
    done = python(code, ROOT)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.long
def test_bad_arguments_are_refused_before_anything_starts(tmp_path: Path) -> None:
    for arguments in (
        {"plan": "fast"},
        {"device": "tpu"},
        {"changes": {"limits.memory": 2}},
        {"changes": {"plan.budget_s": "long"}},
        {"changes": ["plan.budget_s=2"]},
    ):
        with pytest.raises(attnbench.BadInput) as caught:
            attnbench.run(TINY, out=tmp_path, **arguments)
        assert str(caught.value).count("\n") == 0
        assert "--set" not in str(caught.value)
    with pytest.raises(attnbench.EnvironmentUnmet):
        attnbench.run(TINY, out=tmp_path, device="cuda")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_module_of_the_users_is_imported_only_if_that_is_allowed(tmp_path: Path) -> None:
    code = f"import attnbench; attnbench.run({TINY | {'backends': 'attend@mine'}})"
    done = python(code, tmp_path)
    assert "attend@mine: to measure it, workers import and run mine; add allow_import=True" in (
        done.stderr
    )


def test_a_run_that_failed_in_part_is_not_ok_and_says_how(tmp_path: Path) -> None:
    run = attnbench.Run(quickstart(tmp_path))
    assert sum(run.statuses.values()) == len(run.frame()) == 80
    assert not run.ok
    assert "crashed" in repr(run)
    assert str(run.path) in repr(run)
    assert attnbench.Run(fake_run(tmp_path, 1)).ok


@pytest.mark.long
def test_a_comparison_has_the_verdicts_of_the_command_line(tmp_path, attnbench):
    import attnbench as package

    base, new = fake_run(tmp_path, 1), fake_run(tmp_path, 2, ratio=1.3)
    found = package.Run(new).compare(package.Run(base))
    latency = found[found["metric"] == "latency"]
    assert set(latency["verdict"]) == {"not decided"}  # how much runs differ is not known here
    assert (latency["ratio"] > 1).all()
    printed = json.loads(attnbench("compare", base, new, "--format", "json").stdout)["cases"]  # type: ignore[operator]
    assert found["verdict"].tolist() == [one["verdict"] for one in printed]
    assert package.Run(new).compare(str(base)).equals(found)


# ---- signals -------------------------------------------------------------------------------------

INTERRUPTED = """
import json, signal, sys, attnbench
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
grid = {"seq_len": 32, "d_model": 16, "heads": 2}
scenario = {"name": "hang", "question": "?", "backends": ["fused", "hangs"], "grid": grid}
before = signal.getsignal(signal.SIGINT)
try:
    attnbench.run(scenario, device="cpu", plan="quick", changes={"plan.budget_s": 0.2})
except KeyboardInterrupt as stopped:
    print("KeyboardInterrupt", stopped)
assert signal.getsignal(signal.SIGINT) is before
(path,) = Path("results").glob("2*")
run = attnbench.open_run(path)
print(json.dumps(run.statuses))
"""


def started(folder: Path, code: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=environment(), stdout=-1, stderr=-1, text=True
    )
    wait_for(lambda: list(folder.glob("results/2*/logs/worker-1.log")))
    time.sleep(0.5)
    return process


@pytest.mark.long
def test_ctrl_c_keeps_the_rows_and_raises_and_a_second_one_changes_nothing(tmp_path: Path) -> None:
    with started(tmp_path, INTERRUPTED) as process:
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints
    assert re.match(
        r"KeyboardInterrupt /\S+-hang-\S+ has what was measured;"
        r" attnbench.open_run\('/\S+'\).resume\(\) goes on\n",
        said,
    )
    statuses = json.loads(said.splitlines()[-1])
    assert sum(statuses.values()) == 2
    assert statuses["interrupted"] >= 1


@pytest.mark.long
def test_sigterm_ends_the_callers_process_as_it_would_have_without_us(tmp_path: Path) -> None:
    with started(tmp_path, INTERRUPTED) as process:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM
    (path,) = tmp_path.glob("results/2*")
    assert sum(attnbench.open_run(path).statuses.values()) == 2


def test_a_row_that_cannot_be_read_is_left_out_only_if_asked(tmp_path: Path) -> None:
    run = attnbench.Run(fake_run(tmp_path, 1))
    whole = run.frame()
    rows = (run.path / "rows.jsonl").read_text()
    (run.path / "rows.jsonl").write_text("{broken\n" + rows)
    for read in (run.frame, run.walls, run.studies, lambda: attnbench.load(run.path)):
        with pytest.raises(attnbench.BadRun, match="read the others with salvage=True"):
            read()
    assert run.frame(salvage=True).equals(whole)
    assert run.walls(salvage=True).empty
