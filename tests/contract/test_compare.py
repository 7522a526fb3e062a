"""Which of two cases is faster, and how sure that is: intervals, marks and exit codes."""

import json
import re
from pathlib import Path

import pytest

from tests.contract.conftest import Attnbench
from tests.contract.reading import (
    APPROVED,
    QUICKSTART,
    SPREAD,
    python,
    shown,
    two_backends,
    write_run,
)

FACT = {"answer", "place", "quantity", "value", "low", "high", "mark", "reason"}
LATENCY = """
import sys, attnbench
for row in attnbench.load(sys.argv[1]).itertuples():
    print(row.latency_ms, row.latency_low_ms, row.latency_high_ms)
"""


def told_ratio(text: str) -> tuple[str, float, float, float]:
    """The mark, ratio and interval of the one backend that `show` calls slower."""
    (found,) = re.findall(r"([●◐=–]) ×([\d.]+) \(([\d.]+) to ([\d.]+)\)", text)
    mark, *numbers = found
    ratio, low, high = map(float, numbers)
    return mark, ratio, low, high


def test_the_interval_of_a_latency_covers_the_median_process_in_95_of_100_runs(
    tmp_path: Path,
) -> None:
    times_ms = [10.0, 10.5, 11.0, 11.6, 12.2, 12.9, 13.5, 14.1, 14.9, 15.8]
    run = write_run(tmp_path / "run", [("fused", {}, times_ms), ("sdpa", {}, times_ms[::-1])])
    for line in python(LATENCY, run).splitlines():
        median, low, high = map(float, line.split())
        assert 12.2 <= median <= 12.9
        # the second of ten and the ninth: 97.9 %; the third and the eighth: 89.1 %
        assert 10.5 <= low < 11.0
        assert 14.1 < high <= 14.9


def test_the_interval_of_a_ratio_covers_the_median_process_in_95_of_100_runs(
    tmp_path: Path,
) -> None:
    ratios = sorted(1.5 * 1.1**step for step in SPREAD)
    base_ms = [10.0 * 1.01**step for step in SPREAD]
    other_ms = [base * ratio for base, ratio in zip(base_ms, ratios, strict=True)]
    run = write_run(tmp_path / "run", [("fused", {}, base_ms), ("sdpa", {}, other_ms)])
    mark, ratio, low, high = told_ratio(shown("show", run))
    assert mark == "●"
    assert ratio == pytest.approx(1.5, abs=0.01)
    assert ratios[1] - 0.01 <= low < ratios[2] - 0.01
    assert ratios[7] + 0.01 < high <= ratios[8] + 0.01


@pytest.mark.parametrize(
    ("mark", "ratio", "spread_ratio"),
    [("◐", 1.06, 0.1), ("–", 1.1, 1.5)],
)
def test_a_mark_says_what_the_interval_shows(
    mark: str, ratio: float, spread_ratio: float, tmp_path: Path
) -> None:
    text = shown("show", two_backends(tmp_path / "run", ratio, spread_ratio))
    found, told, low, high = told_ratio(text)
    assert (found, told) == (mark, pytest.approx(ratio, abs=0.01))
    assert low < told < high
    assert low < 1
    assert (low < 0.5 or high > 2) == (mark == "–")


def test_facts_hold_the_numbers_of_the_rows_and_null_for_what_is_missing(tmp_path: Path) -> None:
    ratios = sorted(1.5 * 1.1**step for step in SPREAD)
    base_ms = [10.0 * 1.01**step for step in SPREAD]
    other_ms = [base * ratio for base, ratio in zip(base_ms, ratios, strict=True)]
    timed = [("fused", {}, base_ms), ("sdpa", {}, other_ms)]
    missing = {"peak_bytes": None, "output_bytes": None, "input_bytes": None}
    run = write_run(tmp_path / "run", timed, **missing)
    facts = json.loads(shown("show", run, "--format", "json"))
    assert all(set(fact) == FACT for fact in facts)
    found = {(fact["quantity"], fact["place"].get("backend")): fact for fact in facts}
    ratio = found["time_ratio", "sdpa"]
    assert ratio["mark"] == "confirmed"
    assert ratio["value"] == pytest.approx(1.5, rel=1e-3)
    assert ratios[1] <= ratio["low"] < ratios[2]
    assert ratios[7] < ratio["high"] <= ratios[8]
    assert not [fact for fact in facts if fact["quantity"].endswith("bytes") and fact["value"] == 0]


