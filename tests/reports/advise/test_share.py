"""Attention's share of a pass, and what a switch is worth in it."""

from pathlib import Path

import pytest

from attnbench.reports.advise.answer import Advice, advise
from attnbench.reports.advise.share import shares
from tests.made_runs import case, row, write_run
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of

ASKED = inquiry(implementations=(EAGER, SDPA), shapes=FakeShapes(times=3.0))
BLOCK_MS, CORE_MS = 9.0, 2.0


def answered(folder: Path, blocks: dict[str, float], *, asked=ASKED) -> Advice:
    """eager takes 8 times as long as sdpa; `blocks`: milliseconds of a block, or its core."""
    runs = [measured(folder / "calls", asked, changes={"hf:eager": {"speed": 8.0}})]
    cases, rows = [], []
    for part, ms in blocks.items():
        planned = case(SDPA.backend, dict(getattr(asked.shapes.whole("prefill", 1024), part)))
        cases.append(planned)
        made = row(planned, block_ms=[[[ms] * 4] * 4] * 4)
        rows.append({**made, "input_order": "model" if part == "core" else None})
    if cases:
        runs.append(write_run(folder / "blocks", cases, rows, name="advise"))
    found = rows_of(asked, runs[0])
    for run in runs[1:]:
        from attnbench.reports.data.read import read_run

        found.add(read_run(run))
    return advise(asked, found)


def test_the_rest_of_a_pass_is_a_block_without_its_attention_so_many_times(tmp_path: Path):
    advice = answered(tmp_path, {"block": BLOCK_MS, "core": CORE_MS})
    (found,) = shares(advice)
    by_name = {one.implementation.name: one.total_ms for one in advice.decisions[0].choices}
    rest = 3.0 * (BLOCK_MS - CORE_MS)
    fast, slow = by_name["sdpa"], by_name["eager"]
    assert found.name == "sdpa"
    assert found.share.value == pytest.approx(fast.value / (fast.value + rest))
    assert found.worth.value == pytest.approx((slow.value + rest) / (fast.value + rest))
    for one in (found.share, found.worth):
        assert one.low < one.value < one.high
    # of one that is no part of the pass's time nothing changes
    assert 1 < found.worth.value < slow.value / fast.value


@pytest.mark.parametrize("blocks", [{}, {"block": BLOCK_MS}, {"block": 1.0, "core": 2.0}])
def test_without_a_block_that_was_timed_nothing_is_said(tmp_path: Path, blocks):
    assert list(shares(answered(tmp_path, blocks))) == []


def test_of_a_model_whose_products_are_not_known_nothing_is_said(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    assert list(shares(answered(tmp_path, {}, asked=asked))) == []
