"""reports/learning/subjects/trained_projections.py: against exact attention, seed by seed."""

from typing import Any

import pytest

from attnbench.reports.learning.subjects.trained_projections import trained_attentions
from tests.reports.fake_trainings import projected


def of(findings: list[dict[str, Any]]) -> dict[str, Any]:
    found = trained_attentions(findings)
    return {one.attention: one for some in found.values() for one in some}


def test_attentions_are_compared_with_the_exact_one_seed_by_seed() -> None:
    """The seeds differ by more than the attentions do, and the difference is the same for each."""
    found = of(projected("exact", 0.9, 4.0) + projected("trained", 0.8, 2.0))
    less, ratio = found["trained"].less, found["trained"].time_ratio
    assert (less.low, less.high) == (pytest.approx(10), pytest.approx(10))
    assert ratio.value == pytest.approx(0.5)
    assert found["exact"].less is None
    assert found["exact"].time_ratio is None
    assert found["exact"].accuracy.value == pytest.approx(0.9)


def test_they_come_in_a_fixed_order_and_unknown_ones_last() -> None:
    names = ["newer", "random", "exact", "trained"]
    made = [one for name in names for one in projected(name, 0.5, 1.0)]
    assert list(of(made)) == ["exact", "trained", "random", "newer"]
    assert of(made)["newer"].name == "newer"


def test_without_exact_attention_nothing_is_compared() -> None:
    found = of(projected("pooled", 0.5, 1.0))
    assert found["pooled"].less is None
    assert found["pooled"].peak_bytes == 1 << 20


@pytest.mark.parametrize(
    "broken",
    [
        {"task": 3},
        {"attention": None},
        {"train_seed": "0"},
        {"accuracy_ratio": 1.5},
        {"step_ms": []},
        {"step_ms": [0.0]},
        {"study": "trained_heads"},
    ],
)
def test_findings_that_lack_something_are_left_out(broken: dict[str, Any]) -> None:
    assert of([one | broken for one in projected("exact", 0.9, 1.0)]) == {}
    assert trained_attentions("none") == {}
