"""A time at a length that was not measured: only by enough lengths, and always marked."""

from pathlib import Path

import pytest

from attnbench.reports.advise.choices import decide
from tests.reports.fake_advice import SDPA, inquiry, measured, rows_of

LENGTHS = (128, 256, 512, 1024, 2048)
ALL = "128, 256, 512, 1\u202f024, 2\u202f048"


@pytest.mark.parametrize(
    ("lengths", "context", "fitted", "why_not"),
    [
        (LENGTHS, 1024, "", ""),  # a measured length is never fitted
        (LENGTHS, 1536, f"fitted through N = {ALL}", ""),
        (LENGTHS, 4096, f"fitted through N = {ALL}, beyond them", ""),
        (LENGTHS, 16384, "", "not measured, and beyond 4 times the longest measured N"),
        (LENGTHS[1:], 1536, "", "not measured"),  # four are too few
    ],
)
def test_what_other_lengths_say_of_a_time(tmp_path: Path, lengths, context, fitted, why_not):
    asked = inquiry(implementations=(SDPA,), contexts=(context,), most_context=32768)
    rows = rows_of(asked, measured(tmp_path, asked, lengths))
    (found,) = decide(asked, rows, "prefill", context).choices
    assert (found.fitted, found.why_not) == (fitted, why_not)
    if why_not:
        assert (found.total_ms, found.missing) == (None, True)
    else:
        # as the made-up rows grow: 0.02 ms + 2.1e-6 ms N^2 d_model / 512
        growth = 2.1e-6 * context**2
        true = sum(count * (0.02 + growth * width) for count, width in ((3, 1), (2, 0.5)))
        assert found.total_ms.value == pytest.approx(true, rel=0.2)
        assert found.total_ms.low < found.total_ms.value < found.total_ms.high
