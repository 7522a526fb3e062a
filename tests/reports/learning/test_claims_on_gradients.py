"""reports/learning/statements.py: gradients over the distance, along paths and at first weights."""

from typing import Any

import pytest

from tests.reports.fake_claims import verdict
from tests.reports.fake_trainings import gradients


def fade(model: str, per_token: float, seq_len: int = 64) -> dict[str, Any]:
    low, high = per_token - 0.002, per_token + 0.002
    bounds = {"fade_per_token_low": low, "fade_per_token_high": high}
    of = {"study": "gradient_distance", "model": model, "seq_len": seq_len}
    return {**of, "fade_per_token": per_token, **bounds}


UNTRAINED = [fade("attention", 0.0), fade("gru", -0.4)]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (UNTRAINED, "supported"),
        ([fade("attention", -0.5), fade("gru", -0.5)], "refuted"),
        ([fade("attention", 0.0), fade("gru", 0.0)], "refuted"),
        (UNTRAINED[:1], "not decided"),  # the other half lacks
        ([*UNTRAINED, fade("lstm", 0.0)], "depends"),  # on the cell
        ([*UNTRAINED, fade("attention", -0.5, 8)], "supported"),  # the longest decides
        ([*UNTRAINED, *gradients("attention", 0.0), *gradients("gru")], "supported"),
        (gradients("gru", 0.0), "refuted"),
        ([*UNTRAINED, *gradients("gru", 0.0, accuracy_ratio=0.5)], "not decided"),  # not learnt
        (gradients("dilated convolutions"), "not run"),
    ],
)
def test_gradients_fade_through_the_recurrent_layer_only(found: list[Any], wanted: str) -> None:
    assert verdict("Q9", found) == wanted


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({0.5: -0.7, 2.0: 0.7}, "supported"),
        ({0.5: -0.7, 1.5: -0.1, 2.0: 0.7}, "depends"),  # tanh flattens
        ({0.5: -0.7, 2.0: -0.1}, "refuted"),
        ({0.5: 0.1, 2.0: 0.7}, "refuted"),
        ({0.5: -0.7, 2.0: 0.001}, "not decided"),
        ({0.5: -0.7}, "not decided"),
        ({1.0: 0.1}, "not run"),
    ],
)
def test_gradients_fade_below_a_spectral_radius_of_1_and_grow_above(
    found: dict[float, float], wanted: str
) -> None:
    every = [
        fade(f"rnn, {radius}", change) | {"spectral_radius": radius}
        for radius, change in found.items()
    ]
    assert verdict("Q20", every) == wanted


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
        ("dilated convolutions", (11, 14, 17, 17), "supported"),  # layers are whole
        ("dilated convolutions", (11, 14, 14, 17, 17), "supported"),
        ("dilated convolutions", (11, 19, 21, 21), "refuted"),  # it falls, by no constant
        ("dilated convolutions", (11, 14, 17, 17, 17), "refuted"),
        ("dilated convolutions", (17, 14, 11), "refuted"),
        ("dilated convolutions", (11, 19, 21), "refuted"),
        ("dilated convolutions", (11, 14, 14), "not decided"),  # a rounded constant, or an end
        ("gru", (29, 53), "not run"),
    ],
)
def test_path_lengths_are_counted_over_doubled_lengths(
    model: str, steps: tuple[int, ...], wanted: str
) -> None:
    of = {"study": "gradient_distance", "model": model}
    found = [
        {**of, "seq_len": 8 << place, "shortest_path_steps": count}
        for place, count in enumerate(steps)
    ]
    assert verdict("Q10", found) == wanted
    if wanted == "supported" and model == "dilated convolutions":
        found[-1]["seq_len"] *= 2  # lengths that do not double decide no growth
        assert verdict("Q10", found) == "not decided"