def test_what_lies_within_5_percent_is_the_same_and_not_faster(
    tmp_path: Path, attnbench: Attnbench
) -> None:
    run = two_backends(tmp_path / "run", 1.0)
    text = shown("show", run)
    assert "The first two are the same" in text
    assert not re.search("[●◐–]", text)
    assert attnbench("compare", run, "--against", "fused", "--gate", "latency: 5%").returncode == 0


def test_noise_among_many_comparisons_is_no_regression(
    tmp_path: Path, attnbench: Attnbench
) -> None:
    """Alone it is one (p = 0.002); of forty comparisons the smallest p is often as small (Holm)."""
    base_ms = [10 * 1.002**step for step in SPREAD]
    mixed = SPREAD[::2] + SPREAD[1::2]
    timed = []
    for number in range(1, 41):
        axes = {"seq_len": 64 * number}
        ratio, spread_ratio = (1.12, 0.07) if number == 1 else (1.0, 0.004)
        times = zip(base_ms, mixed, strict=True)
        slower_ms = [base * ratio * (1 + spread_ratio) ** step for base, step in times]
        timed += [("fused", axes, base_ms), ("sdpa", axes, slower_ms)]
    run = write_run(tmp_path / "run", timed)
    gate = ("compare", run, "--against", "fused", "--gate", "latency: 5%")
    assert attnbench(*gate, "--only", "sdpa-seq_len64-core").returncode == 3
    assert attnbench(*gate).returncode == 0


def test_the_gate_has_an_exit_code_for_each_outcome(tmp_path: Path, attnbench: Attnbench) -> None:
    before, after = APPROVED / "before", APPROVED / "after"
    noisy = two_backends(tmp_path / "noisy", 1.1, 1.5)
    codes = {
        "passed": attnbench("compare", before, before, "--gate", "peak_bytes: 0%").returncode,
        "a case broke": attnbench("compare", before, after, "--gate", "latency: 5%").returncode,
        "noisy": attnbench(
            "compare", noisy, "--against", "fused", "--gate", "latency: 5%"
        ).returncode,
        "other devices": attnbench("compare", before, APPROVED / "gpu").returncode,
        "nothing selected": attnbench("compare", before, after, "--only", "mamba*").returncode,
    }
    assert codes == {
        "passed": 0,
        "a case broke": 3,
        "noisy": 6,
        "other devices": 4,
        "nothing selected": 5,
    }


def test_two_runs_at_two_times_decide_bytes_and_times_beyond_30_percent(
    attnbench: Attnbench,
) -> None:
    done = attnbench("compare", APPROVED / "before", APPROVED / "after", check=True)
    assert "crashed" in done.stdout or "broken" in done.stdout
    assert re.search(r"^Time: faster in 1 of 5 cases; seen here", done.stdout, re.MULTILINE)


def test_a_baseline_names_a_run_to_compare_with_later(tmp_path: Path, attnbench: Attnbench) -> None:
    run = two_backends(tmp_path / "results" / "20261121T093000Z-two-1a2b3c4d", 1.5)
    attnbench("compare", run, "--save", "main", "--runs", "results", check=True)
    saved = json.loads(Path("results/baselines/main.json").read_text())
    assert saved["name"] == "main"
    assert saved["run"].endswith(run.name)
    same = attnbench("compare", "main", run, "--runs", "results", "--gate", "peak_bytes: 0%")
    assert same.returncode == 0
    assert "main" in shown("list", "baselines", "--runs", "results")


def test_backends_of_a_kept_run_are_compared_at_equal_problems() -> None:
    text = shown("compare", QUICKSTART, "--against", "fused", "--format", "md")
    assert "naive" in text
    assert "sdpa" in text
    assert "×" in text
