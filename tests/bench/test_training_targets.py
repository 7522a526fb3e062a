"""The training study in ten minutes."""

import json
import subprocess
import time
from pathlib import Path

from tests.conftest import command_line, environment

MOST_S = 600


def test_the_shipped_study_takes_ten_minutes_at_most(tmp_path: Path) -> None:
    """On two idle cores; rows show what each part took."""
    command = command_line(
        "run", "what_heads_learn", "--device", "cpu", "--out", tmp_path, "--quiet"
    )
    begun = time.monotonic()
    env = {**environment(), "OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    taken_s = time.monotonic() - begun
    lines = (Path(done.stdout.strip()) / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert {row["status"] for row in rows} == {"ok"}
    print(f"{taken_s:.0f} s")
    assert taken_s <= MOST_S
