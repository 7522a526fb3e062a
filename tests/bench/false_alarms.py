"""How often does the gate cry wolf? Compares this checkout with itself, as `make gate` does, again
and again, and counts.

    python tests/bench/false_alarms.py [COMPARISONS] [--out DIR]

Every comparison is made of runs of its own. What is in DIR already counts, so a count that was cut
short goes on.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from math import exp, log
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).parent.parent.parent
MARGINS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1)
GATE = ("gate", ".", ".", "--scenario", ".ci/gate.yaml", "--code", ".package", "--threads", "1")


def compared(out: Path) -> dict[str, Any]:
    """What one comparison of this checkout with itself leaves behind."""
    if not (out / "compare.json").exists():
        shutil.rmtree(out, ignore_errors=True)  # one that was cut short
        command = [sys.executable, "-m", "attnbench", *GATE, "--out", str(out)]
        env = os.environ | {"PYTHONPATH": str(ROOT / ".package")}
        subprocess.run(command, cwd=ROOT, env=env, check=False, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads((out / "compare.json").read_text())
    return found


def print_summary(comparisons: list[dict[str, Any]]) -> None:
    alarms = [one for one in comparisons if one["gate"]["outcome"] == "failed"]
    print(f"{len(comparisons)} comparisons of equals: {len(alarms)} alarms of the gate")
    for one in alarms:
        print("  alarm:", one["gate"]["regressions"])
    cases = [[case for case in one["cases"] if case["metric"] == "latency"] for one in comparisons]
    ratios = [case for some in cases for case in some]
    apart = sum(not case["low"] <= 1 <= case["high"] for case in ratios)
    print(f"intervals that leave out 1: {apart} of {len(ratios)}; 3.5 % are expected")
    off = sorted(abs(log(case["ratio"])) for case in ratios)
    half, most, worst = (exp(one) - 1 for one in (median(off), quantiles(off, n=20)[-1], off[-1]))
    print(f"ratios: half within {half:.1%} of 1, 95 % within {most:.1%}, all within {worst:.1%}")
    for margin in MARGINS:
        slower = sum(any(case["low"] > 1 + margin for case in some) for some in cases)
        print(f"a case wholly beyond {margin:.0%}, before Holm's correction: in {slower}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparisons", nargs="?", type=int, default=20)
    parser.add_argument("--out", type=Path, default=ROOT / ".gate" / "false_alarms")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print_summary([compared(arguments.out / f"{n:02}") for n in range(arguments.comparisons)])


if __name__ == "__main__":
    main()
