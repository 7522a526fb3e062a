"""Backends that raise anything, end their process, write over the reply channel, leave processes,
or return what is no output: the others are measured, and every case is one row.
"""

import ast
import re
import shutil
from pathlib import Path

from ..rows import check_rows, last_statuses
from ..trial import Trial

TITLE = "hostile backends"
COUNT = 40
SHORT = 1
FILE = Path(__file__).parents[1] / "hostile.py"  # imports torch, which this process must not
AT_ONCE = 3


def attempt(trial: Trial) -> None:
    folder = trial.folder / "backends"
    folder.mkdir()
    shutil.copy(FILE, folder)
    _, *harmful = variants()
    chosen = [harmful[(trial.number * AT_ONCE + i) % len(harmful)] for i in range(AT_ONCE)]
    names = ["sdpa", *(f"hostile:{name}" for name in chosen), "hostile:good"]
    when = trial.random.choice(("prepare", "first", "late"))
    number = trial.random.randint(1, 64)
    trial.outcome.what = f"{', '.join(chosen)} ({when}, signal {number})"
    code = trial.call(
        *("run", "--backends", ",".join(names), "--batch", 1, "--seq-len", 16, "--d-model", 16),
        *("--heads", 2, "--device", "cpu", "--out", trial.results, "--timeout", 5),
        *("--set", "plan={processes: 1, min_blocks: 12, max_blocks: 12, budget_s: 0.1}"),
        allowed=(0, 1),
        env={
            "ATTNBENCH_BACKENDS": str(folder),
            "HOSTILE_WHEN": when,
            "HOSTILE_SIGNAL": str(number),
            "HOSTILE_PEAK": trial.random.choice(("", "a", "b", "c", "d")),
        },
    )
    if not trial.runs():
        trial.outcome.wrong.append(f"no run, exit code {code}: {trial.said()[-300:]}")
        return
    (run,) = trial.runs()
    check_rows(run, trial.outcome)
    ended = last_statuses(run)
    for case, status in ended.items():
        good = case.startswith(("sdpa", "hostile:good", "hostile_good", "hostile-good"))
        trial.outcome.expect(status == "ok" or not good, f"{case}: {status}")
    trial.call("show", run, "--all", allowed=(0,))


def variants() -> tuple[str, ...]:
    """Of the hostile backend; the first does no harm."""
    (found,) = re.findall(r"^VARIANTS = (\(.*?^\))", FILE.read_text(encoding="utf-8"), re.M | re.S)
    names: tuple[str, ...] = ast.literal_eval(found)
    return names
