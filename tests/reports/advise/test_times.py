"""A time at a length that was not measured: only by enough lengths, and always marked."""

from pathlib import Path

import pytest

from attnbench.reports.advise.choices import decide
from tests.reports.fake_advice import SDPA, inquiry, measured, rows_of

LENGTHS = (128, 256, 512, 1024, 2048)


def choice(asked, folder: Path, context: int):
    (found,) = decide(asked, rows_of(asked, folder), "prefill", context).choices
    return found


def test_five_lengths_give_a_time_between_them_with_an_interval_and_a_mark(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,), contexts=(1536,))
    found = choice(asked, measured(tmp_path, asked, LENGTHS), 1536)
    assert found.fitted == "fitted through N = 128, 256, 512, 1,024, 2,048"
    assert found.total_ms is not None
    # as the made-up rows grow: 0.02 ms + 2.1e-6 ms N^2 d_model / 512
    true = sum(count * (0.02 + 2.1e-6 * 1536**2 * width) for count, width in ((3, 1), (2, 0.5)))
    assert found.total_ms.value == pytest.approx(true, rel=0.2)
    assert found.total_ms.low < found.total_ms.value < found.total_ms.high


def test_beyond_the_measured_lengths_the_mark_says_so(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,), contexts=(4096,))
    found = choice(asked, measured(tmp_path, asked, LENGTHS), 4096)
    assert found.fitted.endswith("2,048, beyond them")


def test_far_beyond_nothing_is_computed(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,), contexts=(16384,), most_context=32768)
    found = choice(asked, measured(tmp_path, asked, LENGTHS), 16384)
    assert found.total_ms is None
    assert found.missing
    assert "beyond 4 times the longest measured N" in found.why_not


def test_four_lengths_are_not_enough(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,), contexts=(1536,))
    found = choice(asked, measured(tmp_path, asked, LENGTHS[1:]), 1536)
    assert found.total_ms is None
    assert found.why_not == "not measured"


def test_a_measured_length_is_never_fitted(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    assert choice(asked, measured(tmp_path, asked, LENGTHS), 1024).fitted == ""
