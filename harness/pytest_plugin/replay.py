"""Stored samples as rounds of pytest-benchmark: its clock shows them, and nothing runs again."""

from collections.abc import Iterator
from dataclasses import asdict
from math import isnan
from typing import Any

from ..cases.case import Case
from ..rows.record import Record
from ..rows.run_files import SCHEMA
from ..rows.utilization import utilization_ratio

SAME_NAMES = (
    *("kernel", "stop", "input_bytes", "peak_bytes", "predicted_peak_bytes", "error_ratio"),
    "utilization_tier",
)
"""Fields of a row that pytest-benchmark's JSON has too."""


class ReplayClock:
    """A clock for pytest-benchmark, and the function to time: a round lasts as long as a sample."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._left: Iterator[float] = iter(())

    def read(self) -> float:
        """A round begins at 0, so that subtracting its begin from its end loses nothing."""
        return self._now_s

    def replay(self, benchmark: Any, samples_ms: list[float]) -> None:
        """By `pedantic`, which takes the rounds that there are.

        The other mode would first measure how fast this clock ticks.
        """
        self._left = (sample_ms / 1e3 for sample_ms in samples_ms)
        rounds = len(samples_ms)
        benchmark.pedantic(self._play, setup=self._rewind, rounds=rounds, iterations=1)

    def _rewind(self) -> None:
        self._now_s = 0.0

    def _play(self) -> None:
        self._now_s = next(self._left, 0.0)  # --benchmark-cprofile asks for one more round


def samples_ms(record: Record) -> list[float]:
    """All calls, in order."""
    return [call for process in record["block_ms"] or () for block in process for call in block]


def shape(case: Case) -> str:
    """The case's id without its backend."""
    return case.id.removeprefix(f"{case.backend}-")


def parameters(case: Case) -> dict[str, Any]:
    """For --benchmark-group-by=param:heads and the like."""
    return {"backend": case.backend, **asdict(case.problem)}


def extra_info(record: Record, run: str) -> dict[str, Any]:
    """What a row says beside its samples, under its own names; missing is null."""
    from ..stats.intervals import (
        latency_interval,  # numpy takes time, and collecting does not need it
    )

    latency = latency_interval(record["block_ms"]) if record["block_ms"] else None
    bounds = (None, None, None) if latency is None else (latency.value, latency.low, latency.high)
    names = ("latency_ms", "latency_low_ms", "latency_high_ms")
    numbers = {
        name: None if value is None or isnan(value) else value
        for name, value in zip(names, bounds, strict=True)
    }
    tier = record["utilization_tier"]
    # as attnbench.load takes them
    windows = [window for window in record["windows"] or () if window["way"] == "eager"]
    return {
        "run": run,
        "schema": SCHEMA,
        "case": record.id,
        "device": record.device,
        **numbers,
        **{name: record[name] for name in SAME_NAMES},
        "utilization_ratio": utilization_ratio(windows, tier) if windows and tier else None,
    }
