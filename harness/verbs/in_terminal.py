"""Runs that a verb measures, as a terminal is told of them: one, or one for each of several
scenarios.
"""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer
from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from ..devices.load import worker_threads
from ..devices.this_device import no_device
from ..files.errors import EnvironmentUnmet, Refusal, option
from ..files.printable import spaced
from ..rows.record import FAILURES
from ..rows.run_files import read_meta
from ..run.suite import earlier_run, measure_entry
from ..terminal.live_bar import busy
from ..terminal.progress import counts, echo, kept, say, started
from .measuring import How, Job, started_job

if TYPE_CHECKING:
    from ..cases.case import Wall
    from ..rows.states import RunState
    from ..run.run_rows import RunResult
    from ..run.suite import SuiteEntry
    from ..scenario.preflight import Preflight

    End = RunResult | Refusal

SIGNALLED = 128  # exit codes above tell the signal


def tell_entries(entries: "Sequence[SuiteEntry]", request: Any, *, several: bool = False) -> int:
    """Measure them, or with --dry-run say what is known before. The worst exit code."""
    if request.dry_run:
        return _print_dry_run(entries)
    how = How.of(request, entries)
    return _tell_several(entries, how) if several else tell(started_job(entries[0], request), how)


def tell(job: Job, how: How) -> int:
    """Measure a run. Its folder goes to stdout, a summary to stderr."""
    result = how.measured(job)
    if how.request.json:
        end = {"reason": "end", "run": str(result.path), "statuses": dict(result.statuses)}
        typer.echo(json.dumps(end | how.request.answers(result.path)))
        return result.exit_code
    typer.echo(result.path)
    if how.talks and result.signal is not None:
        go_on = f"Continue: attnbench run --resume {shlex.quote(str(result.path))}"
        say(f"{kept(result.statuses)} {go_on}", stderr=True)
    elif how.talks:
        _print_end([result], result.few_threads)
    return result.exit_code


def _tell_several(entries: "Sequence[SuiteEntry]", how: How) -> int:
    """Each a run of its own; what has finished is left, what was stopped goes on."""
    root, seed = how.request.runs, how.request.seed
    ends: list[End] = []
    how.wait_until_idle()
    with how.options() as options:
        away = options.engine is not None
        earlier = [  # of other engines the devices are not known yet: there all is measured
            None if away else earlier_run(one, root, seed) for one in entries
        ]
        left = (read_meta(one.path) for one in earlier if one is not None and not one.is_finished)
        meta = next(left, None)  # all have as many threads as that run had
        with worker_threads("elsewhere" if away else "auto", meta) as few_threads:
            if few_threads and how.talks:
                say(f"note: {few_threads}", stderr=True)
            for number, (entry, before) in enumerate(zip(entries, earlier, strict=True)):
                _print_begin(number, len(entries), entry, how)
                # once one is measured, who takes the device skips none
                waits = options.wait or not all(isinstance(one, Refusal) for one in ends)
                with started(options.listener):
                    end = measure_entry(entry, before, root, seed, replace(options, wait=waits))
                ends.append(end)
                _print_entry(entry, end, before, how)
                if end.exit_code > SIGNALLED:
                    break
    code = max(end.exit_code for end in ends)
    results = [end for end in ends if not isinstance(end, Refusal)]
    if how.request.json:
        statuses = sum((end.statuses for end in results), Counter[str]())
        told = [*map(_as_json, entries, ends)]  # a signal ends them early
        typer.echo(json.dumps({"reason": "end", "entries": told, "statuses": dict(statuses)}))
    elif how.talks and code > SIGNALLED:
        say("Stopped: rows are kept. Continue with the same command.", stderr=True)
    elif how.talks and results:
        _print_end(results, few_threads)
    return code


def _print_begin(number: int, of: int, entry: "SuiteEntry", how: How) -> None:

    scenario = entry.scenario
    if how.request.json:
        begun = {"reason": "entry", "number": number, "of": of, "scenario": scenario.name}
        typer.echo(json.dumps(begun))
    elif how.talks:
        place = f"{number + 1} of {of}: {escape(scenario.name)}:"
        echo(f"\n[bold]{place}[/] {escape(scenario.question)}", stderr=True)


def _print_entry(entry: "SuiteEntry", end: "End", earlier: "RunState | None", how: How) -> None:

    if isinstance(end, Refusal):
        typer.echo(f"{entry.scenario.name}: {end}", err=True)
        return
    if not how.request.json:
        typer.echo(end.path)
    if how.talks:
        skipped = earlier is not None and earlier.is_finished
        said = "; skipped: already finished. To measure again, use another --runs."
        say(f"{counts(end.statuses)}{said if skipped else ''}", stderr=True)


