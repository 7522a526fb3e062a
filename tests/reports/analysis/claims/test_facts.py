"""reports/analysis/claims/facts.py: verdicts from short studies and rows."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis.claims.facts import one_product, softmax_gradient
from attnbench.reports.analysis.claims.ledger import ledger
from tests.reports.fake_claims import layer, ledger_of, timed
from tests.reports.fake_runs import problem
from tests.reports.fake_trainings import gradients


def verdict(name: str, findings: list[Any]) -> str:
    return {one.id: one for one in ledger([], {"studies": findings})}[name].verdict


def bounded(name: str, value: float, reach: float = 0.01) -> dict[str, float]:
    return {name: value, f"{name}_low": value * (1 - reach), f"{name}_high": value * (1 + reach)}


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


def test_no_interval_is_written_as_empty() -> None:
    found = [scale(d_k, 3e-5, 0.1, scaled=scaled) for d_k in (8, 512) for scaled in (False, True)]
    for one in found:
        one.update(softmax_gradient_low=2.9999e-5, softmax_gradient_high=3.0001e-5)
    (numbers, *_) = (part.numbers for part in softmax_gradient(found))
    assert numbers.count("3.00e-05 (within 1.00e-09)") == 4


def test_by_the_query_the_factor_itself_counts() -> None:
    ends = [
        scale(8, 2.0, 0.7, scaled=False),
        scale(512, 0.3, 2.4, scaled=False),
        scale(8, 3.0, 0.1, scaled=True),
        scale(512, 3.0, 0.1, scaled=True),
    ]
    assert verdict("Q8", ends) == "depends"


def fade(model: str, per_token: float, seq_len: int = 64) -> dict[str, Any]:
    low, high = per_token - 0.002, per_token + 0.002
    bounds = {"fade_per_token_low": low, "fade_per_token_high": high}
    of = {"study": "gradient_distance", "model": model, "seq_len": seq_len}
    return {**of, "fade_per_token": per_token, **bounds}


def test_trained_models_decide_too_if_they_learnt_the_task() -> None:
    untrained = [fade("attention", 0.0), fade("gru", -0.4)]
    trained = [*gradients("attention", 0.0), *gradients("gru")]
    assert verdict("Q9", [*untrained, *trained]) == "supported"
    assert verdict("Q9", gradients("gru", 0.0)) == "refuted"
    unlearnt = gradients("gru", 0.0, accuracy_ratio=0.5)
    assert verdict("Q9", [*untrained, *unlearnt]) == "inconclusive"
    assert verdict("Q9", gradients("dilated convolutions")) == "not run"


@pytest.mark.parametrize(
    ("attention", "gru", "wanted"),
    [(0.0, -0.5, "supported"), (-0.5, -0.5, "depends"), (0.0, 0.0, "depends")],
)
def test_gradients_fade_through_the_recurrent_layer_only(
    attention: float, gru: float, wanted: str
) -> None:
    assert verdict("Q9", [fade("attention", attention), fade("gru", gru)]) == wanted


def test_the_longest_sequence_decides() -> None:
    assert verdict("Q9", [fade("attention", 0.0), fade("attention", -0.5, 8)]) == "supported"


@pytest.mark.parametrize(
    ("model", "steps", "wanted"),
    [
        ("attention", (12, 12, 12), "supported"),
        ("attention", (12, 24, 48), "refuted"),
        ("gru", (29, 53, 101), "supported"),
        ("gru", (29, 29, 29), "refuted"),
        ("convolutions", (17, 29, 53), "supported"),
        ("dilated convolutions", (11, 14, 17), "supported"),
        ("dilated convolutions", (11, 23, 47), "refuted"),
        ("gru", (29, 53), "not run"),
    ],
)
def test_path_lengths_are_counted_over_doubled_lengths(
    model: str, steps: tuple[int, ...], wanted: str
) -> None:
    found = [
        {
            "study": "gradient_distance",
            "model": model,
            "seq_len": 8 << place,
            "shortest_path_steps": count,
        }
        for place, count in enumerate(steps)
    ]
    assert verdict("Q10", found) == wanted


def test_a_gru_needs_more_flops_than_attention_below_the_width(tmp_path: Path) -> None:
    short = {"d_model": 512, "scope": "layer"}
    gru = {"exactness": "other"}  # as its rows say
    made = [
        timed("rnn", 5.0, problem(64, 1, **short), **gru),
        timed("sdpa", 1.0, problem(64, 1, **short)),
    ]
    parts = {part.of: part for part in ledger_of(tmp_path / "a", *made)["Q11"].parts}
    assert parts["FLOPs of a GRU"].verdict == "refuted"
    assert parts["time of a GRU against sdpa"].verdict == "refuted"
    long = [
        timed("rnn", 1.0, problem(1024, 1, **short), **gru),
        timed("sdpa", 1.0, problem(1024, 1, **short)),
    ]
    assert ledger_of(tmp_path / "b", *long)["Q11"].verdict == "not run"
    assert ledger_of(tmp_path / "c", timed("sdpa", 1.0, layer(64)))["Q11"].verdict == "not run"


def fact(statement: str, *, holds: bool) -> dict[str, Any]:
    return {
        "study": "attention_facts",
        "statement": statement,
        "holds": holds,
        "holding_ratio": float(holds),
        "worst_error_ratio": 0.1,
        "case_count": 40,
    }


@pytest.mark.parametrize(
    ("claim", "findings", "wanted"),
    [
        ("Q12a", [fact("outputs_in_hull_of_values", holds=True)], "supported"),
        ("Q12b", [fact("outputs_in_hull_of_inputs", holds=False)], "refuted"),
        ("Q12b", [fact("outputs_in_hull_of_values", holds=True)], "not run"),
        ("Q13", [fact("other_weights_fall", holds=True)], "supported"),
        (
            "Q17",
            [
                fact("fill_equals_infinity", holds=True),
                fact("fill_equals_infinity_without_keys", holds=False),
            ],
            "depends",
        ),
        ("Q17", [{**fact("fill_equals_infinity", holds=True), "holds": "yes"}], "not run"),
    ],
)
def test_statements_are_those_of_the_study(claim: str, findings: list[Any], wanted: str) -> None:
    assert verdict(claim, findings) == wanted


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


def product(ratio: float, reach: float = 0.02) -> dict[str, Any]:
    return {
        "study": "joined_projections",
        "batch": 1,
        "seq_len": 16,
        "d_model": 256,
        "time_ratio": ratio,
        "time_low_ratio": ratio * (1 - reach),
        "time_high_ratio": ratio * (1 + reach),
    }


@pytest.mark.parametrize(
    ("ratio", "wanted"), [(2.0, "supported"), (0.5, "refuted"), (1.1, "inconclusive")]
)
def test_one_process_decides_what_processes_cannot_explain(ratio: float, wanted: str) -> None:
    assert verdict("Q15", [product(ratio)]) == wanted


def test_the_interval_shown_is_the_one_that_decides() -> None:
    """1.10 times within 2 %, of one process: it looked decided beside `inconclusive`."""
    (part,) = one_product([product(1.1)])
    assert part.numbers == (
        "three take 1.10 times (0.83 to 1.46) the time of one, which allows for the 30 % that"
        " processes may differ"
    )
