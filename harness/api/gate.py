"""Measure two checkouts in turns on this machine, then compare them.

A checkout is measured by `attnbench run` in a process of its own, with its code and backends.
"""

import json
import os
import secrets
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..files.errors import BadInput, EnvironmentUnmet, Refusal, shown, unless_refused
from ..files.safe_files import refuse_way_out, write_whole
from ..process.command import SAFE_PATH, run_command
from .arguments import DEFAULT_ROOT, Device, Plan, public
from .measuring import worker_variables
from .sides import against, runs_in, why_nothing_is_ok

if TYPE_CHECKING:
    from ...reports.comparison.compare import Comparison
    from ...reports.comparison.gate import Gate

VERDICTS = {"passed": "passed", "failed": "failed", "nothing decided": "undecided"}
SUMMARY_BYTES = 1_000_000  # GitHub discards a summary of more than 1024 KiB
USUAL_SCENARIOS = ("gate.yaml", "bench.yaml", ".ci/gate.yaml")
USUAL_MARGINS = "latency: 5%, peak_bytes: 0%"
USUAL_MARGIN = "5%"
NOTHING_DECIDED = 6
EXIT_CODES = {"passed": 0, "failed": 3, "nothing decided": NOTHING_DECIDED}


class NotMeasured(Refusal):
    """A side could not be measured."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How both are measured and judged. `margins`: a file or an expression, as of `attnbench
    compare --gate`; `margin`: within it two times are the same. `baseline`: an earlier run, if no
    base was measured. `wait`: for a device that another run has, instead of refusing. `wait_idle`:
    first wait until the cores are idle, so long at most, as 10m.
    """

    turns: int = 5
    plan: str | None = None
    device: str | None = None
    margins: str = USUAL_MARGINS
    margin: str = USUAL_MARGIN
    fail_on_undecided: bool = False
    baseline: str | None = None
    wait: bool = False
    wait_idle: str | None = None
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkouts:
    """What is measured; `base`: "" for none. `code`, `backend_dir`: folders of each, for PYTHONPATH
    and for backends of its own. `allow_import`: also modules that the scenario names. `python`: the
    interpreter that measures, `base_python` that of the base.
    """

    base: str
    head: Path = Path()
    code: str | None = None
    backend_dir: str | None = None
    allow_import: bool = False
    python: str = sys.executable
    base_python: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """`verdict`: passed, failed, undecided, or none if nothing was compared: `refused` says why,
    or nothing was asked for. `exit_code`: as `attnbench gate` ends.
    """

    verdict: str
    exit_code: int
    comparison: "Comparison | None"
    summary: str
    refused: str = ""


@public
def gate(
    base: str | Path,
    head: str | Path = ".",
    *,
    scenario: str | None = None,
    turns: int = 5,
    plan: Plan | None = None,
    device: Device | None = None,
    gate: str = USUAL_MARGINS,
    margin: str = USUAL_MARGIN,
    fail_on_undecided: bool = False,
    baseline: str | None = None,
    code: str | None = None,
    backend_dir: str | None = None,
    allow_import: bool = False,
    python: str = sys.executable,
    base_python: str | None = None,
    threads: int | None = None,
    output: str | Path | None = None,
    wait: bool = False,
    wait_idle: str | None = None,
    quiet: bool = True,
) -> dict[str, Any]:
    """Measure two checkouts in turns: did the code become slower? As `attnbench gate BASE HEAD`.

    `base`: a folder, or a commit of the repository of `head`; "" for `head` alone. `gate`: the
    margins. `code`, `backend_dir`: folders of each, for PYTHONPATH and for backends of its own;
    `allow_import`: workers may import the modules that the scenario names. `output`: for runs, page
    and summary; results/gate-TIME if not given.

    Returns `verdict` (passed, failed, undecided, none), `reason` for none, the folder `output`, and
    `compare`, what `attnbench compare --format json` prints, or None. Raises Refusal.
    """
    from ...reports.comparison.text import as_json

    settings = Settings(
        turns=turns,
        plan=plan,
        device=device,
        margins=gate,
        margin=margin,
        fail_on_undecided=fail_on_undecided,
        baseline=baseline,
        wait=wait,
        wait_idle=wait_idle,
        quiet=quiet,
    )
    checkouts = Checkouts(
        base=str(base),
        head=Path(head),
        code=code,
        backend_dir=backend_dir,
        allow_import=allow_import,
        python=python,
        base_python=base_python,
    )
    if turns < 1:
        raise BadInput(f"turns: found {turns}; wanted 1 or more")
    out = new_folder() if output is None else Path(output)
    with worker_variables(threads):
        measure(scenario, checkouts, settings, out)
    found = judge(settings, out)
    compared = found.comparison
    return {
        "verdict": found.verdict,
        "reason": found.refused,
        "output": str(out),
        "compare": None if compared is None else json.loads(as_json(compared)),
    }


