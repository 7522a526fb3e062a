"""reports/subjects/block.py: from which N on attention is more than half of a block."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.row_groups import Row
from attnbench.reports.elements import Figure
from attnbench.reports.subjects import block
from tests.reports.fake_contrasts import run_of, timed
from tests.reports.fake_runs import problem
from tests.reports.rendering import rows_of, subject_of, tables_of

D = 128
LENGTHS = (64, 128, 512, 1024)


def layer_flops(n: int) -> int:
    return 8 * n * D * D + 4 * n * n * D


def block_run(parent: Path, scopes: tuple[str, ...] = ("layer", "block"), **changes: Any) -> Path:
    """fused: the layer takes as long as its FLOPs, so half of the block at N = 2 d_model. sdpa: the
    scores take no time, so a third at every N.
    """
    made = []
    for n in LENGTHS:
        rest = 16 * n * D * D
        for backend, layer in (("fused", layer_flops(n)), ("sdpa", 8 * n * D * D)):
            for scope in scopes:
                of = problem(n, d_model=D, heads=4, scope=scope)
                ms = (layer + (rest if scope == "block" else 0)) / 1e6
                flops = layer_flops(n) + (rest if scope == "block" else 0)
                peak = 100 * n if scope == "layer" else 200 * n
                made.append(timed(backend, of, ms, work_flops=flops, peak_bytes=peak, **changes))
    return run_of(parent, *made, name="block", contrast=("scope",))


def dominances(rows: list[Row]) -> dict[str, block.Dominance]:
    (group,) = block.with_shares(rows)
    found = block.shares(group, rows)
    return {name: block.dominance(some) for name, some in found.items()}


def test_half_of_the_time_is_between_the_lengths_that_are_certain(tmp_path: Path) -> None:
    found = dominances(rows_of(block_run(tmp_path)))
    fused, sdpa = found["fused"], found["sdpa"]
    assert (fused.less_to, fused.more_from) == (128, 512)
    assert fused.half_at == pytest.approx(226, rel=0.05)
    assert fused.by_flops == pytest.approx(2 * D)
    assert fused.text.startswith("from N = 512 on (less up to 128, half at about ")
    assert (sdpa.more_from, sdpa.text) == (None, "at no N up to 1k")
    assert sdpa.by_flops_text == "N = 256"


def test_shares_are_of_time_flops_and_bytes(tmp_path: Path) -> None:
    rows = rows_of(block_run(tmp_path))
    (group,) = block.with_shares(rows)
    last = block.shares(group, rows)["fused"][-1]
    assert last.time.paired
    assert last.time.value == pytest.approx(40 / 56, rel=0.02)
    assert last.work_flops == pytest.approx(40 / 56)
    assert last.peak_bytes == 0.5
    assert (
        block.longest(block.shares(group, rows))
        .replace("\u00a0", " ")
        .startswith("at N = 1k attention")
    )


def test_without_an_interval_nothing_is_certain(tmp_path: Path) -> None:
    rows = rows_of(block_run(tmp_path, session=None))
    for row in rows:
        row["latency_low_ms"] = row["latency_high_ms"] = None
        row["session"] = None
    fused = dominances(rows)["fused"]
    assert fused.more_from is None
    assert re.fullmatch(r"undecided at N = 1k, where it takes \d\d %", fused.text)


def test_no_length_is_spoken_for_by_another_one(tmp_path: Path) -> None:
    """sdpa takes less than half at every length; one that is disturbed is not among them."""
    run = block_run(tmp_path)
    rows = rows_of(run)

    def disturbed(backend: str, *lengths: int) -> str:
        for row in rows:
            mine = row["backend"] == backend and row["seq_len"] in lengths
            row["contended_blocks"], row["blocks"] = (8 if mine else 0), 8
        return dominances(rows)[backend].text

    assert disturbed("sdpa", 64, 128) == "not at N = 1k, undecided at 64 and 128"
    assert disturbed("fused", 64).startswith("from N = 512 on (less at 128, half at about ")
    last = disturbed("fused", 1024)
    assert last.startswith("only at N = 512; undecided at N = 1k, where it takes 71 % (")
    assert last.endswith(" while other work competed for the cores (less up to 128)")


def test_disturbed_times_decide_nothing(tmp_path: Path) -> None:
    rows = rows_of(block_run(tmp_path))
    for row in rows:
        row["contended_blocks"], row["blocks"] = 8, 8
    fused = dominances(rows)["fused"]
    assert (fused.more_from, fused.less_to) == (None, None)
    assert fused.text.endswith(" while other work competed for the cores")


def test_no_interval_of_a_share_ends_above_the_whole(tmp_path: Path) -> None:
    rows = rows_of(block_run(tmp_path))
    (group,) = block.with_shares(rows)
    time = replace(block.shares(group, rows)["fused"][-1].time, low=0.2, high=900.0)
    assert block.upper(time) == 1
    assert block.percent(time) == f"{100 * time.value:.0f} % (20 % to 100 %)"


def test_flops_that_grow_in_another_way_have_no_crossing(tmp_path: Path) -> None:
    rows = rows_of(block_run(tmp_path))
    for row in rows:
        if row["seq_len"] == 128:
            row["work_flops"] = int(1.5 * row["work_flops"])
    assert dominances(rows)["fused"].by_flops is None


@pytest.mark.parametrize("scopes", [("layer",), ("block",)])
def test_a_run_without_pairs_has_nothing_to_say(tmp_path: Path, scopes: tuple[str, ...]) -> None:
    told = subject_of(block, block_run(tmp_path, scopes))
    assert (told.card, told.blocks, bool(told.lacking)) == (None, (), True)


def test_the_card_draws_the_shares_and_the_table_has_every_number(tmp_path: Path) -> None:
    told = subject_of(block, block_run(tmp_path))
    assert told.card is not None
    figure = told.card.picture
    assert isinstance(figure, Figure)
    (panel,) = figure.panels
    assert [one.backend for one in panel.series] == ["fused", "sdpa", "by FLOPs"]
    assert panel.series[2].y == pytest.approx(
        [layer_flops(n) / (layer_flops(n) + 16 * n * D * D) for n in LENGTHS]
    )
    assert panel.line == (0.5, "half")
    assert figure.table.rows[1] == ("all", "sdpa", "at no N up to 1k", "N = 256")
    (table,) = tables_of(list(told.blocks))
    assert re.match(r"3\d % \(3\d % to 3\d %\)", table.rows[0][5])
    assert len(table.rows) == 2 * len(LENGTHS)
