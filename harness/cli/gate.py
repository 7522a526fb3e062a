"""`attnbench gate BASE HEAD`: measure two checkouts in turns on this machine, then compare them.

The action in .github/ and `make gate` call it; docs/ci.md has recipes.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..files.errors import BadInput, shown
from . import completion
from .flags import HOW, OUTPUT, WHAT, Device, PlanName, Quiet, Threads, device_named
from .gate_steps import JUDGE, MEASURE, STEPS, Checkouts, Settings, judge, measure

MARGINS = "latency: 5%, peak_bytes: 0%"
USUAL_SCENARIOS = ("gate.yaml", "bench.yaml", ".ci/gate.yaml")
JUDGING = "Judging"


def gate(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="Checkout to compare with: a folder, or a commit, branch or tag of HEAD's"
            " repository. Empty: HEAD alone.",
        ),
    ],
    head: Annotated[Path, typer.Argument(metavar="HEAD", help="Checkout that is judged.")] = Path(),
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="SCENARIO",
            help="A file, or the name of a shipped scenario. HEAD's gate.yaml or bench.yaml if not"
            " given.",
            autocompletion=completion.scenarios,
            rich_help_panel=WHAT,
        ),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder below each checkout for PYTHONPATH, if the code is not installed.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    backend_dir: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder below each checkout with your own backends (ATTNBENCH_BACKENDS).",
            rich_help_panel=WHAT,
        ),
    ] = None,
    turns: Annotated[
        int,
        typer.Option(
            min=1,
            max=1000,
            help="How often each is measured; fewer than 3 can hardly decide anything.",
            rich_help_panel=HOW,
        ),
    ] = 5,
    plan: PlanName = None,
    device: Annotated[
        Device | None,
        typer.Option(
            metavar="auto|cpu|cuda",
            help="Where to measure, instead of where the scenario says.",
            parser=device_named,
            autocompletion=completion.devices,
            rich_help_panel=HOW,
        ),
    ] = None,
    threads: Threads = None,
    python: Annotated[
        str,
        typer.Option(metavar="PATH", help="Interpreter that measures.", rich_help_panel=HOW),
    ] = sys.executable,
    base_python: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Another one for BASE, to compare versions of packages.",
            rich_help_panel=HOW,
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Run attnbench selfcheck first, so that a margin can be noise.",
            rich_help_panel=HOW,
        ),
    ] = False,
    margins: Annotated[
        str,
        typer.Option(
            "--gate",
            metavar="FILE|EXPR",
            help="The margins, as for attnbench compare --gate.",
            rich_help_panel=JUDGING,
        ),
    ] = MARGINS,
    fail_on_undecided: Annotated[
        bool,
        typer.Option(
            "--fail-on-undecided",
            help="Exit 3 also if a case is undecided.",
            rich_help_panel=JUDGING,
        ),
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Instead of BASE: a run that was measured earlier on this machine.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(STEPS),
            help="Only this step: measure into --out, or judge what is there. Both if not given.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for runs, page and summary; results/gate-TIME if not given.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    quiet: Quiet = False,
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
    settings = Settings.of(
        out=out,
        turns=turns,
        plan=plan,
        device=device.value if device else None,
        calibrate=calibrate,
        margins=margins,
        fail_on_undecided=fail_on_undecided,
        baseline=baseline,
        quiet=quiet,
    )
    if step != JUDGE:
        checkouts = Checkouts(
            base=base,
            head=head,
            code=code or "",
            backend_dir=backend_dir or "",
            python=python,
            base_python=base_python or python,
        )
        measure(scenario or _usual_scenario(head), checkouts, settings)
    if step != MEASURE:
        raise typer.Exit(judge(settings))


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
