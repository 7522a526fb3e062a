"""Whatever an input of the action holds, it stays one value: nothing runs it, nothing splits it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import environment, ran
from tests.github.workflow_files import ACTION, steps, workflows

pytestmark = pytest.mark.long

HOSTILE = (
    "x[$(touch pwned)]",
    "$(touch pwned)",
    "`touch pwned`",
    "a; touch pwned",
    "a\ntouch pwned",
    "--out=pwned",
    "'\"; touch pwned #",
)
MEASURE = {
    "SCENARIO": "--scenario=",
    "OUT": "--out=",
    "BASE": "",
    "TURNS": "--turns=",
    "BASE_PYTHON": "--base-python=",
    "PLAN": "--plan=",
    "DEVICE": "--device=",
    "THREADS": "--threads=",
    "BACKENDS": "--backend-dir=",
    "HEAD": "",
}
JUDGE = {"OUT": "--out=", "GATE": "--gate=", "BASELINE": "--baseline=", "HEAD": ""}


def words_given(script: str, folder: Path, **inputs: str) -> list[str]:
    """What the script gives to the interpreter; this one only writes it down."""
    python = folder / "python"
    python.write_text('#!/bin/sh\nprintf \'%s\\0\' "$@" >"${0%/*}/words"\n')
    python.chmod(0o755)
    given = {"SCENARIO": "quickstart", "OUT": "out", "PYTHON": str(python)} | inputs
    subprocess.run(
        [ACTION.parent / script], cwd=folder, env=environment(given), check=True, timeout=60
    )
    assert not (folder / "pwned").exists()
    return (folder / "words").read_text().split("\0")[:-1]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("script", ["measure.sh", "judge.sh"])
def test_every_input_arrives_as_the_value_of_its_option(
    script: str, value: str, tmp_path: Path
) -> None:
    for name, option in (MEASURE if script == "measure.sh" else JUDGE).items():
        words = words_given(script, tmp_path, **{name: value})
        assert words[:4] == ["-P", "-m", "attnbench", "gate"]
        assert f"{option}{value}" in words, name
        end = words.index("--")  # after it, nothing is an option
        assert (words.index(f"{option}{value}") > end) == (option == ""), name
        assert len(words) == end + 3


@pytest.mark.parametrize("script", ["measure.sh", "judge.sh"])
def test_code_and_head_become_a_path_whatever_they_are_called(script: str, tmp_path: Path) -> None:
    head = tmp_path / "-P$(touch pwned)"
    head.mkdir()
    (tmp_path / "elsewhere" / head.name).mkdir(parents=True)
    given = {"HEAD": head.name, "CODE": "x[$(touch pwned)]", "CDPATH": str(tmp_path / "elsewhere")}
    words = words_given(script, tmp_path, **given)
    assert words[-1] == head.name


TWO_LINES = r"--output: found 'out\nverdict=passed'; wanted a path without line breaks"


@pytest.mark.parametrize(
    ("step", "inputs", "said"),
    [
        ("measure", {"TURNS": "x[$(touch pwned)]"}, "--turns"),
        ("measure", {"TURNS": "3\n::error::no"}, "--turns"),
        ("measure", {"OUT": "out\nverdict=passed"}, TWO_LINES),
        ("judge", {"OUT": "out\nverdict=passed"}, TWO_LINES),
    ],
)
def test_what_is_no_number_or_would_be_two_outputs_is_bad_input(
    step: str, inputs: dict[str, str], said: str, tmp_path: Path
) -> None:
    given = {"SCENARIO": "quickstart", "OUT": "out", "PYTHON": sys.executable} | inputs
    done = ran(
        [ACTION.parent / f"{step}.sh"],
        cwd=tmp_path,
        env=environment(given | {"GITHUB_OUTPUT": str(tmp_path / "output")}),
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert not any(line.startswith("::error::no") for line in done.stderr.splitlines())


# ---- steps of the reusable workflow --------------------------------------------------------------


def run_step(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    (step,) = (one for one in steps(workflows()["attnbench.yml"]) if one.get("name") == name)
    assert set(inputs) == set(step["env"])
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    given = inputs | {
        "GITHUB_OUTPUT": str(folder / "output"),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
    }
    return ran(command, cwd=folder, env=environment(given))


def test_a_scenario_whose_name_would_be_two_outputs_is_refused(tmp_path: Path) -> None:
    done = run_step("Find the scenario", tmp_path, SCENARIO="mine.yaml\nverdict=passed")
    assert done.returncode == 2
    assert "scenario: has a line break" in done.stderr
    assert not (tmp_path / "output").exists()


def test_arguments_of_pip_are_words_and_never_files_or_commands(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s|" "$@" >>words; echo >>words\n')
    python.chmod(0o755)
    (tmp_path / "torch==2.x").touch()
    torch = "--index-url address\ntorch==2.* ; $(touch pwned)"
    done = run_step("Install", tmp_path, TORCH=torch)
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "words").read_text().splitlines()[0]
    assert first == "-m|pip|install|--index-url|address|torch==2.*|;|$(touch|pwned)|"
    assert not (tmp_path / "pwned").exists()
