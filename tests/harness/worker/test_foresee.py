"""harness/worker/foresee.py: what a forecast learns before a run, and what it leaves alone."""

from typing import Any

import pytest
import torch

from attnbench.harness.cases.case import Case, Wall
from attnbench.harness.scenario.estimate import Foreseen
from attnbench.harness.worker import foresee as module
from attnbench.harness.worker.foresee import foresee
from attnbench.impls.problem import Problem

BUDGET_BYTES = 1 << 20


def case(backend: str, seq_len: int = 64) -> Case:
    return Case(backend=backend, problem=Problem(batch=1, seq_len=seq_len, d_model=32, heads=2))


def found(*planned: Case | Wall) -> dict[str, Any]:
    return foresee(planned, ["fp32"], torch.device("cpu"), BUDGET_BYTES)


def test_peaks_refusals_and_compilers_are_known_before_the_run() -> None:
    cases = [case("fused"), case("sdpa:cudnn"), case("fused", 8192), case("compiled")]
    fused, cudnn, hopeless, compiled = (Foreseen(**one) for one in found(*cases)["cases"].values())
    assert not fused.refused
    assert fused.peak_bytes == 2 * 2 * 64 * 64 * 4
    assert cudnn.refused
    assert hopeless.refused
    assert compiled.compiles


def test_a_walls_longest_n_follows_from_the_formula() -> None:
    wall = Wall(backend="fused", problem=Problem(batch=1, seq_len=1, d_model=32, heads=2))
    longest = found(wall)["walls"][wall.id]
    assert 4 * 4 * longest**2 < BUDGET_BYTES < 4 * 4 * (longest + 20) ** 2


def test_code_of_others_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it does belongs to its own case."""
    monkeypatch.setattr(module.impls, "load", pytest.fail)
    assert found(case("attend@some_module"))["cases"] == {}


def test_a_backend_that_cannot_be_asked_is_no_reason_to_measure_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: str) -> None:
        raise ImportError("no")

    monkeypatch.setattr(module.impls, "load", refuse)
    answer = found(case("fused"))
    assert answer["reason"] == "ImportError: no"
    assert answer["pace"]["flops_per_s"]
