"""`make faults`: attack attnbench, and print what survived.

    python -m tests.faults [--minutes M | --share S | --short] [--seed N] [--only NAME[,NAME]]

Exit code 1 if a row was lost or doubled, a process was left, anything hung, a traceback was shown
or another promise of docs/internals/reliability.md was broken.
"""

import argparse
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from .outcome import Tally
from .sweep import Plan, adopt_orphans, load, measured_once, names, order, sweep
from .trial import Trial

COLUMNS = ("tried", "survived", "lost", "doubled", "tracebacks", "hangs", "left")


def main() -> None:
    options = parse(sys.argv[1:])
    work = Path(tempfile.mkdtemp(prefix="attnbench-faults-"))
    plan = Plan(
        seed=secrets.randbelow(10**6) if options.seed is None else options.seed,
        share=None if options.short else options.share,
        minutes=options.minutes,
        jobs=options.jobs,
        findings=options.findings.resolve(),
        work=work,
    )
    print(f"seed {plan.seed}, {plan.jobs} at once, findings in {plan.findings}", flush=True)
    begin = time.monotonic()
    try:
        if options.number is not None:
            tallies = sweep_one(plan, options.only[0], options.number)
        else:
            tallies = sweep(plan, options.only, lambda line: print(line, flush=True))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(table(tallies))
    tried = sum(tally.counts["tried"] for tally in tallies)
    print(f"{tried} of {len(order(options.only, plan.share))} tries; seed {plan.seed}")
    print(f"{(time.monotonic() - begin) / 60:.1f} minutes")
    sys.exit(any(one.counts["survived"] != one.counts["tried"] for one in tallies))


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="of an earlier sweep, to repeat it")
    parser.add_argument("--only", type=lambda text: text.split(","), default=names())
    parser.add_argument("--number", type=int, help="one try of the only attack")
    parser.add_argument("--share", type=float, default=1.0, help="of all tries")
    parser.add_argument("--short", action="store_true", help="under a minute, as in CI")
    parser.add_argument("--minutes", type=float, default=19.0, help="start no try after these")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--findings", type=Path, default=Path(".faults"))
    found = parser.parse_args(words)
    unknown = set(found.only) - set(names())
    if unknown:
        parser.error(f"no attack {sorted(unknown)}; there are: {', '.join(names())}")
    return found


def table(tallies: Sequence[Tally]) -> str:
    """As docs/internals/reliability.md has it of the last whole sweep."""
    lines = [f"| attack | {' | '.join(COLUMNS)} |", f"|---|{'---|' * len(COLUMNS)}"]
    total = Tally("all", sum((tally.counts for tally in tallies), Counter()))
    for tally in (*tallies, total):
        numbers = " | ".join(f"{tally.counts[name]:,}".replace(",", " ") for name in COLUMNS)
        lines.append(f"| {tally.attack} | {numbers} |")
    return "\n".join(lines)


def sweep_one(plan: Plan, name: str, number: int) -> list[Tally]:
    """One try in this process, with its folder left for a look."""
    adopt_orphans()
    folder = plan.findings / f"{name}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    trial = Trial(folder, number, Random(f"{plan.seed} {name} {number}"), measured_once(plan.work))
    attack = load(name)
    attack.attempt(trial)
    trial.none_left()
    print(trial.outcome.what, *trial.outcome.wrong, f"see {folder}", sep="\n")
    tally = Tally(attack.TITLE)
    tally.add(trial.outcome)
    return [tally]


if __name__ == "__main__":
    main()
