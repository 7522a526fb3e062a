"""What one case does to the others in the process ends it, and it is told."""

from types import SimpleNamespace

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.measure import left_running
from attnbench.harness.worker.phases import PhaseRunner
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import worker_config

PROBLEM = Problem(batch=1, seq_len=8, d_model=8, heads=1)
CHEAT, OTHER = (Case(backend=name, problem=PROBLEM) for name in ("cheat", "other"))


@pytest.fixture
def phases(monkeypatch):
    """`said`: the events."""
    monkeypatch.setattr(left_running, "THREAD_REST_S", 0.2)  # before it notes what is ours
    said = []
    found = PhaseRunner(worker_config(), said.append, forget=lambda case_id: None)
    found.said = said
    yield found
    found.budget.lift()  # the limit of this process's address space


def ended(phases):
    return [(one["case"], one["reason"]) for one in phases.said if one["event"] == "ended"]


def test_what_is_compiled_ahead_counts_as_compiling_and_nothing_does_where_nothing_is(phases):
    ahead = SimpleNamespace(compiles_ahead=True, compile_ahead=lambda *_: None)
    found = phases.compiled_ahead(OTHER, ahead)
    assert (spent_ms := found.ms) > 0
    found.add(None)  # of a set-up that compiles nothing more
    assert found.ms == spent_ms
    found.add(500.0)
    assert found.ms == spent_ms + 500
    assert phases.compiled_ahead(OTHER, SimpleNamespace(compiles_ahead=False)).ms is None
    broken = SimpleNamespace(compiles_ahead=True, compile_ahead=lambda *_: 1 / 0)
    assert phases.compiled_ahead(CHEAT, broken) is None
    assert [case for case, _ in ended(phases)] == [CHEAT.id]
