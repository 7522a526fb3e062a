"""Mistakes in --only and --skip: refused before anything is started."""

from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.run import worker_pool
from attnbench.harness.scenario import load
from attnbench.harness.scenario.selection import Selection, refuse_unmatched

SMALL = ("--backends", "naive,fused,sdpa", "--seq-len", "64", "--d-model", "32", "--heads", "2")


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(worker_pool, "start_worker", start)


@pytest.mark.parametrize(
    "words",
    [
        ("quickstart", "head_cost"),
        ("quickstart", "--only", "fused", "--dry-run"),
        SMALL,
    ],
)
@pytest.mark.parametrize("option", ["--only", "--skip"])
def test_a_pattern_that_matches_nothing_is_one_line_with_the_nearest_names(
    here, tmp_path: Path, words: tuple[str, ...], option: str
) -> None:
    done = here("run", *words, option, "sdqa")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {option} 'sdqa': matches nothing in ")
    assert "; did you mean sdpa? wanted a backend (naive, fused, sdpa" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_skip_may_name_a_backend_that_the_scenario_lacks() -> None:
    scenario = load("quickstart")
    refuse_unmatched([(scenario, Selection(skip=("torch_mha", "native")))])
    with pytest.raises(BadInput, match="--only 'torch_mha': matches nothing in quickstart"):
        refuse_unmatched([(scenario, Selection(only=("torch_mha",)))])


def test_a_pattern_may_match_in_one_scenario_of_a_suite_only() -> None:
    only = Selection(only=("study-generation",))
    refuse_unmatched([(load("quickstart"), only), (load("generation"), only)])
    with pytest.raises(BadInput, match="matches nothing in quickstart, memory_wall;"):
        refuse_unmatched([(load("quickstart"), only), (load("memory_wall"), only)])
