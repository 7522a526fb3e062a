"""The action's steps, run outside GitHub as GitHub runs them: results, files and exit codes."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import environment, ran
from tests.github.workflow_files import ACTION, action
from tests.made_runs import fake_run

pytestmark = pytest.mark.long

FAST = (
    "def prepare(problem, inputs, weights):\n    from attnbench.impls.layer import as_call\n\n   "
    " def attend(q, k, v):\n"
)
COMPUTE = (
    "        return (q @ k.mT * problem.scale).softmax(-1) @ v\n\n    return as_call(problem,"
    " inputs, weights, attend)\n"
)
SLOW = f"import time\n\n\n{FAST}        time.sleep(0.05)\n{COMPUTE}"
REFUSES = (
    "def why_not(problem, device):\n    return 'not for causal problems' if problem.causal else"
    " None\n\n\n"
)
SCENARIO = """
name: mine
question: Did my backend become slower?
backends: [mine]
grid: {seq_len: 32, d_model: 16, heads: 2}
plan: {like: quick, budget_s: 0.2}
device: cpu
"""
JOB_FILES = ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")


def written_out(text: Any, inputs: dict[str, str], outputs: dict[str, dict[str, str]]) -> str:
    """The text with its expressions replaced: inputs, and outputs of steps."""

    def value(found: re.Match[str]) -> str:
        kind, *path = found[1].split(".")
        return inputs[path[0]] if kind == "inputs" else outputs[path[0]].get(path[2], "")

    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", value, str(text))


def run_action(workspace: Path, **given: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Run the steps in order, each in its own shell.

    Returns the exit code of the first step that fails, and the outputs of the steps.
    """
    document = action()
    inputs = {
        name: given.get(name.replace("-", "_"), of.get("default", ""))
        for name, of in document["inputs"].items()
    }
    outputs: dict[str, dict[str, str]] = {}
    code = 0
    for step in document["runs"]["steps"]:
        if "uses" in step:
            assert step["uses"].startswith("actions/upload-artifact@")
            continue
        put_out = workspace / "output.txt"
        put_out.write_text("")
        ours = {name: written_out(value, inputs, outputs) for name, value in step["env"].items()}
        ours |= {
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "GITHUB_STEP_SUMMARY": str(workspace / "step_summary.md"),
            "GITHUB_OUTPUT": str(put_out),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        code = subprocess.run(
            command, cwd=workspace, env=environment(ours), check=False, capture_output=True
        ).returncode
        outputs[step.get("id", "")] = dict(
            line.split("=", 1) for line in put_out.read_text().splitlines()
        )
        if code:
            break
    return code, outputs


@pytest.mark.nightly
def test_a_backend_that_became_slower_between_two_checkouts_fails_the_job(tmp_path: Path) -> None:
    for checkout, code in (("base", FAST + COMPUTE), ("head", SLOW)):
        (tmp_path / checkout / "attention").mkdir(parents=True)
        (tmp_path / checkout / "attention" / "mine.py").write_text(
            REFUSES + code if checkout == "base" else code
        )
    (tmp_path / "mine.yaml").write_text(SCENARIO)
    given = {
        "scenario": "mine.yaml",
        "head": "head",
        "base": "base",
        "backends": "attention",
        "turns": "3",
        "python": sys.executable,
    }
    code, outputs = run_action(tmp_path, **given, gate="latency: 20%", artifact="")
    assert code == 3
    results = tmp_path / "attnbench-results"
    assert outputs["judge"] == {
        "code": "3",
        "verdict": "failed",
        "report": "attnbench-results/report.html",
    }
    found = json.loads((results / "compare.json").read_text())
    (latency,) = (one for one in found["cases"] if one["metric"] == "latency")
    assert (found["turns"], latency["verdict"]) == (3, "slower")
    assert latency["new"] > 50 > latency["base"]
    summary = (tmp_path / "step_summary.md").read_text()
    assert summary.startswith("# attnbench: ")
    assert "failed, 1 regression" in summary
    assert summary.count("# attnbench: ") == 2  # the comparison, and the report of head
    assert (results / "report.html").read_text().startswith("<!DOCTYPE html>")
    # Interleaved: base, head, head, base, base, head.
    runs = sorted(
        (path.name, side) for side in ("base", "head") for path in (results / side).glob("2*")
    )
    assert [side for _, side in runs] == ["base", "head", "head", "base", "base", "head"]


# ---- comparing made-up runs ----------------------------------------------------------------------


def results(
    folder: Path,
    base: float | None,
    head: float = 1.0,
    turns: int = 4,
    planned: list[dict] | None = None,
    code: int = 0,
) -> Path:
    """A results folder as measure.sh writes it."""
    for side, ratio, seed in (("base", base, 1), ("head", head, 11)):
        for turn in range(turns if ratio else 0):
            newest = fake_run(
                folder / side, seed + turn, ratio or 1.0, planned, processes=1, blocks=6
            )
            (folder / side / "latest").unlink(missing_ok=True)
            (folder / side / "latest").symlink_to(newest.name)
    (folder / "head.code").write_text(f"{code}\n")
    return folder


def run_judge(out: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """As in a job of GitHub."""
    files = {name: str(out / name) for name in JOB_FILES} | {"GITHUB_ACTIONS": "true"}
    return ran(
        [ACTION.parent / "judge.sh"],
        cwd=out.parent,
        env=environment({"OUT": str(out), "PYTHON": sys.executable, **files, **settings}),
    )


@pytest.mark.parametrize(
    ("turns", "code", "verdict", "annotation"),
    [(4, 0, "passed", ""), (1, 6, "undecided", "::warning title=attnbench::nothing decided")],
)
def test_a_verdict_is_an_output_and_nothing_decided_a_warning(
    tmp_path: Path, turns: int, code: int, verdict: str, annotation: str
) -> None:
    out = results(tmp_path / "equal", base=1.0, turns=turns)
    done = run_judge(out)
    assert done.returncode == code
    assert done.stderr.partition(" about")[0] == annotation
    assert f"verdict={verdict}\n" in (out / "GITHUB_OUTPUT").read_text()
    assert (out / "GITHUB_STEP_SUMMARY").read_text()


@pytest.mark.parametrize(("code", "ends"), [("0", 0), ("3", 3), ("6", 0), ("", 1)])
def test_the_last_step_fails_the_job_for_a_regression_and_not_for_nothing_decided(
    code: str, ends: int
) -> None:
    (gate,) = (step for step in action()["runs"]["steps"] if step["name"] == "Gate")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", gate["run"]]
    assert subprocess.run(command, env={"CODE": code}, check=False).returncode == ends


def test_without_a_base_failed_cases_fail_the_job_and_a_long_report_is_not_in_the_summary(
    tmp_path: Path,
) -> None:
    out = results(tmp_path / "alone", base=None, turns=1, code=1)
    assert run_judge(out, MOST_BYTES="2000").returncode == 1
    assert (
        out / "GITHUB_STEP_SUMMARY"
    ).read_text() == "\nThe report is too long for a summary; the page has it.\n"
    assert len((out / "report.md").read_bytes()) > 2000
    assert not (out / "compare.json").exists()


def test_runs_that_cannot_be_compared_are_bad_input(tmp_path: Path) -> None:
    out = results(tmp_path / "uneven", base=1.0)
    shutil.rmtree(next((out / "base").glob("2*")))
    done = run_judge(out)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "wanted the same number" in done.stderr
    assert not (out / "compare.json").exists()
    assert "verdict=none\n" in (out / "GITHUB_OUTPUT").read_text()