def _as_json(entry: "SuiteEntry", end: "End") -> dict[str, Any]:
    if isinstance(end, Refusal):
        return {"scenario": entry.scenario.name, "ended": "refused", "run": None}
    ended = "finished" if end.signal is None else "interrupted"
    return {"scenario": entry.scenario.name, "ended": ended, "run": str(end.path)}


def _print_end(results: "Sequence[RunResult]", few_threads: str) -> None:
    """An answer per question, and what to do next."""
    runs = [one.path for one in results]
    statuses = sum((one.statuses for one in results), Counter[str]())
    say(counts(statuses), stderr=True)
    if few_threads:
        say(few_threads, stderr=True)
    with busy("reading the results"):
        from ...reports.pages.report import open_report, per_question
        from ...reports.pages.terminal import render_briefly, searched_walls

        found = per_question(open_report(runs))
    for one in found:
        if len(results) > 1:
            say("", stderr=True)
        for part in (*render_briefly(one), *searched_walls(one)):
            echo(part, stderr=True)
    where = shlex.join(map(str, runs))
    if any(statuses[status] for status in FAILURES):
        say(f"why it failed: attnbench show {where} --sections refusals", stderr=True)
    say(f"the page: attnbench show {where} --open", stderr=True)


# ---- --dry-run: every case and wall with its prediction ------------------------------------------

COLUMNS = ("case", "input_bytes", "predicted_peak_bytes", "work_flops", "preflight")
WALL_COLUMNS = ("wall", "predicted N", "remark")
LEAVE_OUT = ("work_flops", "input_bytes")


def _print_dry_run(entries: "Sequence[SuiteEntry]") -> int:
    for entry in entries:
        for table in preflight_tables(entry):
            echo(table)
    return 0


def preflight_tables(entry: "SuiteEntry") -> Iterator[RenderableType]:
    """Cases with bytes, predicted peak, work and refusals; walls with their prediction. Raises
    EnvironmentUnmet if there is no such device.
    """
    with busy("starting"):
        from ..devices.environment import available_bytes, pick_device
        from ..run.start import budget_bytes_of
        from ..scenario.preflight import preflight_outside_worker
        from ..scenario.selection import select
        from .tables import table

    scenario, shard = entry.scenario, entry.selection.shard
    with busy("predicting"):
        device, why = pick_device(scenario.device)
        if why:
            raise EnvironmentUnmet(
                f"{no_device(scenario.device, why)}; try with {option('device', 'cpu')}"
            )
        budget = budget_bytes_of(scenario, available_bytes(device))
        selected = select(scenario, device.type, entry.selection)
        cases = [
            (one.id, *_case(preflight_outside_worker(one, device, budget), budget))
            for one in selected.cases
        ]
        walls = [(one.id, *_wall(one, device, budget)) for one in selected.walls]
    where = f"on {device.type}, budget {bytes_said(budget)}"
    if cases:
        title = f"{scenario.name}: {len(cases)} {'case' if len(cases) == 1 else 'cases'} {where}"
        yield table(title, COLUMNS, cases, right=COLUMNS[1:4], may_go=LEAVE_OUT, ids=True)
    if walls:
        title = f"{scenario.name}: {len(walls)} {'wall' if len(walls) == 1 else 'walls'} {where}"
        yield table(title, WALL_COLUMNS, walls, right=WALL_COLUMNS[1:2], ids=True)
    if shard is not None:
        part, whole = len(selected.planned), len((selected.whole or selected).planned)
        yield Text(f"Shard {shard}: {part} of {whole} cases, walls and studies.")


def bytes_said(count: int) -> str:
    """`15.1 GiB (16,211,355,238 bytes)`: cases are held against the exact number."""
    return f"{count / 2**30:.3g} GiB ({spaced(count)} bytes)"


def _case(view: "Preflight", budget: int) -> tuple[str, ...]:
    peak, inputs = view.fields["predicted_peak_bytes"], view.fields["input_bytes"]
    if view.status is not None:
        result = f"{view.status}: {view.reason}"
    elif peak is None:
        result = view.fields["predicted_reason"]
    else:
        result = "fits" if peak + inputs <= budget else "beyond the budget"
    peak_text = "-" if peak is None else spaced(peak)
    return spaced(inputs), peak_text, spaced(view.fields["work_flops"]), result


def _wall(wall: "Wall", device: Any, budget: int) -> tuple[str, str]:
    """The longest N, beside the formula of another dtype or backend at least that; and why."""
    from ..scenario.preflight import not_imported, predict

    if reason := not_imported(wall.backend):
        return "-", reason
    known: Mapping[str, Any] = predict(wall, device, budget)
    n, bound = known["predicted_seq_len"], known.get("predicted_source") == "nearest"
    return "-" if n is None else f"{'>= ' if bound else ''}{spaced(n)}", known["predicted_reason"]
