"""--attnbench-fail-slower: the gate of `attnbench compare` about two runs, in pytest's words."""

from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.pytest_plugin.gate import base_of, judged, margins_of
from tests.made_runs import (
    changed,
    fake_run,
    many_problems,
    slower,
    starts,
)

MARGINS = {"latency": 0.05}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return fake_run(tmp_path, 1)


def told(base: Path, new: Path) -> tuple[int, str]:
    code, lines = judged(str(base), new, base.parent, MARGINS, ["before", "after"])
    return code, "\n".join(lines)


def test_a_run_that_noise_explains_decides_nothing_and_it_is_said_what_would(base, tmp_path):
    code, said = told(base, fake_run(tmp_path, 2, ratio=1.15))
    assert code == 6
    assert said.startswith("Gate latency 5 %: latency: nothing decided (0 of 6: ")
    assert "attnbench doctor --deep" in said


def test_a_slower_case_fails_with_its_ratio_and_the_same_code_passes(base, tmp_path):
    starts(tmp_path, run_sd=0.005)
    code, said = told(base, changed(base, "slow", slower))
    assert code == 1
    assert "failed" in said
    assert ": slower ×" in said
    code, said = told(base, fake_run(tmp_path, 2))
    assert (code, said.splitlines()[0].partition(";")[0]) == (0, "Gate latency 5 %: passed")
    assert "slower" not in said


def test_runs_that_cannot_be_compared_do_not_pass(base, tmp_path):
    code, said = told(base, many_problems(tmp_path))
    assert code == 6
    assert said.startswith("not compared with before: ")
    assert "no case in common" in said


def test_a_scenario_is_compared_with_the_stored_run_of_its_name(base, tmp_path):
    other = many_problems(tmp_path)
    assert base_of("seed1", [str(other), str(base)], tmp_path) == str(base.resolve())
    assert base_of("seed1", ["last:5"], tmp_path) == "last:5"
    for against, named in (([str(other)], other.name), ([], "names nothing")):
        with pytest.raises(BadInput, match=r"wanted a stored run of the scenario seed1") as refusal:
            base_of("seed1", against, tmp_path)
        assert named in str(refusal.value)
        assert "\n" not in str(refusal.value)


def test_a_margin_is_a_percentage_or_noise():
    assert margins_of("5%") == {"latency": 0.05}
    assert margins_of("noise") == {"latency": None}
    with pytest.raises(BadInput, match=r"^--attnbench-fail-slower: found '?5"):
        margins_of("5")
