"""The search alone, on walls that are known."""

from collections.abc import Callable

import pytest

from attnbench.harness.cases.case import MAX_SEQ_LEN
from attnbench.harness.rows.record import Status
from attnbench.harness.rows.values import Trial
from attnbench.harness.run.wall_search import TOLERANCE_RATIO, Search

OK, OOM = Status.OK, Status.OOM
Outcome = Callable[[int, int], tuple[Status, float]]
"""Of a probe at N, the how manieth at this N it is: what comes of it, and how long it takes."""


def searched(
    predicted: int | None,
    outcome: Outcome,
    limit_s: float = 1e9,
    tolerance_ratio: float = TOLERANCE_RATIO,
    *,
    bound: bool = False,
) -> Search:
    search = Search(predicted, lambda n: float(n) ** 2, limit_s, tolerance_ratio, bound=bound)
    while (n := search.next()) is not None:
        status, spent_s = outcome(n, sum(trial.seq_len == n for trial in search.trials))
        search.add(Trial(seq_len=n, status=status, reason="", spent_s=spent_s))
        assert len(search.trials) <= 60
    return search


def wall_at(longest: int) -> Outcome:
    return lambda n, _: (OK if n <= longest else OOM, 1e-9)


@pytest.mark.parametrize("longest", [1, 2, 7, 63, 64, 65, 1000, 4040, 123_457, 90_000_000])
@pytest.mark.parametrize("share", [None, 0.1, 0.97, 0.995, 1.0, 1.005, 1.03, 3.0])
def test_the_interval_holds_the_wall_and_is_narrow_whatever_was_predicted(
    longest: int, share: float | None
) -> None:
    search = searched(None if share is None else int(longest * share), wall_at(longest))
    low, high = search.interval
    assert low <= longest < high
    assert high - low <= max(1, TOLERANCE_RATIO * high)
    assert search.limited_by == "memory"
    assert search.refused is None


@pytest.mark.parametrize("tolerance_ratio", [0.001, 0.02, 0.1])
def test_the_interval_is_as_narrow_as_was_wanted_and_takes_no_more_trials_than_that(
    tolerance_ratio: float,
) -> None:
    search = searched(10_000, wall_at(9_990), tolerance_ratio=tolerance_ratio)
    low, high = search.interval
    assert low <= 9_990 < high
    assert high - low <= tolerance_ratio * high
    narrower = searched(10_000, wall_at(9_990), tolerance_ratio=tolerance_ratio / 8)
    assert len(search.trials) < len(narrower.trials)


@pytest.mark.parametrize(("longest", "saved"), [(7_221, 0), (7_300, 0), (12_900, 5), (40_000, 2)])
def test_beyond_a_bound_the_search_soon_has_a_length_that_fails(longest: int, saved: int) -> None:
    """12,900 is that of sdpa in bf16, with grouped heads, by the formula of fp32."""
    by_steps, by_bound = (
        searched(7_221, wall_at(longest), tolerance_ratio=0.02, bound=bound)
        for bound in (False, True)
    )
    low, high = by_bound.interval
    assert low <= longest < high
    assert high - low <= 0.02 * high
    assert len(by_bound.trials) <= len(by_steps.trials) - saved


def test_both_ends_are_tried_twice() -> None:
    search = searched(5_000, wall_at(5_000))
    tried = [trial.seq_len for trial in search.trials]
    assert [tried.count(end) for end in search.interval if end is not None] == [2, 2]


def test_no_step_is_much_longer_than_what_has_fitted() -> None:
    search = searched(1_000_000, wall_at(1_000_000))
    longest = 0
    for trial in search.trials:
        assert not longest or trial.seq_len <= 8 * longest
        longest = max(longest, trial.seq_len if trial.status == OK else 0)


def test_where_a_second_try_fails_the_interval_widens_instead_of_lying() -> None:
    def fickle(n: int, before: int) -> tuple[Status, float]:
        """Fits up to 4 000 always, up to 4 060 the first time."""
        return (OK if n <= (4060 if before == 0 else 4000) else OOM), 1e-9

    search = searched(4048, fickle)
    low, high = search.interval
    assert low <= 4048 < 4060 < high
    assert all(trial.status == OK for trial in search.trials if trial.seq_len <= low)
    assert all(trial.status == OOM for trial in search.trials if trial.seq_len >= high)
    assert any(trial.status == OOM and trial.seq_len < high for trial in search.trials)
    assert search.limited_by == "memory"


def test_where_a_failed_length_fits_the_second_time_the_interval_widens_upwards() -> None:
    def fickle(n: int, before: int) -> tuple[Status, float]:
        return (OK if n <= (4000 if before == 0 else 4030) else OOM), 1e-9

    search = searched(4000, fickle)
    low, high = search.interval
    both = {trial.seq_len for trial in search.trials if trial.status == OK} & {
        n.seq_len for n in search.trials if n.status == OOM
    }
    assert both
    assert low <= 4000 < max(both) < high


@pytest.mark.parametrize("predicted", [None, 100_000])
def test_a_probe_that_would_take_too_long_is_not_run(predicted: int | None) -> None:
    def slow(n: int, before: int) -> tuple[Status, float]:
        return OK, 60 * (n / 50_000) ** 2

    search = searched(predicted, slow, limit_s=60)
    assert max(trial.spent_s for trial in search.trials) <= 60
    assert search.limited_by == "time"
    low, high = search.interval
    assert 50_000 / 1.3 <= low <= 50_000
    assert high is None


def test_a_probe_that_took_too_long_all_the_same_ends_the_search() -> None:
    search = searched(
        10_000, lambda n, _: (OK, 1e-3) if n < 5_000 else (Status.TIMEOUT, 60.0), limit_s=60
    )
    assert search.limited_by == "time"
    assert search.interval == (4096, None)
    assert search.trials[-1].status == Status.TIMEOUT


def test_what_never_fits_is_refused_down_to_one_token() -> None:
    search = searched(None, wall_at(0))
    assert (search.refused.status, search.refused.seq_len) == (OOM, 1)
    assert search.interval == (None, 1)
    assert search.limited_by is None


def test_where_the_backend_dies_or_refuses_it_is_the_limit_and_not_memory() -> None:
    search = searched(100_000, lambda n, _: (OK if n <= 46_340 else Status.ERROR, 1e-9))
    low, high = search.interval
    assert low <= 46_340 < high
    assert search.limited_by == "backend"


def test_without_an_end_the_longest_length_is_the_limit() -> None:
    search = searched(MAX_SEQ_LEN, lambda n, _: (OK, 0.0))
    assert search.interval == (MAX_SEQ_LEN, None)
    assert search.limited_by == "length"
