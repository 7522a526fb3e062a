"""reports/data/processor_time.py: beside a time that other work disturbed stands processor time."""

from typing import Any

import pandas as pd
import pytest

from attnbench.reports.data.load import load
from attnbench.reports.data.processor_time import time_of, told_time
from tests.made_runs import case, problem, row, write_run

BLOCK_MS = [[[41.0, 41.0], [41.0, 41.0]]]


def conditions(*processor_ms: float | None) -> dict[str, Any]:
    """Of two blocks, in which other work disturbed calls."""
    blocks = [{} if one is None else {"processor_ms": one} for one in processor_ms]
    return {"block_ms": BLOCK_MS, "conditions": [blocks], "contended_blocks": 2}


@pytest.mark.parametrize(
    ("changes", "processor_ms", "text"),
    [
        (conditions(0.5, 0.54), 0.52, "41.0 ms, processor 520 μs"),
        (conditions(0.5, None), 0.5, "41.0 ms, processor 500 μs"),
        (conditions(None, None), None, "41.0 ms"),
        (conditions(0.5, 0.54) | {"contended_blocks": 1}, 0.52, "41.0 ms"),
        (conditions(0.5, 0.54) | {"contended_blocks": None}, 0.52, "41.0 ms"),
    ],
)
def test_a_disturbed_time_has_its_processor_time_beside_it(tmp_path, changes, processor_ms, text):
    planned = case("fused", problem(128))
    (found,) = load(write_run(tmp_path, [planned], [row(planned, **changes)])).to_dict("records")
    if processor_ms is None:
        assert pd.isna(found["processor_ms"])
        found["processor_ms"] = None
    else:
        assert found["processor_ms"] == pytest.approx(processor_ms)
    assert str(time_of(found)).replace("\u00a0", " ") == text
    time, _, processor = text.partition(", processor ")
    told = f"{time} ({processor} of processor time)" if processor else time
    assert told_time(found).replace("\u00a0", " ") == told
