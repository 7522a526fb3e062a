"""reports/claims/studies.py: scales of scores and of first weights."""

from typing import Any

from tests.reports.fake_claims import (
    bounded,
    verdict,
)


def scale(d_k: int, by_score: float, by_query: float, *, scaled: bool) -> dict[str, Any]:
    return {
        "study": "score_scale",
        "d_k": d_k,
        "scaled": scaled,
        **bounded("softmax_gradient", by_score),
        **bounded("query_gradient_norm", by_query),
    }


def test_the_factor_keeps_a_derivative_alive_that_falls_without_it() -> None:
    ends = [
        scale(8, 2.0, 2.0, scaled=False),
        scale(512, 0.3, 0.3, scaled=False),
        scale(8, 3.0, 3.0, scaled=True),
        scale(512, 3.0, 3.0, scaled=True),
    ]
    assert verdict("Q8", ends) == "supported"
    falling = [*ends[:3], scale(512, 1.0, 1.0, scaled=True)]
    assert verdict("Q8", falling) == "refuted"
    assert verdict("Q8", [*ends[:1], *ends[2:]]) == "not run"


def test_by_the_query_the_factor_itself_counts() -> None:
    ends = [
        scale(8, 2.0, 0.7, scaled=False),
        scale(512, 0.3, 2.4, scaled=False),
        scale(8, 3.0, 0.1, scaled=True),
        scale(512, 3.0, 0.1, scaled=True),
    ]
    assert verdict("Q8", ends) == "depends"


def initial(rule: str, output: float, gradient: float) -> dict[str, Any]:
    return {
        "study": "initialisation",
        "rule": rule,
        **bounded("output_variance", output),
        **bounded("gradient_variance", gradient),
    }


def test_xavier_must_be_well_scaled_and_the_others_not() -> None:
    others = [initial("normal_1", 1e5, 1e6), initial("normal_0.01", 1e-5, 1e-5)]
    assert verdict("Q14", [initial("xavier", 0.2, 0.3), *others]) == "supported"
    assert verdict("Q14", [initial("xavier", 0.001, 0.001), *others]) == "depends"
    assert verdict("Q14", [initial("normal_1", 1.0, 1.0)]) == "refuted"
