"""reports/analysis/kernel_limits.py: why the tensor cores cannot be busier, in sentences."""

from attnbench.reports.analysis.kernel_limits import findings, pictured, specialized
from tests.reports.fake_kernels import plan, row
from tests.reports.fake_steps import cycles, forward, in_gluon, planned


def test_each_width_has_its_bound_its_cycles_and_what_would_change_it() -> None:
    narrow, wide, contrast = findings([forward(128), forward(64)])
    assert narrow == (
        "9.0 Hopper, heads 64 wide: the tensor cores are busy for at most 49 % of the time. A step"
        " takes 512 cycles of matrix products and 528 of exponentials, in turns, and registers (191"
        " per thread) leave room for 1 block on an SM; with one more it would be 97 %, limited by"
        " exponentials"
    )
    assert "at most 65 % of the time" in wide
    assert "registers (255 per thread) and shared memory leave room for 1 block" in wide
    assert wide.endswith("with one more it would be 100 %")
    assert contrast.startswith(
        "Each score costs one exponential, but 128 multiply-adds for heads 64 wide and 256"
    )
    assert "103 % of the products' time in the one case and 52 % in the other" in contrast


def test_what_takes_longest_is_named_where_blocks_overlap() -> None:
    small = {"thread_register_count": 120, "block_shared_bytes": 65_536}
    (said,) = findings([forward(64, **small, **cycles(256.0, 272.0, 310.0))])
    assert "at most 83 %" in said
    assert said.endswith("what takes longest, the instructions, 310 in all, sets the pace")
    (said,) = findings([forward(128, **small)])
    assert "at most 100 %" in said
    assert said.endswith("which fit beside the products")


def test_nothing_is_said_without_cycles() -> None:
    assert findings([row(plan("9.0")), row(plan("8.0"))]) == []
    assert findings([]) == []


def test_exponentials_are_not_compared_where_they_weigh_the_same() -> None:
    same = forward(64, **cycles(512.0, 264.0, 300.0))
    assert len(findings([same, forward(128)])) == 2


def test_a_specialized_kernel_is_shown_beside_the_first_one_of_its_width() -> None:
    rows = [forward(64), forward(128), in_gluon(128)]
    shown = pictured(rows)
    assert shown == rows[:2]
    assert specialized(rows, shown) == [in_gluon(128)]
    first = forward(128, plan=planned(128), block_warp_count=12, thread_register_count=168)
    assert specialized([first], pictured([first])) == []
