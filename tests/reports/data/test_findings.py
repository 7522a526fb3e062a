"""reports/data/findings.py: several processes of a study become one finding."""

from typing import Any

import pytest

from attnbench.reports.data.findings import EachAlone, Generated, ScoreScale, read_findings
from tests.reports.subjects.test_generation import finding


def alone(process: int | None, ratio: float, batch: int = 1) -> dict[str, Any]:
    ends = {"alone_low_ratio": 0.1, "alone_high_ratio": 9.0, "alone_ratio": ratio}
    of = {"study": "batch_invariance", "backend": "sdpa", "kv_seq_len": 64, "batch": batch}
    return {**of, **ends, "process": process, "contended_blocks": 1, "blocks": 4}


def test_the_interval_is_over_processes_and_spans_them() -> None:
    """What a process says of itself does not count."""
    ratios = (1.1, 1.3, 1.2, 1.25, 1.15)
    (one,) = read_findings(EachAlone, [alone(i, of) for i, of in enumerate(ratios)])
    assert one.alone_ratio == pytest.approx(1.2)
    assert 1.0 < one.alone_low_ratio <= 1.1 < 1.3 <= one.alone_high_ratio < 1.45
    assert (one.processes, one.contended_blocks, one.blocks) == (5, 5, 20)


def test_a_single_process_and_other_shapes_stay_as_they_are() -> None:
    found = read_findings(EachAlone, [alone(None, 1.1), alone(None, 1.1, batch=2)])
    assert [(one.batch, one.alone_low_ratio, one.processes) for one in found] == [
        (1, 0.1, 1),
        (2, 0.1, 1),
    ]
    scales = [{"study": "score_scale", "d_k": 8, "scaled": True}] * 2
    assert len(read_findings(ScoreScale, scales)) == 2


def test_what_one_process_lacks_is_not_known() -> None:
    some = [{"study": "generation", **finding("sdpa", 64), "process": i} for i in range(3)]
    (whole,) = read_findings(Generated, some)
    assert whole.full_step_low_ms is not None
    some[1] |= {"full_step_ms": None, "complaint": "cached steps differ", "contended_blocks": None}
    (one,) = read_findings(Generated, some)
    assert one.full_step_ms is one.full_step_low_ms is one.contended_blocks is None
    assert one.complaint == "cached steps differ"
    assert one.cached_step_ms is not None
