"""`attnbench gate BASE HEAD`: measure two checkouts in turns on this machine, then compare them.

The action in .github/ and `make gate` call it; docs/ci.md has recipes.
"""

from pathlib import Path
from typing import Annotated

import typer

from ..files.errors import BadInput, shown
from . import completion
from .gate_steps import (
    JUDGE,
    JUDGING,
    MEASURE,
    STEPS,
    Checkouts,
    Settings,
    judge,
    measure,
    new_folder,
)
from .options import OUTPUT, WHAT, Threads, option

USUAL_SCENARIOS = ("gate.yaml", "bench.yaml", ".ci/gate.yaml")


def gate(
    checkouts: Checkouts,
    scenario: Annotated[
        str | None,
        option(
            "--scenario SCENARIO",
            "A file, or the name of a shipped scenario. HEAD's gate.yaml or bench.yaml if not"
            " given.",
            WHAT,
            completion.scenarios,
        ),
    ] = None,
    *,
    settings: Settings,
    threads: Threads = None,
    step: Annotated[
        str | None,
        option(
            "--step " + "|".join(STEPS),
            "Only this step: measure into --out, or judge what is there. Both if not given.",
            JUDGING,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "--out DIR",
            "Folder for runs, page and summary; results/gate-TIME if not given.",
            OUTPUT,
        ),
    ] = None,
) -> None:
    """Measure two checkouts in turns (base, head, head, base, ...) and say whether HEAD is slower,
    or needs more memory.

    Exit code 0 if it passed, 3 if a case is worse, 6 if nothing was decided, 1 if a case failed and
    nothing was compared.
    """
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
