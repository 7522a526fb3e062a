"""The training study in ten minutes."""

import time
from pathlib import Path

from tests.bench.conftest import rows_of

MOST_S = 600


def test_the_shipped_study_takes_ten_minutes_at_most(tmp_path: Path) -> None:
    """On two idle cores; rows show what each part took."""
    begun = time.monotonic()
    rows = rows_of("run what_heads_learn", out=tmp_path)
    taken_s = time.monotonic() - begun
    assert {row["status"] for row in rows} == {"ok"}
    assert taken_s <= MOST_S
