"""reports/sections/trained_heads.py: the answers, in HTML, Markdown and the terminal."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Figure, Maps
from attnbench.reports.sections import trained_heads
from tests.reports.fake_trainings import CLEAR, training, trainings, with_trainings
from tests.reports.rendering import blocks_of, markdown_of, page_of, sentences


def test_each_task_has_its_answer_with_an_interval(tmp_path: Path) -> None:
    first, second, *_ = sentences(blocks_of(trained_heads, with_trainings(tmp_path, CLEAR)))
    assert first == (
        "recall (which value a key was given with): 1 head is enough, 97.8 % (96.6 to 99.0) of the"
        " answers are right."
    )
    assert second == (
        "six_relations (which bits stood 1, 2, 4, 7, 11 and 16 places before, all at once): 8 heads"
        " are enough, 98.6 % (97.8 to 99.4) of the answers are right, 5.0 % with 1. 1 and 2 are"
        " worse."
    )


def test_it_says_on_what_it_holds(tmp_path: Path) -> None:
    texts = " ".join(sentences(blocks_of(trained_heads, with_trainings(tmp_path, CLEAR))))
    assert "small models and artificial tasks" in texts
    assert "nothing follows for large models" in texts


def test_cost_stands_beside_quality(tmp_path: Path) -> None:
    blocks = blocks_of(trained_heads, with_trainings(tmp_path, CLEAR))
    quality, front, *_ = [one for one in blocks if isinstance(one, Figure)]
    rows = {row[0]: row for row in quality.table.rows}
    assert rows["six_relations, 8"][1:] == (
        "98.6 % (97.8 to 99.4)",
        "0.028 (0.013 to 0.043)",
        "the best",
        "8.00 ms (8.00 ms to 8.00 ms)",
        "9 MiB",
        "yes",
    )
    assert rows["six_relations, 1"][3] == "worse"
    panel = front.panels[1]
    assert panel.series[0].x == pytest.approx((1, 2, 8))
    assert panel.title == "six_relations: worth it 1, 2 and 8"
    assert front.panels[0].title == "recall: worth it 1"


def test_bounds_of_shares_stay_between_nothing_and_all(tmp_path: Path) -> None:
    shaky = trainings({"recall": {1: [1.0, 0.6, 1.0, 1.0, 1.0], 2: [1.0] * 5}})
    blocks = blocks_of(trained_heads, with_trainings(tmp_path, shaky))
    figure = next(one for one in blocks if isinstance(one, Figure))
    for series in (one for panel in figure.panels for one in panel.series):
        assert all(0 <= bound <= 1 for bound in (*series.low, *series.high) if bound is not None)


@pytest.mark.long
def test_maps_stand_before_and_after_and_say_where_heads_look(tmp_path: Path) -> None:
    run = with_trainings(tmp_path, CLEAR)
    recall, six = [one for one in blocks_of(trained_heads, run) if isinstance(one, Maps)]
    assert [one.label for one in recall.maps] == [
        "head 1, before",
        "head 2, before",
        "head 1, after",
        "head 2, after",
    ]
    assert recall.title == (
        "recall, 2 heads: after training head 1 looks 1 place back and head 2 looks 2 places back"
    )
    assert recall.table.rows[0] == (
        "head 1",
        "1.00",
        "1 place back: 100 %",
        *recall.table.rows[0][3:],
    )
    assert len(six.maps) == 16
    assert "a b c d e f" in six.caption
    page = page_of(run)
    assert "What heads learn" in page
    assert page == page_of(run)
    assert "head 1 looks 1 place back" in markdown_of(run)


def noise_of(blocks: list[Any]) -> Figure:
    return next(
        one
        for one in blocks
        if isinstance(one, Figure) and "points lost, mean" in one.table.columns
    )


def test_answers_under_noise_are_drawn_over_its_level_by_number_of_heads(tmp_path: Path) -> None:
    noise = noise_of(blocks_of(trained_heads, with_trainings(tmp_path, CLEAR)))
    assert [panel.title for panel in noise.panels] == ["recall", "six_relations"]
    one, *_, eight = noise.panels[0].series
    assert (one.backend, eight.backend) == ("1 head", "8 heads")
    assert one.x == (0.0, 0.25, 0.5, 1.0)
    assert one.y == pytest.approx([0.978 * share for share in (1, 0.75, 0.5, 0.25)])
    assert all(low < y < high for low, y, high in zip(one.low, one.y, one.high, strict=True))
    assert noise.names == ("1 head", "2 heads", "8 heads")
    row = next(row for row in noise.table.rows if row[0] == "recall, 1")
    assert noise.table.columns[2:5] == ("noise 0.25", "noise 0.5", "noise 1")
    assert row[3].startswith("48.9 % (")
    assert row[5].startswith("48.9 (")  # half of the answers, mean of three levels
    assert noise.title == (
        "Right answers with noise of 1 standard deviation: 1 head, 1.2 % (six_relations) to"
        " 24.4 % (recall); 8 heads, 24.4 % (recall) to 24.6 % (six_relations)"
    )


def test_rows_with_one_level_of_noise_are_drawn_too(tmp_path: Path) -> None:
    old = [
        {name: value for name, value in one.items() if not name.startswith("noise_levels")}
        for one in CLEAR
    ]
    noise = noise_of(blocks_of(trained_heads, with_trainings(tmp_path, old)))
    assert noise.panels[0].series[0].x == (0.0, 0.5)


def test_many_numbers_of_heads_are_drawn_spread_out_with_what_the_title_compares(
    tmp_path: Path,
) -> None:
    counts = (1, 2, 4, 8, 16, 32, 64)
    many = trainings({"copy": {heads: [0.9, 0.8, 0.9, 0.8, 0.9] for heads in counts}})
    noise = noise_of(blocks_of(trained_heads, with_trainings(tmp_path, many)))
    assert noise.names == ("1 head", "8 heads", "16 heads", "64 heads")
    assert len(noise.table.rows) == len(counts)


def test_pruning_has_a_line_per_order_and_a_table(tmp_path: Path) -> None:
    blocks = blocks_of(trained_heads, with_trainings(tmp_path, CLEAR))
    pruned = next(
        one for one in blocks if isinstance(one, Figure) and "heads that are left" in one.title
    )
    assert [panel.title for panel in pruned.panels] == ["recall", "six_relations"]
    by_gradient, by_trial = pruned.panels[0].series
    assert by_gradient.x == tuple(map(float, range(1, 9)))
    assert by_trial.x == (4.0, 8.0)
    assert pruned.names == (by_gradient.backend, by_trial.backend)
    cells = {row[0]: row for row in pruned.table.rows}
    assert cells["recall, 8"][2].startswith("0.35")
    assert cells["recall, 8"][4].startswith("0.50")
    assert cells["recall, 8"][5].startswith("0.15")
    assert cells["recall, 1"][4] == ""


def test_the_loss_stands_beside_what_smaller_layers_take(tmp_path: Path) -> None:
    blocks = blocks_of(trained_heads, with_trainings(tmp_path, CLEAR))
    figure = next(
        one for one in blocks if isinstance(one, Figure) and one.title.startswith("Layers from")
    )
    assert figure.title == (
        "Layers from which the weights of half of the heads are gone take 70 % of the time and 50 %"
        " of the memory"
    )
    assert [panel.title for panel in figure.panels] == ["recall", "six_relations"]
    assert figure.panels[0].series[0].x == tuple(map(float, range(1, 9)))
    cells = {row[0]: row for row in figure.table.rows}
    assert cells["recall, 4"][1].startswith("0.50")
    assert cells["recall, 4"][2:] == ("350 μs", "0.70 (0.65 to 0.75)", "4 MiB", "32.2 KiB")
    assert cells["recall, 0"][4] == "0 B"


@pytest.mark.parametrize(
    "broken",
    [
        {"pruned_layer_ms": None},
        {"pruned_layer_time_ratio": [1.0, "<b>"]},
        {"pruned_layer_peak_bytes": [1]},
        {"pruned_layer_weight_bytes": [0] * 9},
    ],
)
def test_costs_that_are_not_whole_are_left_out(tmp_path: Path, broken: dict[str, Any]) -> None:
    findings = [one | broken for one in CLEAR]
    blocks = blocks_of(trained_heads, with_trainings(tmp_path, findings))
    titles = [one.title for one in blocks if isinstance(one, Figure)]
    assert not [title for title in titles if title.startswith("Layers from")]


def test_peaks_that_nobody_counted_are_empty(tmp_path: Path) -> None:
    findings = [one | {"pruned_layer_peak_bytes": [None] * 9} for one in CLEAR]
    blocks = blocks_of(trained_heads, with_trainings(tmp_path, findings))
    figure = next(
        one for one in blocks if isinstance(one, Figure) and one.title.startswith("Layers from")
    )
    assert figure.title.endswith("70 % of the time")
    assert {row[4] for row in figure.table.rows} == {""}


def test_a_run_without_trainings_says_how_to_get_them(tmp_path: Path) -> None:
    (only,) = sentences(blocks_of(trained_heads, with_trainings(tmp_path, [])))
    assert "studies: [trained_heads]" in only


def test_a_part_that_failed_has_its_reason(tmp_path: Path) -> None:
    run = with_trainings(tmp_path, [], status="timeout", reason="no answer within 60 s")
    (only,) = sentences(blocks_of(trained_heads, run))
    assert only == "study-trained_heads-recall-heads1 found nothing: no answer within 60 s."


@pytest.mark.long
@pytest.mark.parametrize(
    "broken",
    [
        {"step_ms": None, "step_peak_bytes": None},
        {"single_loss_nats": None, "pruned_loss_nats": None, "greedy_loss_nats": None},
        {"entropy_nats_after": "none", "distance_tokens_before": [["<b>"]]},
        {"sentence": 3, "noise_levels_ratio": None, "noise_levels_accuracy_ratio": ["x"]},
        {"greedy_removed_heads": [0, "x"], "pruned_removed_heads": [3, 2, 1]},
        {"task": "<script>alert(1)</script>"},
        {"depth": None, "tokens": None, "d_model": None},
    ],
)
def test_what_is_missing_is_left_out(tmp_path: Path, broken: dict[str, Any]) -> None:
    findings = [training("recall", h, s, 0.9) | broken for h in (1, 2) for s in range(5)]
    page = page_of(with_trainings(tmp_path, findings))
    assert "What heads learn" in page
    assert "<script>alert" not in page
