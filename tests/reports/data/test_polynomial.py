"""reports/data/polynomial.py: exact solutions, checked at the other lengths."""

from attnbench.reports.data.polynomial import through

LENGTHS = tuple(2**power for power in range(7, 14))


def test_bytes_are_solved_without_rounding_and_checked_at_the_other_lengths() -> None:
    found = through({n: 64 * n * n + 4096 * n + 16 for n in (1000, *LENGTHS)})
    assert (found.quadratic, found.linear, found.constant) == (64, 4096, 16)
    assert found.exact
    assert found.off == ()
    assert found.holds_from == 128
    assert found.at(10_000) == 64 * 10**8 + 4096 * 10**4 + 16


def test_lengths_at_which_another_moment_is_the_peak_are_listed() -> None:
    found = through({n: max(8 * n * n, 4096 * n) for n in LENGTHS})
    assert found.exact
    assert found.holds_from == 512
    assert [n for n, _ in found.off] == [128, 256]
    assert found.off[0][1] == 4096 * 128 - 8 * 128 * 128


def test_three_lengths_solve_and_prove_nothing_and_two_do_not_even_solve() -> None:
    three = through({n: n * n for n in LENGTHS[:3]})
    assert not three.exact
    assert through({n: n * n for n in LENGTHS[:2]}) is None


def test_a_curve_that_is_no_polynomial_is_not_exact() -> None:
    found = through({n: int(n**1.5) for n in LENGTHS})
    assert not found.exact
