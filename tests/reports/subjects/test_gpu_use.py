"""reports/subjects/utilization.py: the card on how busy a GPU was, with its counters or not."""

from pathlib import Path
from typing import Any

from attnbench.reports.elements import Bars
from attnbench.reports.pages import terminal
from attnbench.reports.pages.report import open_report
from attnbench.reports.subjects import utilization
from tests.made_runs import with_windows
from tests.reports.rendering import card_of, subject_of

COMMAND = "--measure latency,memory,utilization,energy"
PRE_HOPPER = "this GPU has no such counters; they came with Hopper"
ACTIVE = {"naive": 0.2, "sdpa": 0.9}


def window(backend: str, **changes: Any) -> dict[str, Any]:
    """One second of calls of 10 ms."""
    counters = {"sm_active_ratio": ACTIVE[backend], "any_tensor_ratio": 0.5}
    counters |= {"dram_bandwidth_ratio": 0.25, "kernel_busy_ratio": 1.0, "energy_j": 300.0}
    start = {"way": "eager", "process": 0, "window_s": 1.0, "calls": 100}
    return {**start, **counters, **changes}


def run_on_gpu(parent: Path, of_window: Any = None, **changes: Any) -> Path:
    windows = {name: [window(name, **(of_window or {}))] for name in ACTIVE}
    return with_windows(parent, windows, **changes)


def briefly(run: Path) -> list[str]:
    return [str(one) for one in terminal.render_briefly(open_report([run]))]


def cells(bars: Bars) -> dict[str, dict[str, str]]:
    columns = bars.table.columns
    return {line[0]: dict(zip(columns[1:], line[1:], strict=True)) for line in bars.table.texts}


def test_what_is_lacking_is_a_gap_only_if_a_graph_is_that_much_faster(tmp_path: Path) -> None:
    found = {}
    for name, graph_ms in (("gaps", 2.0), ("few", 9.9), ("unknown", None)):
        graph = None if graph_ms is None else [[[graph_ms] * 3] * 3]
        card = card_of(utilization, run_on_gpu(tmp_path / name, graph_block_ms=graph))
        found[name] = cells(card.picture)["naive"]["what is lacking"]
        assert cells(card.picture)["sdpa"]["what is lacking"] == ""
    assert found == {
        "gaps": "launch gaps",
        "few": "too few blocks for the SMs",
        "unknown": "idle SMs",
    }


def test_a_gpu_without_performance_counters_says_so_and_claims_nothing_of_its_sms(
    tmp_path: Path,
) -> None:
    none = dict.fromkeys(("sm_active_ratio", "any_tensor_ratio", "dram_bandwidth_ratio"))
    run = run_on_gpu(
        tmp_path,
        of_window=none,
        utilization_tier="busy",
        missing=dict.fromkeys(none, PRE_HOPPER),
    )
    card = card_of(utilization, run)
    assert "SMs active" not in card.sentence
    for line in cells(card.picture).values():
        assert line["what is lacking"] == "not measured: this GPU has no GPM"


def test_a_run_without_windows_says_that_none_were_measured_and_the_command(tmp_path: Path) -> None:
    run = run_on_gpu(tmp_path, windows=None, utilization_tier=None)
    told = subject_of(utilization, run)
    assert told.card is None
    (line,) = told.lines
    assert line.startswith("SM utilization: not measured; ")
    assert COMMAND in line
    assert line in briefly(run)
