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
from collections import Counter
from math import exp, log
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parent.parent.parent
MARGINS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1)
ACTION = ROOT / ".github" / "actions" / "attnbench"


def compare(out: Path) -> dict:
    """What judge.sh leaves behind for one comparison of this checkout with itself."""
    ours = {
        "SCENARIO": ".ci/gate.yaml",
        "HEAD": ".",
        "BASE": ".",
        "CODE": ".package",
        "THREADS": "1",
        "PYTHON": sys.executable,
        "OUT": str(out),
    }
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")
    } | ours
    if not (out / "compare.json").exists():
        shutil.rmtree(out, ignore_errors=True)  # one that was cut short
        subprocess.run(
            [ACTION / "measure.sh"],
            cwd=ROOT,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        # over five minutes, about as long as it took
        (out / "load").write_text(f"{os.getloadavg()[1]}\n")
        subprocess.run(
            [ACTION / "judge.sh"], cwd=ROOT, env=environment, check=False, stdout=subprocess.DEVNULL
        )
    return json.loads((out / "compare.json").read_text()) | {
        "load": float((out / "load").read_text())
    }


def print_summary(comparisons: list[dict]) -> None:
    gate = comparisons[0]["gate"]["margins"]
    alarms = [one for one in comparisons if one["gate"]["outcome"] == "failed"]
    print(f"{len(comparisons)} comparisons of equals: {len(alarms)} alarms of the gate {gate}")
    for one in alarms:
        print("  alarm:", one["gate"]["regressions"])
    for metric in ("latency", "peak_bytes", "status"):
        found = Counter(
            case["verdict"]
            for one in comparisons
            for case in one["cases"]
            if case["metric"] == metric
        )
        print(f"{metric}: {dict(found)}")
    cases = [case for one in comparisons for case in one["cases"] if case["metric"] == "latency"]
    apart = sum(not case["low"] <= 1 <= case["high"] for case in cases)
    print(f"intervals that leave out 1: {apart} of {len(cases)}; 3.5 % are expected")
    off = sorted(abs(log(case["ratio"])) for case in cases)
    most = [exp(value) - 1 for value in (median(off), quantiles(off, n=20)[-1], off[-1])]
    print(
        f"ratios: half within {most[0]:.1%} of 1, 95 % within {most[1]:.1%}, all within"
        f" {most[2]:.1%}"
    )
    half = [log(case["high"] / case["low"]) / 2 for case in cases]
    print(
        f"half-widths of their intervals: {exp(median(half)) - 1:.1%} in the middle,"
        f" {exp(max(half)) - 1:.1%} at most"
    )
    for margin in MARGINS:
        slower = sum(
            any(c["low"] > 1 + margin for c in one["cases"] if c["metric"] == "latency")
            for one in comparisons
        )
        print(
            f"margin {margin:.0%}: {slower} of {len(comparisons)} have a case wholly beyond it,"
            " before Holm's correction"
        )
    loads = [one["load"] for one in comparisons]
    print(
        f"load average of the machine: {min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()}"
        " cores"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparisons", nargs="?", type=int, default=20)
    parser.add_argument("--out", type=Path, default=ROOT / ".gate" / "false_alarms")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    done = []
    for number in range(arguments.comparisons):
        done.append(compare(arguments.out / f"{number:02}"))
        print(
            f"{number + 1}: {done[-1]['gate']['outcome']}",
            file=sys.stderr,
            flush=True,
        )
    print_summary(done)


if __name__ == "__main__":
    main()
