"""The result of `attnbench selfcheck` as a table and sentences."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...reports.elements import Block, Table, Text
from ..selfcheck.noise import FILE, MAX_FALSE_ALARMS, NoiseFloor

COLUMNS = ("backend against itself", "ratio", "95 % interval", "told apart")


def blocks(floor: NoiseFloor, root: Path) -> Iterator[Block]:
    """A row per backend, and what that means."""
    from ...reports.formatting import ratio_bounds_text

    rows = [
        (
            pair.backend,
            f"{pair.ratio.value:.3f}",
            ratio_bounds_text(pair.ratio.low, pair.ratio.high, "{:.3f}".format),
            "yes" if pair.told_apart else "no",
        )
        for pair in floor.pairs
    ]
    yield Table(title="", columns=COLUMNS, rows=tuple(rows))
    yield from (Text(text=one) for one in sentences(floor, root, floor.environment))


def sentences(floor: NoiseFloor, root: Path, environment: Mapping[str, Any]) -> Iterator[str]:
    """What the numbers mean for the next measurement here, and where they were written."""
    yield (
        f"Noise floor on {floor.device}: equal backends differ by up to"
        f" {100 * floor.paired_noise_ratio:.1f} % within one process, and by up to"
        f" {100 * floor.run_noise_ratio:.1f} % between processes (95 % of cases)."
    )
    share = floor.clock_overhead_ms / floor.shortest_ms
    overhead_ns = floor.clock_overhead_ms * 1e6
    yield (
        f"The clock adds {overhead_ns:.0f} ns to a call, {100 * share:.3f} % of the shortest call"
        " here."
    )
    if floor.contended_blocks or floor.throttled_blocks:
        yield (
            f"Of {floor.blocks} blocks {floor.contended_blocks} were contended and"
            f" {floor.throttled_blocks} throttled: other work on this machine is part of the floor."
        )
    if floor.false_alarms > MAX_FALSE_ALARMS:
        yield (
            f"Equals were told apart in {floor.false_alarms} of {len(floor.pairs)} pairs: do not"
            " trust intervals from here now."
        )
    elif floor.false_alarms:
        yield (
            "One pair of equals was told apart, which happens by chance in 1 check of 7; run it"
            " again."
        )
    else:
        yield "No equals were told apart."
    yield from _between_runs(floor, root, environment)
    yield f"Appended to {root / FILE}."


def _between_runs(floor: NoiseFloor, root: Path, environment: Mapping[str, Any]) -> Iterator[str]:
    """What separate starts of the check have shown so far."""
    from ...reports.data.noise_floor import FEWEST_STARTS, newest_noise_floor, percent_text
    from ...reports.data.run_meta import device_identity

    identity = device_identity({"device": floor.device, "environment": environment})
    newest = newest_noise_floor([root], identity)
    if newest is None:
        return
    if newest.between_runs is None:
        yield (
            f"Start {newest.starts} of {FEWEST_STARTS} that tell how much runs differ, which"
            " attnbench compare of two runs must know: repeat it, as far apart as such runs are."
        )
    else:
        yield (
            f"Over {newest.starts} starts of this check, runs differ by up to"
            f" {percent_text(newest.between_runs.ratio)} (95 % of pairs)."
        )
