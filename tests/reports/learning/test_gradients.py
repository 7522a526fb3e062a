"""reports/learning/gradients.py: fades and norms over seeds."""

from typing import Any

import pytest

from attnbench.reports.learning.gradients import trained_models
from tests.reports.fake_trainings import gradients


def test_models_have_their_trainings_and_intervals() -> None:
    attention, gru = trained_models([*gradients("attention", 0.0), *gradients("gru")])
    assert (attention.model, len(attention.trainings)) == ("attention", 5)
    assert attention.accuracy.value == 1
    fade = gru.fade("after")
    assert fade.value == pytest.approx(-0.1)
    assert fade.low < fade.value < fade.high < 0
    norms = gru.norms()
    assert [norm.value for norm in norms.values() if norm] == pytest.approx(
        [1.0, 0.9, 0.8], abs=1e-3
    )
    assert norms[1] is not None
    assert norms[1].low < norms[1].value < norms[1].high


def test_a_norm_of_zero_has_no_geometric_mean() -> None:
    (one,) = trained_models(gradients("gru", gradient_norms_after=[1.0, 0.0]))
    assert [norm is None for norm in one.norms().values()] == [False, True]


@pytest.mark.parametrize(
    "broken",
    [
        {"model": None},
        {"accuracy_ratio": "x"},
        {"gradient_norms_before": "x"},
        {"gradient_norms_after": [-1.0]},
        {"study": "gradient_distance"},
    ],
)
def test_what_is_no_such_finding_is_left_out(broken: dict[str, Any]) -> None:
    assert trained_models([one | broken for one in gradients("gru")]) == []
    assert trained_models(None) == []
