"""`attnbench gate BASE HEAD`: measure two checkouts in turns on this machine, then compare them.

The action in .github/ and `make gate` call this verb; docs/ci.md has recipes.
"""

import os
import sys
from dataclasses import MISSING, dataclass
from pathlib import Path

import typer

from ..api.gate import (
    USUAL_MARGIN,
    USUAL_MARGINS,
    Checkouts,
    Judged,
    Settings,
    judge,
    measure,
    new_folder,
)
from ..files.errors import BadInput, shown
from ..verbs import completion
from .compare import Margin, Shape, print_comparison
from .options import (
    HOW,
    OUTPUT,
    WHAT,
    Device,
    PlanName,
    Quiet,
    Threads,
    Wait,
    WaitIdle,
    argument,
    device_option,
    own,
    own_option,
    switch,
)

JUDGING = "Judging"
STEPS = MEASURE, JUDGE = "measure", "judge"
BASE = (
    "Checkout to compare with, a folder or a commit; a commit, branch or tag is one of HEAD's"
    " repository. Empty: HEAD alone."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingOptions(Settings):
    """As options."""

    turns: int = own_option(
        "--turns COUNT",
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
    margins: str = own_option(
        "--gate FILE|EXPR",
        "The margins, as for attnbench compare --gate.",
        JUDGING,
        default=USUAL_MARGINS,
    )
    margin: Margin = USUAL_MARGIN
    fail_on_undecided: bool = switch(
        "--fail-on-undecided", "Exit 3 also if a case is not confirmed.", JUDGING
    )
    baseline: str | None = own_option(
        "--baseline RUN",
        "Instead of BASE: an earlier run on this machine, or last:5.",
        JUDGING,
    )
    wait: Wait = False
    wait_idle: WaitIdle = None
    quiet: Quiet = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutOptions(Checkouts):
    """As options."""

    base: str = own(argument("BASE", BASE), MISSING)
    head: Path = own(argument("HEAD", "Checkout that is judged."), Path())
    code: str | None = own_option(
        "--code DIR",
        "Folder of each for PYTHONPATH; needed if the code is not installed.",
        WHAT,
    )
    backend_dir: str | None = own_option(
        "--backend-dir DIR",
        "Folder of each with your own backends; sets ATTNBENCH_BACKENDS.",
        WHAT,
    )
    allow_import: bool = switch(
        "--allow-import",
        "Workers may import and run the modules that the scenario names, each side its own.",
        WHAT,
    )
    python: str = own_option(
        "--python PATH", "Interpreter that measures.", HOW, default=sys.executable
    )
    base_python: str | None = own_option(
        "--base-python PATH", "Another one for BASE; so versions of packages are compared.", HOW
    )


def gate(
    checkouts: CheckoutOptions,
    scenario: str | None = own_option(
        "--scenario SCENARIO",
        "A file or a shipped scenario. HEAD's gate.yaml or bench.yaml if not given.",
        WHAT,
        completion.scenarios,
    ),
    *,
    settings: SettingOptions,
    threads: Threads = None,
    step: str | None = own_option(
        "--step " + "|".join(STEPS),
        "Only this step: measure into --output, or judge what is there. Both if not given.",
        JUDGING,
    ),
    out: Path | None = own_option(
        "--output -o --out DIR", "For runs, page, summary; results/gate-TIME if not given.", OUTPUT
    ),
) -> None:
    """Measure two checkouts in turns: did the code become slower? Base, head, head, base, ..., then
    time and memory of HEAD are judged.

    Exit code 0 if it passed, 3 if a case is worse, 6 if nothing was decided, 1 if a case failed and
    nothing was compared.
    """
    if step is not None and step not in STEPS:
        raise BadInput(f"--step: found {step!r}; wanted {' or '.join(STEPS)}")
    if out is not None and not str(out).isprintable():  # it becomes a line of GITHUB_OUTPUT
        raise BadInput(f"--output: found {shown(str(out))}; wanted a path without line breaks")
    if step == JUDGE and out is None:
        raise BadInput("--step judge: wanted --output DIR, the folder that was measured into")
    out = out or new_folder()
    if step != JUDGE:
        measure(scenario, checkouts, settings, out)
    if step != MEASURE:
        found = judge(settings, out)
        _say(found, out)
        _annotate(found.verdict, settings.margins)
        raise typer.Exit(found.exit_code)


def _say(found: Judged, out: Path) -> None:
    """In a job of GitHub (GITHUB_STEP_SUMMARY, GITHUB_OUTPUT) summary and verdict go there, else
    the comparison goes to stdout.
    """
    if found.refused:
        typer.echo(found.refused, err=True)
    if in_job := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(in_job).open("a") as file:
            file.write(found.summary)
    else:
        if found.comparison is not None:
            print_comparison(found.comparison, Shape.TABLE)
        typer.echo(f"{out / 'summary.md'} {out / 'report.html'}")
    if in_output := os.environ.get("GITHUB_OUTPUT"):
        with Path(in_output).open("a") as file:
            file.write(
                f"code={found.exit_code}\nverdict={found.verdict}\nreport={out / 'report.html'}\n"
            )


def _annotate(verdict: str, margins: str) -> None:
    """A line for whoever reads no summary; in a job of GitHub an annotation."""
    on_github = bool(os.environ.get("GITHUB_ACTIONS"))
    margins = " ".join(margins.split())  # a line of its own could be a command of the job
    said = {
        "failed": ("error", f"slower, or more memory, by more than {margins}; see the summary"),
        "undecided": ("warning", f"nothing decided about {margins}; see the summary"),
    }
    if verdict in said:
        kind, sentence = said[verdict]
        sys.stderr.write(f"{f'::{kind} title=attnbench::' if on_github else ''}{sentence}\n")
