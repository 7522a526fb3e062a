"""reports/sections/recurrence.py and its analysis: steps, FLOPs and crossovers."""

from pathlib import Path

import pytest

from attnbench.reports.analysis import recurrence
from attnbench.reports.sections import recurrence as recurrence_section
from tests.reports.fake_inexact import LENGTHS, inexact, layer, made
from tests.reports.fake_runs import write_run
from tests.reports.rendering import blocks_of, figures_of, rows_of, tables_of


def test_a_recurrent_layer_does_as_many_flops_as_attention_where_n_is_d(tmp_path: Path) -> None:
    (group,) = recurrence.recurring(rows_of(inexact(tmp_path)))
    assert recurrence.even_by_flops(group) == 512
    assert (
        recurrence.finding(group)
        == "rnn is slower than fused and sdpa at every N from 256 to 4k; it does fewer FLOPs above"
        " N\u00a0=\u00a0512"
    )
    first = recurrence.steps(group)[0]
    assert first.step_ms == pytest.approx(50e-3, rel=0.02)
    assert first.flops_per_s == pytest.approx(12 * 512**2 / 50e-6, rel=0.02)
    assert first.attention is not None
    assert first.attention["backend"] == "sdpa"


def test_a_tie_is_not_called_slower(tmp_path: Path) -> None:
    """With the same times at N = 256, and slower at every other."""
    rows = rows_of(inexact(tmp_path, backends=("sdpa", "rnn")))
    short = {row["backend"]: row for row in rows if row["seq_len"] == 256}
    short["rnn"]["block_ms"] = short["sdpa"]["block_ms"]
    (group,) = recurrence.recurring(rows)
    text = recurrence.finding(group).replace("\u00a0", " ")
    assert text.startswith("rnn is not clearly faster than sdpa up to N = 4k;")


def test_the_section_on_recurrence_has_a_figure_for_each_width(tmp_path: Path) -> None:
    pairs = [
        made(backend, layer(n, d))
        for d in (256, 512)
        for n in LENGTHS
        for backend in ("fused", "rnn")
    ]
    run = write_run(tmp_path, [planned for planned, _ in pairs], [one for _, one in pairs])
    blocks = blocks_of(recurrence_section, run)
    figures = figures_of(blocks)
    assert [figure.title.partition(":")[0] for figure in figures] == [
        "For d_model\u00a0=\u00a0256",
        "For d_model\u00a0=\u00a0512",
    ]
    latency, per_token = figures[0].panels
    mine, steps = (
        next(series for series in panel.series if series.backend == "rnn")
        for panel in (latency, per_token)
    )
    assert steps.y == pytest.approx([(y or 0) / n for y, n in zip(mine.y, mine.x, strict=True)])
    (crossings,) = tables_of(blocks)
    assert [line[-1] for line in crossings.rows] == ["N = 256", "N = 512"]


def test_an_unknown_cell_has_no_flops(tmp_path: Path) -> None:
    planned, one = made("rnn", layer(256), configuration={"cell": "QRNN"})
    (found,) = rows_of(write_run(tmp_path, [planned], [one]))
    assert recurrence.flops(found) is None
