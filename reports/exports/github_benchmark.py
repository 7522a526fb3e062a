"""The JSON of github-action-benchmark (`tool: customSmallerIsBetter`): latency and peak bytes."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ...harness.files.printable import visible
from ..data.run_meta import Run, device_name
from ..subjects.decode import own_text
from . import Exported
from ._speeds import Speed, left_out, speeds

MEANING = "what github-action-benchmark plots over commits (customSmallerIsBetter)"


def export(runs: Sequence[Run]) -> Exported:
    """Latency and peak bytes of every timed case.

    `range` is half the width of the 95 % interval in the unit of the value: the action reads no
    other form.
    """
    timed, untimed = speeds(runs)
    entries = [entry for one in timed for entry in _entries(one)]
    text = json.dumps(entries, indent=1, allow_nan=False) + "\n"
    return Exported(content=text, notes=tuple(left_out(untimed)))


def _entries(one: Speed) -> Iterator[dict[str, Any]]:
    row = one.row
    low, high = row["latency_low_ms"], row["latency_high_ms"]
    width = {} if low is None or high is None else {"range": f"± {(high - low) / 2:.6g}"}
    device, torch = device_name(one.meta), str(one.meta["environment"].get("torch"))
    rate = f"\nof memory bandwidth: {own_text(row)}" if row["decode_bytes_per_s"] else ""
    extra = f"{visible(device)}, torch {visible(torch)}\n{one.row['samples']} samples{rate}"
    name = f"{one.scenario}: {one.case}"
    yield {
        "name": f"{name} latency",
        "unit": "ms",
        "value": row["latency_ms"],
        **width,
        "extra": extra,
    }
    if row["peak_bytes"] is not None:
        yield {"name": f"{name} peak", "unit": "bytes", "value": row["peak_bytes"], "extra": extra}
