"""What several benchmarks need."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import command_line, environment


def rows_of(*arguments: str, out: Path) -> list[dict[str, Any]]:
    """Run the command on the CPU with two threads, as on a small machine, into `out`; the rows of
    its run.
    """
    command = command_line(*arguments, "--device", "cpu", "--out", out, "--quiet")
    env = {**environment(), "OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return [
        json.loads(line)
        for line in (Path(done.stdout.strip()) / "rows.jsonl").read_text().splitlines()
    ]
