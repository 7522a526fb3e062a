"""What attnbench advise --measure measures: what is missing, together, and no call for minutes."""

import pytest

from attnbench.harness.advise.measure import LONG_CALL_S, scenario_of, too_long, wanted
from attnbench.harness.advise.shapes import ModelShapes, implementations
from attnbench.harness.models.resolve import model_of
from attnbench.harness.scenario.selection import select
from attnbench.impls.problem import Problem
from attnbench.reports.advise.stored import Stored, StoredRows
from tests.reports.fake_advice import inquiry

SHAPES = ModelShapes(model=model_of("llama-3-8b"), batch=1, dtype="bf16", device="cpu")
OWN = implementations(by_transformers=False)


TIMED = Stored(run=None, row={"status": "ok", "block_ms": [[[1.0]]], "device": "cuda"})


def asked(**changes):
    usual = {"shapes": SHAPES, "implementations": OWN, "contexts": (8192,), "most_context": 8192}
    return inquiry(**{**usual, **changes})


def at_once(problem: Problem) -> float:
    return 1e-6 * problem.seq_len


def quadratic(problem: Problem) -> float:
    return LONG_CALL_S * (problem.seq_len / 2048) ** 2


def test_the_context_gets_every_implementation_and_shorter_ones_those_that_do_not_compile():
    found = wanted(asked(), StoredRows(), at_once)
    lengths = {problem.seq_len: list(names) for problem, names in found.items()}
    assert lengths == {
        8192: ["fused", "sdpa", "flex"],
        **{length: ["fused", "sdpa"] for length in (4096, 2048, 1024, 512)},
    }


def test_a_context_whose_call_takes_too_long_is_measured_at_shorter_ones():
    found = wanted(asked(), StoredRows(), quadratic)
    assert max(problem.seq_len for problem in found) == 2048
    assert "flex" in found[max(found, key=lambda problem: problem.seq_len)]
    assert (too_long(asked(), quadratic), too_long(asked(), at_once)) == ([8192], [])


def test_what_has_rows_is_not_measured_again():
    class Known(StoredRows):
        def of(self, problem):
            known = problem["seq_len"] < 8192
            return dict.fromkeys(("fused", "sdpa", "flex"), TIMED) if known else {"sdpa": TIMED}

    found = wanted(asked(), Known(), at_once)
    assert [(problem.seq_len, list(names)) for problem, names in found.items()] == [
        (8192, ["fused", "sdpa", "flex"])
    ]


@pytest.mark.parametrize(
    ("phase", "lacks", "has"),
    [
        ("training", {"saved_bytes": None}, {"saved_bytes": 7}),  # what a layer keeps
        ("decode", {"kv_copies": None}, {"kv_copies": 2}),  # its keys may have been in caches
    ],
)
def test_a_row_that_lacks_what_a_phase_needs_is_measured_again(phase, lacks, has):
    for more, again in ((lacks, True), (has, False)):

        class Known(StoredRows):
            def of(self, problem, more=more):
                row = {**TIMED.row, **problem, "device": "cpu", **more}
                return {"sdpa": Stored(run=None, row=row)}

        found = wanted(asked(phases=(phase,), implementations=OWN[1:2]), Known(), at_once)
        assert bool(found) == again


def test_the_scenario_holds_the_problems_and_its_selection_the_pairs():
    found = wanted(asked(), StoredRows(), at_once)
    scenario, selection = scenario_of(asked(), found, "quick", {"memory_gib": 4.0})
    cases = select(scenario, "cpu", selection).cases
    assert {(case.backend, case.problem) for case in cases} == {
        (name, problem) for problem, names in found.items() for name in names
    }
    assert scenario.limits.memory_gib == 4
    assert (scenario.plan.like, scenario.plan.caches) == ("quick", "cold")
