"""Samples that were measured elsewhere, as rounds of pytest-benchmark: its clock shows what was
stored, and nothing runs again.
"""

from collections.abc import Iterator
from dataclasses import asdict
from math import isnan
from typing import Any

from ..cases import Case
from ..measure.utilization_tier import utilization_ratio
from ..record import SCHEMA, Record


class Playback:
    """A clock for pytest-benchmark, and what it is to time: every round lasts exactly as long as
    its sample did.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        self._left: Iterator[float] = iter(())

    def read(self) -> float:
        """The clock. A round begins at 0, so that nothing is lost to rounding when its begin is
        subtracted from its end.
        """
        return self._now_s

    def replay(self, benchmark: Any, samples_ms: list[float]) -> None:
        """Only `pedantic` takes the rounds that are there; the other mode would first find out how
        fast this clock ticks.
        """
        self._left = (sample_ms / 1e3 for sample_ms in samples_ms)
        benchmark.pedantic(self._play, setup=self._rewind, rounds=len(samples_ms), iterations=1)

    def _rewind(self) -> None:
        self._now_s = 0.0

    def _play(self) -> None:
        self._now_s = next(self._left, 0.0)  # --benchmark-cprofile asks for a round more


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
    """What a row says beside its samples, under the row's own names; missing is null."""
    from ..stats import latency_interval  # numpy takes its time, and collecting needs none of it

    latency = latency_interval(record["block_ms"]) if record["block_ms"] else None
    bounds = (None, None, None) if latency is None else (latency.value, latency.low, latency.high)
    latency_ms, low_ms, high_ms = (
        None if value is None or isnan(value) else value for value in bounds
    )
    tier = record["utilization_tier"]
    windows = [
        window for window in record["windows"] or () if window["way"] == "eager"
    ]  # as attnbench.load takes them
    return {
        "run": run,
        "schema": SCHEMA,
        "case": record.id,
        "device": record.device,
        "kernel": record["kernel"],
        "latency_ms": latency_ms,
        "latency_low_ms": low_ms,
        "latency_high_ms": high_ms,
        "stop": record["stop"],
        "input_bytes": record["input_bytes"],
        "peak_bytes": record["peak_bytes"],
        "predicted_peak_bytes": record["predicted_peak_bytes"],
        "error_ratio": record["error_ratio"],
        "utilization_tier": tier,
        "utilization_ratio": utilization_ratio(windows, tier) if windows and tier else None,
    }
