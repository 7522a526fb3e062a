"""reports/learning/statements.py: gradients over the distance, along paths and at first weights."""

from typing import Any

import pytest

from tests.reports.fake_claims import parts, verdict
from tests.reports.fake_trainings import gradients


def fade(model: str, per_token: float, seq_len: int = 64) -> dict[str, Any]:
    low, high = per_token - 0.002, per_token + 0.002
    bounds = {"fade_per_token_low": low, "fade_per_token_high": high}
    of = {"study": "gradient_distance", "model": model, "seq_len": seq_len}
    return {**of, "fade_per_token": per_token, **bounds}


def radii(fades: dict[float, float]) -> list[dict[str, Any]]:
    return [
        fade(f"rnn, {radius}", change) | {"spectral_radius": radius}
        for radius, change in fades.items()
    ]


def paths(model: str, *steps: int) -> list[dict[str, Any]]:
    """At lengths that double."""
    of = {"study": "gradient_distance", "model": model}
    return [
        {**of, "seq_len": 8 << place, "shortest_path_steps": count}
        for place, count in enumerate(steps)
    ]


UNTRAINED = [fade("attention", 0.0), fade("gru", -0.4)]
CONSTANT, LINEAR = paths("attention", 12, 12, 12), paths("gru", 29, 53, 101)
CONVOLUTIONS = [*paths("convolutions", 17, 29, 53), *paths("dilated convolutions", 11, 14, 17)]
LOST = gradients("gru", 0.0, accuracy_ratio=0.5)  # has not learnt the task
JUDGED: list[tuple[str, list[Any], str]] = [
    ("Q9", UNTRAINED, "supported"),
    ("Q9", [fade("attention", -0.5), fade("gru", -0.5)], "refuted"),
    ("Q9", [fade("attention", 0.0), fade("gru", 0.0)], "refuted"),
    ("Q9", UNTRAINED[:1], "not decided"),  # the other half lacks
    ("Q9", [*UNTRAINED, fade("lstm", 0.0)], "depends"),  # on the cell
    ("Q9", [*UNTRAINED, fade("attention", -0.5, 8)], "supported"),  # the longest decides
    ("Q9", [*UNTRAINED, *gradients("attention", 0.0), *gradients("gru")], "supported"),
    ("Q9", gradients("gru", 0.0), "refuted"),
    ("Q9", [*UNTRAINED, *LOST], "not decided"),
    ("Q9", gradients("dilated convolutions"), "not run"),
    ("Q20", radii({0.5: -0.7, 2.0: 0.7}), "supported"),
    ("Q20", radii({0.5: -0.7, 1.5: -0.1, 2.0: 0.7}), "depends"),  # tanh flattens
    ("Q20", radii({0.5: -0.7, 2.0: -0.1}), "refuted"),
    ("Q20", radii({0.5: 0.1, 2.0: 0.7}), "refuted"),
    ("Q20", radii({0.5: -0.7, 2.0: 0.001}), "not decided"),
    ("Q20", radii({0.5: -0.7}), "not decided"),
    ("Q20", radii({1.0: 0.1}), "not run"),
    ("Q10", [*CONSTANT, *LINEAR, *CONVOLUTIONS], "supported"),
    ("Q10", [*CONSTANT, *paths("gru", 29, 29, 29), *CONVOLUTIONS], "refuted"),
    ("Q10", [*CONSTANT, *CONVOLUTIONS], "not decided"),  # no recurrent layer
    ("Q10", CONSTANT[:2], "not run"),
]


@pytest.mark.parametrize(("name", "found", "wanted"), JUDGED)
def test_gradients_decide_their_claims(name: str, found: list[Any], wanted: str) -> None:
    assert verdict(name, found) == wanted


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
    ],
)
def test_path_lengths_are_counted_over_doubled_lengths(
    model: str, steps: tuple[int, ...], wanted: str
) -> None:
    found = paths(model, *steps)
    assert parts("Q10", found)[model].verdict == wanted
    if wanted == "supported" and model == "dilated convolutions":
        found[-1]["seq_len"] *= 2  # lengths that do not double decide no growth
        assert parts("Q10", found)[model].verdict == "not decided"
