"""reports/sections/gradients.py: the norm over the distance, model by model."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Figure
from attnbench.reports.sections import gradients
from tests.reports.fake_trainings import gradients as gradients_of
from tests.reports.fake_trainings import with_trainings
from tests.reports.rendering import blocks_of, page_of, sentences


def finding(model: str, fade: float, n: int = 8, **other: Any) -> dict[str, Any]:
    return {
        "model": model,
        "seq_len": n,
        "reach_tokens": n - 1,
        "shortest_path_steps": 12,
        "longest_path_steps": 19,
        "gradient_norms": [2.0**-place for place in range(n)],
        "fade_per_token": fade,
        "fade_per_token_low": fade - 0.01,
        "fade_per_token_high": fade + 0.01,
        **other,
    }


def run_of(parent: Path, *findings: dict[str, Any]) -> Path:
    return with_trainings(parent, list(findings), study="gradient_distance", part=None)


@pytest.mark.long
def test_the_title_names_what_fades_and_panels_how_fast(tmp_path: Path) -> None:
    run = run_of(tmp_path, finding("attention", 0.0), finding("gru", -0.3, 4), finding("gru", -0.5))
    (figure,) = [one for one in blocks_of(gradients, run) if isinstance(one, Figure)]
    assert figure.title == "The gradient fades with the distance through gru"
    assert [panel.title for panel in figure.panels] == [
        "attention",
        "gru: × 0.61 per token",
    ]
    assert len(figure.panels[1].series[0].x) == 8, "the longest"
    assert figure.table.rows[2] == ("gru, 8", "-0.50 (-0.51 to -0.49)", "12", "19", "7")
    assert "Gradients over distance" in page_of(run)


def test_gradients_that_are_zero_are_gaps(tmp_path: Path) -> None:
    run = run_of(tmp_path, finding("convolutions", 0.0, 4, gradient_norms=[1.0, 0.5, 0.0, 0.0]))
    (figure,) = [one for one in blocks_of(gradients, run) if isinstance(one, Figure)]
    assert figure.panels[0].series[0].y == (1.0, 0.5, None, None)
    assert figure.title == "No model's gradient fades with the distance"


@pytest.mark.parametrize(
    "broken",
    [
        {"gradient_norms": []},
        {"gradient_norms": [1.0, "x"]},
        {"gradient_norms": [-1.0]},
        {"model": 3},
        {"seq_len": None},
    ],
)
def test_what_is_no_such_finding_is_not_drawn(tmp_path: Path, broken: dict[str, Any]) -> None:
    (only,) = sentences(blocks_of(gradients, run_of(tmp_path, finding("gru", -0.5) | broken)))
    assert "No gradients." in only


@pytest.mark.long
def test_trained_models_have_a_figure_of_their_own(tmp_path: Path) -> None:
    found = [*gradients_of("attention", 0.0), *gradients_of("gru")]
    run = with_trainings(tmp_path, found, study="trained_gradients", part={"model": "gru"})
    (figure,) = [one for one in blocks_of(gradients, run) if isinstance(one, Figure)]
    assert figure.title == (
        "After training the gradient by the asked token fades with the distance in gru"
    )
    assert [panel.title for panel in figure.panels] == ["attention", "gru: × 0.90 per token"]
    assert figure.panels[1].series[0].x == (1.0, 2.0, 3.0)
    gru = {row[0]: row for row in figure.table.rows}["gru"]
    assert gru[1].startswith("100.0 %")
    assert gru[2].startswith("-0.70")
    assert gru[3].startswith("-0.10 (")
    assert "After training" in page_of(run)


def test_a_model_that_keeps_its_gradient_is_said_to_do_so(tmp_path: Path) -> None:
    run = with_trainings(
        tmp_path, gradients_of("attention", 0.0), study="trained_gradients", part=None
    )
    (figure,) = [one for one in blocks_of(gradients, run) if isinstance(one, Figure)]
    assert figure.title.startswith("After training no model's gradient")