def new_folder() -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Path(DEFAULT_ROOT) / f"gate-{stamp}-{secrets.token_hex(4)}"  # no two starts share one


# ---- measure -------------------------------------------------------------------------------------


def measure(scenario: str | None, checkouts: Checkouts, settings: Settings, out: Path) -> None:
    """Into out/head and out/base: base, head, head, base, base, head, ...

    A turn is one run of each, directly after each other, so that slow drift of the machine affects
    both equally. Raises Refusal.
    """
    from ..run.threads import worker_threads
    from ..terminal.idle import await_idle
    from ..terminal.progress import say

    head = checkouts.head
    if not head.is_dir():
        raise BadInput(f"{head}: no such folder; wanted the checkout that is judged")
    usual = (str(head / name) for name in USUAL_SCENARIOS if (head / name).is_file())
    scenario = scenario or next(usual, None)
    if scenario is None:
        raise BadInput(
            f"--scenario: not given, and {head} has no {' or '.join(USUAL_SCENARIOS)}; wanted a"
            " file, or a shipped one such as quickstart"
        )
    given = {"--device": settings.device, "--plan": settings.plan}
    device, plan = ([name, value] if value else [] for name, value in given.items())
    flags = {"--allow-import": checkouts.allow_import, "--wait": settings.wait}
    switches = [flag for flag, on in flags.items() if on]
    with _ended_by_signals(), _only_writer(out), base_folder(checkouts, out) as base:
        await_idle(settings.wait_idle, quiet=settings.quiet)
        sides = {"head": (head, checkouts.python)}
        if base is not None:
            sides = {"base": (base, checkouts.base_python or checkouts.python), **sides}
        words = ["run", scenario, *plan, *device, *switches]
        with worker_threads(settings.device or "auto") as few_threads:  # the same for both
            if few_threads and not settings.quiet:
                say(f"note: {few_threads}", stderr=True)
            for turn in range(settings.turns if base is not None else 1):
                for side in reversed(sides) if turn % 2 else sides:
                    if base is not None and not settings.quiet:
                        say(f"turn {turn + 1} of {settings.turns}: {side}", stderr=True)
                    seeded = [*words, "--seed", str(turn)]
                    code = _measured(side, *sides[side], seeded, checkouts, out)
                    write_whole(out / f"{side}.code", f"{code}\n")
                    if code and (why := why_nothing_is_ok(str(out / side))) and base is not None:
                        raise NotMeasured(f"{side}: none of its cases has a result; {why}", code)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP, unless ignored, end what runs and remove the worktree, as Ctrl-C does."""

    def end(number: int, _: FrameType | None) -> None:
        raise NotMeasured(f"stopped by {signal.Signals(number).name}", 128 + number)

    ours = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []  # Python lets the main thread alone handle signals
    try:
        for number in ours:
            signal.signal(number, end)
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _only_writer(out: Path) -> Iterator[None]:
    """Hold the folder: runs of two at once would count as turns of one. Raises Refusal."""
    from ..rows.run_store import writer_lock

    with unless_refused(out, "choose another with --output DIR", "cannot be made"):
        refuse_way_out(out)
        out.mkdir(parents=True, exist_ok=True)
    lock = writer_lock(out)
    try:
        if (out / "head").exists() or (out / "base").exists():
            raise BadInput(
                f"{out}: has runs already, which would count as turns; remove it, or choose another"
                " with --output DIR"
            )
        yield
    finally:
        lock.release()


def _measured(
    side: str, checkout: Path, python: str, words: list[str], checkouts: Checkouts, out: Path
) -> int:
    """By the checkout's code and backends. 1 is no failure of a side: a failed case has a row."""
    environment = dict(os.environ)
    if checkouts.code:
        paths = [str(checkout.resolve() / checkouts.code), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if checkouts.backend_dir:
        environment["ATTNBENCH_BACKENDS"] = str(checkout.resolve() / checkouts.backend_dir)
    code = _attnbench(python, [*words, "--quiet", "--out", str(out / side)], environment)
    if code not in (0, 1):
        raise NotMeasured(
            f"{checkout}: {side} could not be measured; see the message above (exit code {code})",
            code,
        )
    return code


def _attnbench(python: str, words: list[str], environment: Mapping[str, str]) -> int:
    try:
        done = run_command(
            [python, *SAFE_PATH, "-m", "attnbench", *words], env=environment, show_errors=True
        )
    except OSError as error:
        raise BadInput(
            f"{python}: does not run ({error.strerror}); wanted an interpreter with attnbench"
        ) from None
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


@contextmanager
def base_folder(checkouts: Checkouts, out: Path) -> Iterator[Path | None]:
    """BASE as a folder: itself, or a worktree of the commit it names, removed afterwards."""
    base, head = checkouts.base, checkouts.head
    if not base or Path(base).is_dir():
        yield Path(base) if base else None
        return
    if (
        base.startswith("-")
        or _git(head, "rev-parse", "--verify", "-q", f"{base}^{{commit}}") is None
    ):
        raise BadInput(
            f"{shown(base)}: neither a folder nor a commit of {head}; wanted the checkout to"
            " compare with"
        )
    below = _git(head, "rev-parse", "--show-prefix") or ""
    tree = (out / "base-checkout").absolute()
    remove = ("worktree", "remove", "--force", str(tree))
    _git(head, *remove)  # one that a killed gate left
    if _git(head, "worktree", "add", "--quiet", "--detach", str(tree), base) is None:
        raise EnvironmentUnmet(f"{tree}: git cannot make a worktree of {shown(base)} there")
    try:
        yield tree / below
    finally:
        _git(head, *remove)


def _git(folder: Path, *words: str) -> str | None:
    """What git prints; None if it fails, or is not installed."""
    if (git := shutil.which("git")) is None:
        return None
    done = run_command([git, "-C", str(folder), *words])
    return done.stdout.strip() if done.returncode == 0 else None


# ---- judge ---------------------------------------------------------------------------------------


def judge(settings: Settings, out: Path) -> Judged:
    """Compare, and write summary.md, compare.json, report.md and report.html into `out`. Raises
    BadInput.
    """
    from ...reports.comparison.gate import Gate
    from .margins import read_margins

    run = out / "head" / "latest"
    if not run.exists():
        raise BadInput(f"{out}: has no run of HEAD; measure first, without --step judge")
    margins = read_margins(settings.margins)
    limits = Gate(margins=margins, fail_on_undecided=settings.fail_on_undecided)
    found, verdict, refused = None, "none", ""
    try:
        found = _compared(limits, settings, out, run)
    except Refusal as error:
        refused, code = str(error), error.exit_code
    else:  # without anything to compare with, that of the run
        code = int((out / "head.code").read_text()) if found is None else 0
    if found is not None and found.gate_result is not None:
        outcome = found.gate_result.outcome
        code, verdict = EXIT_CODES[outcome], VERDICTS[outcome]
    summary = _written(found, out, run)
    return Judged(
        verdict=verdict, exit_code=code, comparison=found, summary=summary, refused=refused
    )


def _compared(gate: "Gate", settings: Settings, out: Path, run: Path) -> "Comparison | None":
    """None if there is nothing to compare with. Raises Refusal."""
    from ...reports.comparison.compare import compare_interleaved
    from .margins import margin_ratio

    ratio, baseline = margin_ratio(settings.margin), settings.baseline
    if (out / "base").exists():
        sides = runs_in(str(out / "base")), runs_in(str(out / "head"))
        return compare_interleaved(*sides, gate, margin_ratio=ratio)
    if not baseline:
        return None
    return against(baseline, run.resolve(), Path(DEFAULT_ROOT), gate, margin_ratio=ratio)


def _written(found: "Comparison | None", out: Path, run: Path) -> str:
    """Write the files; returns the summary."""
    from ...reports.comparison import text
    from ...reports.pages import html, markdown
    from ...reports.pages.report import open_report

    (out / "compare.json").unlink(missing_ok=True)
    if found is not None:
        write_whole(out / "compare.json", text.as_json(found))
    opened = open_report([run.resolve()])
    html.write_page(opened, out / "report.html")
    page = markdown.render(opened)
    write_whole(out / "report.md", page)
    summary = text.markdown(found) if found is not None else ""
    most = int(os.environ.get("MOST_BYTES", SUMMARY_BYTES))
    if len(summary.encode()) + len(page.encode()) <= most:
        summary += f"\n{page}"
    else:
        summary += "\nThe report is too long for a summary; the page has it.\n"
    write_whole(out / "summary.md", summary)
    return summary
