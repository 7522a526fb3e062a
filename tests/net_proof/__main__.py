"""Is the net a net? Each defect of defects.py is planted into a copy of the tree, alone, and the
tests that should notice it run there: `make net-proof`, 15 minutes on two idle cores.

    python -m tests.net_proof [DEFECT...] [--all]

`--all` runs the whole net for each, until a test fails: half a day. Exit code 1: too few defects
were noticed, or another one was missed than defects.py says; 2: a test fails without any defect, or
a defect cannot be planted, so nothing was proven.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.net_proof.defects import DEFECTS, NET, Defect, NotPlanted
from tests.search_path import searched

ROOT = Path(__file__).parents[2]
LEAST_NOTICED = 22
MOST_S = 600  # of the tests of one defect


class Found(NamedTuple):
    """The test that failed with a defect, "" if none did."""

    test: str
    why: str
    seconds: float


class Broken(Exception):
    """pytest could not run what it was told to."""


def copied(to: Path) -> None:
    """What git knows of this tree and what it does not ignore; links stay links."""
    listed = ["git", "ls-files", "-co", "-z", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_symlink() or (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


def first_failure(tree: Path, tests: tuple[str, ...]) -> Found:
    """Of the tests, in the tree: the plugins of an installed attnbench come from it too."""
    began_s = time.monotonic()
    options = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-m", "not gpu"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--benchmark-enable", *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": searched(tree / ".package", tree)},
        capture_output=True,
        text=True,
        timeout=MOST_S * (1 if tests != NET else 10),
        check=False,
    )
    lines = done.stdout.splitlines()
    seconds = time.monotonic() - began_s
    if done.returncode == 0:
        return Found("", "", seconds)
    failed = next((line for line in lines if line.startswith("FAILED ")), "")
    if done.returncode != 1 or not failed:  # such as a test that is not there any more
        raise Broken("\n".join([*lines[-30:], done.stderr[-2000:]]))
    test = failed.removeprefix("FAILED ").split(" - ")[0]
    why = " ".join([line[1:].strip() for line in lines if line.startswith("E ")][:2])
    return Found(test.removeprefix("tests/"), why, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.net_proof")
    names = [defect.name for defect in DEFECTS]
    parser.add_argument("defects", nargs="*", choices=[*names, []], metavar="DEFECT")
    parser.add_argument("--all", action="store_true", help="the whole net for each defect")
    chosen = parser.parse_args()
    some = [one for one in DEFECTS if not chosen.defects or one.name in chosen.defects]
    with tempfile.TemporaryDirectory(prefix="net-proof-") as folder:
        tree = Path(folder)
        copied(tree)
        try:
            for defect in some:  # before minutes go by
                defect.patched(tree)
            tests = tuple(dict.fromkeys(test for defect in some for test in defect.noticed_by))
            intact = first_failure(tree, NET if chosen.all else tests)
            if intact.test:
                raise Broken(f"fails without a defect: {intact.test}\n{intact.why}")
            print(f"| without a defect | | none of {len(tests)} tests | {intact.seconds:.0f} |")
            return told(tree, some, whole_net=chosen.all)
        except (Broken, NotPlanted) as error:
            print(error, file=sys.stderr)
            return 2


def told(tree: Path, some: list[Defect], *, whole_net: bool) -> int:
    """The table, a row as soon as it is known; the exit code."""
    print("| defect | planted in | noticed by | s |\n|---|---|---|---:|")
    missed, surprising = 0, []
    for defect in some:
        with defect.planted(tree):
            found = first_failure(tree, NET if whole_net else defect.noticed_by)
        missed += not found.test
        if bool(found.test) == bool(defect.missed):
            surprising.append(defect.name)
        noticed = f"{found.test}: {found.why[:120]}" if found.test else f"missed: {defect.missed}"
        places = ", ".join(dict.fromkeys(patch.path for patch in defect.patches))
        print(f"| {defect.name} | {places} | {noticed} | {found.seconds:.0f} |", flush=True)
    print(f"noticed: {len(some) - missed} of {len(some)}")
    for name in surprising:
        print(f"{name}: not what defects.py says", file=sys.stderr)
    too_few = len(some) == len(DEFECTS) and missed > len(DEFECTS) - LEAST_NOTICED
    return int(bool(surprising) or too_few)


if __name__ == "__main__":
    sys.exit(main())
