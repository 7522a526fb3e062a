"""`attnbench gate`: two checkouts measured in turns and compared; what it refuses."""

import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from attnbench.harness.verbs import turns
from attnbench.harness.verbs.turns import GateRequest
from tests.conftest import command_line, environment, ran, wait_for
from tests.github.test_action import FAST, SCENARIO, results
from tests.made_runs import case, problem


def checkout(folder: Path, code: str) -> None:
    (folder / "attention").mkdir(parents=True)
    (folder / "attention" / "mine.py").write_text(code)
    (folder / "bench.yaml").write_text(SCENARIO)


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere .", "neither a folder nor a commit"),
        ("--step judge .", "--step judge: wanted --output DIR"),
        ("--step think . .", "--step: found 'think'; wanted one of measure, judge"),
        (". nowhere --scenario quickstart", "nowhere: no such folder"),
        (". .", "--scenario: not given"),
        (". . --out empty --step judge", "has no run of HEAD; measure first"),
        (". . --out used --scenario quickstart", "used: has runs already"),
        (". . --turns 0", "--turns"),
        (". . --scenario absent.yaml --quiet --turns 1", "absent.yaml: no such file"),
        (". . --scenario quickstart --python no-such-python", "no-such-python: does not run"),
    ],
)
def test_what_cannot_be_measured_is_exit_code_2(here, tmp_path, words, said):
    (tmp_path / "used" / "head").mkdir(parents=True)
    scenario = [] if "--scenario" in words or words == ". ." else ["--scenario", "quickstart"]
    done = here("gate", *words.split(), *scenario)
    assert done.returncode == 2, done.stdout
    assert said in " ".join(done.stderr.split())
    assert not list(tmp_path.glob("*/base/2*"))


@pytest.mark.long
def test_what_holds_for_both_sides_is_told_to_each_run(here, tmp_path):
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\necho "$@" >> words\nexit 4\n')
    script.chmod(0o755)
    words = ("--scenario", "quickstart", "--python", script, "--allow-import", "--wait")
    assert here("gate", "", ".", "--out", "out", *words).returncode == 4
    (run,) = (tmp_path / "words").read_text().splitlines()
    assert "attnbench run quickstart --allow-import --wait" in run


def test_undecided_is_exit_code_3_if_that_was_asked_for(here, tmp_path):
    planned = [case("fused", problem(n)) for n in (64, 128)]
    out = results(tmp_path / "one", base=1.0, turns=1, planned=planned)
    failed = ("--fail-on-undecided", "--gate", "latency: 5%")
    assert here("gate", "", "--step", "judge", "--out", out, *failed).returncode == 3


@pytest.mark.long
def test_a_side_that_fails_in_all_cases_ends_the_gate_with_the_reason(attnbench, tmp_path):
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "mine.py").write_text("def attend(q, k, v):\n    return v\n")
    (tmp_path / "head" / "gate.yaml").write_text(
        "name: x\nquestion: Slower?\nbackends: [attend@mine]\nplan: quick\n"
        "grid: {seq_len: 16, d_model: 16, heads: 1}\n"
    )
    done = attnbench("gate", "base", "head", "--code", ".", "--allow-import", "--out", "out")
    assert done.returncode == 1, done.stderr
    assert "base: none of its cases has a result; attend@mine-b1-n16" in done.stderr
    assert "got an unexpected keyword argument 'causal'" in done.stderr
    assert not (tmp_path / "out" / "head").exists()  # nothing else was measured in vain


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_gate_that_is_ended_ends_what_it_runs_and_its_worktree_is_in_nobodys_way(
    tmp_path, number
):
    repository, script = tmp_path / "repository", tmp_path / "python"
    checkout(repository, FAST)
    script.write_text(
        "#!/bin/sh\necho $$ > pid.unfinished; mv pid.unfinished pid; exec sleep 600\n"
    )
    script.chmod(0o755)
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "x")):
        subprocess.run([*git, *words], check=True)
    words = ("gate", "HEAD", str(repository), "--out", "out", "--python", str(script))
    measuring_both = subprocess.Popen(
        command_line(*words), cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL
    )
    wait_for((tmp_path / "pid").exists)
    measuring = psutil.Process(int((tmp_path / "pid").read_text()))
    assert (tmp_path / "out" / "base-checkout").exists()
    measuring_both.send_signal(number)
    assert measuring_both.wait(120) == (143 if number == signal.SIGTERM else -number)
    assert not psutil.wait_procs([measuring], 30)[1]
    if number == signal.SIGKILL:  # which leaves the folder
        request, out = GateRequest(base="HEAD", head=repository), tmp_path / "out"
        with turns.base_folder(request, out) as tree:
            (tree / "bench.yaml").write_text("changed")
        subprocess.run([*git, "worktree", "add", "-q", "--detach", tree, "HEAD"], check=True)
        shutil.rmtree(out)
        with turns.base_folder(request, out) as tree:
            assert (tree / "bench.yaml").exists()
    assert not (tmp_path / "out" / "base-checkout").exists()
    listed = ran([*git, "worktree", "list"], check=True)
    assert listed.stdout.count("\n") == 1
