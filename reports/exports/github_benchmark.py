"""The list that github-action-benchmark reads as `tool: customSmallerIsBetter`: latency and peak
bytes of each case that has them.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ..data.run_meta import device_name
from ..data.read import Run
from ..formatting import visible
from . import Exported
from ._speeds import Timed, left_out, speeds

MEANING = "what github-action-benchmark plots over commits (customSmallerIsBetter)"


def export(runs: Sequence[Run]) -> Exported:
    """`range` is half the width of the 95 % interval in the unit of the value, without which the
    action could not read it.
    """
    timed, silent = speeds(runs)
    entries = [entry for one in timed for entry in _entries(one)]
    return Exported(
        content=json.dumps(entries, indent=1, allow_nan=False) + "\n", notes=tuple(left_out(silent))
    )


def _entries(one: Timed) -> Iterator[dict[str, Any]]:
    row = one.row
    low, high = row["latency_low_ms"], row["latency_high_ms"]
    width = {} if low is None or high is None else {"range": f"± {(high - low) / 2:.6g}"}
    extra = (
        f"{visible(device_name(one.meta))}, torch"
        f" {visible(str(one.meta['environment'].get('torch')))}\n{one.row['samples']} samples"
    )
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
