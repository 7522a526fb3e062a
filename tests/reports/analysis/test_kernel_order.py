"""reports/analysis/kernel_order.py: the order of a backward step, and blocks that share an SM."""

from itertools import pairwise
from typing import Any

import pytest

from attnbench.reports.analysis.kernel_order import backward, order, parts
from attnbench.reports.analysis.kernel_step import step
from tests.reports.fake_steps import cycles, forward, grad, part


def test_products_have_the_names_of_the_formulas_and_code_what_it_can_compute() -> None:
    found = order(grad("grad_q", 64))
    assert found is not None
    assert [(one.products, one.code) for one in found.parts] == [
        ("QKᵀ, dO Vᵀ", "P, dS"),
        ("dS K", ""),
    ]
    found = order(grad("grad_kv", 64))
    assert found is not None
    assert [(one.products, one.code) for one in found.parts] == [
        ("KQᵀ", "P"),
        ("Pᵀ dO, V dOᵀ", "dS"),
        ("dSᵀ Q", ""),
    ]


def test_weights_are_where_the_exponentials_are() -> None:
    """ptxas may compute them behind the products that dS waits for."""
    late = [part(256.0, 64.0, 60.0), part(256.0, 448.0, 340.0), part(256.0, 0.0, 35.0)]
    found = order(grad("grad_q", 64, loop_parts=late))
    assert found is not None
    assert [(one.products, one.code) for one in found.parts] == [
        ("QKᵀ", ""),
        ("dO Vᵀ", "P, dS"),
        ("dS K", ""),
    ]


def test_one_block_takes_as_long_as_the_bound_says() -> None:
    for kernel in ("grad_q", "grad_kv"):
        row = grad(kernel, 64)
        one, found = step(row), order(row)
        assert one is not None
        assert found is not None
        assert (one.blocks, one.limit) == (1, "turns")
        assert found.period == pytest.approx(one.period)
        assert found.busy_ratio == pytest.approx(one.busy_ratio)


@pytest.mark.parametrize("blocks", [2, 3, 4])
@pytest.mark.parametrize("kernel", ["grad_q", "grad_kv"])
def test_blocks_share_units_one_at_a_time_and_never_beat_the_bound(
    kernel: str, blocks: int
) -> None:
    small = {"block_warp_count": 4, "thread_register_count": 120}
    row = grad(kernel, 64, **small, block_shared_bytes=(220 << 10) // blocks)
    one, found = step(row), order(row)
    assert one is not None
    assert found is not None
    assert one.blocks == len(found.teams) == blocks
    assert 0.6 * one.busy_ratio < found.busy_ratio <= one.busy_ratio + 1e-9
    for unit in ("product", "softmax"):
        runs = [run for team in found.teams for run in team if run.unit == unit]
        for before, after in pairwise(sorted(runs, key=lambda run: run.start)):
            assert before.end <= after.start + 1e-6
    for team in found.teams:
        for before, after in pairwise(team):
            assert before.end <= after.start + 1e-6


def test_a_second_block_fills_gaps() -> None:
    alone, beside = (
        order(grad("grad_q", 64, block_warp_count=4, block_shared_bytes=size))
        for size in (120 << 10, 80 << 10)
    )
    assert alone is not None
    assert beside is not None
    assert len(beside.teams) > len(alone.teams)
    assert beside.busy_ratio > alone.busy_ratio


def test_parts_that_hold_no_whole_products_have_no_formula() -> None:
    row = grad("grad_q", 64) | {"loop_parts": [part(500.0, 512.0, 400.0), part(268.0, 0.0, 35.0)]}
    found = order(row)
    assert found is not None
    assert [one.products for one in found.parts] == ["products", "products"]


@pytest.mark.parametrize(
    "given",
    [
        *(None, [], "parts", [1], [{}], [part(0.0, 1.0, 1.0)], [part(1.0, 0.0, 0.0)]),
        *([part(-1.0, 1.0, 1.0)], [part(1.0, 1.0, float("nan"))], [part(1.0, True, 1.0)]),
        [part(1.0, 1.0, 1.0)] * 1000,
    ],
)
def test_a_row_without_an_order_that_can_be_drawn_has_none(given: Any) -> None:
    row = grad("grad_q", 64) | {"loop_parts": given}
    one = step(row)
    assert one is not None
    assert parts(row, one) == ()
    assert order(row) is None


def test_products_beside_other_code_are_in_no_order() -> None:
    assert order(grad("grad_q", 64, loop_overlaps=True)) is None
    assert order(forward(64)) is None


def test_of_each_width_and_kernel_the_first_is_drawn() -> None:
    rows = [grad(kernel, width) for width in (128, 64) for kernel in ("grad_kv", "grad_q")]
    chosen = backward([forward(64), *rows, grad("grad_q", 64, **cycles(1.0, 1.0, 1.0), rank=2)])
    assert [(row["d_k"], row["kernel"], row["rank"]) for row in chosen] == [
        (64, "grad_q", 1), (64, "grad_kv", 1), (128, "grad_q", 1), (128, "grad_kv", 1),
    ]  # fmt: skip
