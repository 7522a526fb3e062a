"""`attnbench gate BASE HEAD`: measure two checkouts in turns on this machine, then compare them.

The action in .github/ and `make gate` call it; docs/ci.md has recipes.
"""

import sys
from dataclasses import MISSING, dataclass
from pathlib import Path

import typer

from ..files.errors import BadInput, shown
from . import completion
from .options import (
    HOW,
    OUTPUT,
    WHAT,
    Device,
    PlanName,
    Quiet,
    Threads,
    argument,
    device_option,
    own,
    own_option,
    switch,
)

USUAL_SCENARIOS = ("gate.yaml", "bench.yaml", ".ci/gate.yaml")
JUDGING = "Judging"
STEPS = MEASURE, JUDGE = "measure", "judge"
BASE = (
    "Checkout to compare with: a folder, or a commit, branch or tag of HEAD's repository. Empty:"
    " HEAD alone."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How both are measured and judged. `baseline`: an earlier run, if no base was measured."""

    turns: int = own_option(
        "--turns",
        "How often each is measured; fewer than 3 can hardly decide anything.",
        HOW,
        default=5,
        min=1,
        max=1000,
    )
    plan: PlanName = None
    device: Device | None = own(
        device_option("Where to measure, instead of where the scenario says.")
    )
    calibrate: bool = switch(
        "--calibrate", "Run attnbench selfcheck first, so that a margin can be noise.", HOW
    )
    margins: str = own_option(
        "--gate FILE|EXPR",
        "The margins, as for attnbench compare --gate.",
        JUDGING,
        default="latency: 5%, peak_bytes: 0%",
    )
    fail_on_undecided: bool = switch(
        "--fail-on-undecided", "Exit 3 also if a case is undecided.", JUDGING
    )
    baseline: str | None = own_option(
        "--baseline RUN",
        "Instead of BASE: a run that was measured earlier on this machine.",
        JUDGING,
    )
    quiet: Quiet = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkouts:
    """What is measured; `base`: "" for none."""

    base: str = own(argument("BASE", BASE), MISSING)
    head: Path = own(argument("HEAD", "Checkout that is judged."), Path())
    code: str | None = own_option(
        "--code DIR",
        "Folder below each checkout for PYTHONPATH, if the code is not installed.",
        WHAT,
    )
    backend_dir: str | None = own_option(
        "--backend-dir DIR",
        "Folder below each checkout with your own backends (ATTNBENCH_BACKENDS).",
        WHAT,
    )
    python: str = own_option(
        "--python PATH", "Interpreter that measures.", HOW, default=sys.executable
    )
    base_python: str | None = own_option(
        "--base-python PATH", "Another one for BASE, to compare versions of packages.", HOW
    )


def gate(
    checkouts: Checkouts,
    scenario: str | None = own_option(
        "--scenario SCENARIO",
        "A file, or the name of a shipped scenario. HEAD's gate.yaml or bench.yaml if not given.",
        WHAT,
        completion.scenarios,
    ),
    *,
    settings: Settings,
    threads: Threads = None,
    step: str | None = own_option(
        "--step " + "|".join(STEPS),
        "Only this step: measure into --out, or judge what is there. Both if not given.",
        JUDGING,
    ),
    out: Path | None = own_option(
        "--out DIR", "Folder for runs, page and summary; results/gate-TIME if not given.", OUTPUT
    ),
) -> None:
    """Measure two checkouts in turns (base, head, head, base, ...) and say whether HEAD is slower,
    or needs more memory.

    Exit code 0 if it passed, 3 if a case is worse, 6 if nothing was decided, 1 if a case failed and
    nothing was compared.
    """
    from .gate_steps import judge, measure, new_folder

    if step is not None and step not in STEPS:
        raise BadInput(f"--step: found {step!r}; wanted {' or '.join(STEPS)}")
    if out is not None and not str(out).isprintable():  # it becomes a line of GITHUB_OUTPUT
        raise BadInput(f"--out: found {shown(str(out))}; wanted a path without line breaks")
    if step == JUDGE and out is None:
        raise BadInput("--step judge: wanted --out DIR, the folder that was measured into")
    out = out or new_folder()
    if step != JUDGE:
        measure(scenario or _usual_scenario(checkouts.head), checkouts, settings, out)
    if step != MEASURE:
        raise typer.Exit(judge(settings, out))


def _usual_scenario(head: Path) -> str:
    if not head.is_dir():
        raise BadInput(f"{head}: no such folder; wanted the checkout that is judged")
    found = next((head / name for name in USUAL_SCENARIOS if (head / name).is_file()), None)
    if found is None:
        raise BadInput(
            f"--scenario: not given, and {head} has no {' or '.join(USUAL_SCENARIOS)}; wanted a"
            " file, or a shipped one such as quickstart"
        )
    return str(found)
