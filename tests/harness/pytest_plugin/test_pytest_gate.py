"""--attnbench-fail-slower: the gate of `attnbench compare` about two runs, in pytest's words."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput, Spelling
from attnbench.harness.pytest_plugin.options import PytestRequest
from attnbench.harness.pytest_plugin.runs import FileRun, base_of
from tests.made_runs import changed, fake_run, many_problems, slower, starts


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return fake_run(tmp_path, 1)


def told(base: Path, new: Path) -> tuple[int, str]:
    request = PytestRequest(runs=base.parent, fail_slower="5%", against=(str(base),))
    run: Any = SimpleNamespace(request=request, said=[])
    code = FileRun.judge(run, str(base), new)
    return code, "\n".join(run.said)


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
    assert ": slower" not in said


def test_runs_that_cannot_be_compared_do_not_pass(base, tmp_path):
    code, said = told(base, many_problems(tmp_path))
    assert code == 6
    assert said.startswith(f"not compared with {base}: ")
    assert "no case in common" in said


def test_a_scenario_is_compared_with_the_stored_run_of_its_name(base, tmp_path):
    def found(*against: object) -> str:
        names = tuple(map(str, against))
        return base_of("seed1", PytestRequest(runs=tmp_path, fail_slower="5%", against=names))

    other = many_problems(tmp_path)
    assert found(other, base) == str(base.resolve())
    assert found("last:5") == "last:5"
    for against, named in (([other], other.name), ([], "names nothing")):
        with pytest.raises(BadInput, match=r"wanted a stored run of the scenario seed1") as refusal:
            found(*against)
        said = refusal.value.spelled(Spelling.PYTEST)
        assert said.startswith("--attnbench-fail-slower: --attnbench-against names ")
        assert named in said
        assert "\n" not in said
