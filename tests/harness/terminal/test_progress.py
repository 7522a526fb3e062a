"""harness/terminal/progress.py at 80 and at 40 columns: what a person reads while a run goes on."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from attnbench.harness.cases.case import Case, ShortNames
from attnbench.harness.rows.record import Record, Status
from attnbench.harness.run.listener import Begun
from attnbench.harness.terminal import live_bar
from attnbench.harness.terminal.live_bar import BAR_FROM, SafeConsole
from attnbench.harness.terminal.progress import PHASES, LiveProgress, progress
from attnbench.impls.problem import Problem

CASES = [
    Case(backend=backend, problem=Problem(batch=1, seq_len=n, d_model=512, heads=heads))
    for n in (2048, 16384)
    for heads in (1, 8)
    for backend in ("naive", "fused", "sdpa:efficient")
]
REASON = "one step took more than 60 s; raise the limit with --timeout, or make the case smaller"


def listener(width: int, *, terminal: bool = True) -> tuple[LiveProgress, StringIO]:
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=terminal,
        highlight=False,
        color_system=None,
        soft_wrap=not terminal,
    )
    progress = LiveProgress(console)
    return progress, out


def begun(width: int, *, terminal: bool = True) -> tuple[LiveProgress, StringIO]:
    progress, out = listener(width, terminal=terminal)
    steps = {case.id: 13 for case in CASES}
    progress.begin(Begun(Path("results/a-run"), {"cases": len(CASES)}, steps=steps))
    return progress, out


def live_line(progress: LiveProgress, width: int) -> str:
    """The line of the bar as it is now."""
    out = StringIO()
    Console(file=out, width=width, force_terminal=False).print(progress.bar.get_renderable())
    (line,) = out.getvalue().splitlines()
    return line


def finish(progress: LiveProgress, case: Case, status: Status, reason: str = "") -> None:
    values = {"block_ms": [[[1.5]] * 3], "exactness": "exact"} if status is Status.OK else {}
    values |= {"device": "cpu", "attempt": 1}
    progress.finished(Record.of(case, status, reason, values))


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("phase", PHASES)
def test_the_line_keeps_count_and_times_and_fits(width: int, phase: str) -> None:
    progress, _ = begun(width)
    finish(progress, CASES[0], Status.OK)
    progress.running(CASES[-1].id, phase)
    line = live_line(progress, width)
    progress.end()
    assert len(line) <= width
    unit = " steps" if width >= BAR_FROM else ""
    assert re.search(rf"\b13/156{unit} +\d+:\d\d, \d+:\d\d left", line)
    assert PHASES[phase][:6] in line


def test_the_time_left_follows_the_steps_of_this_run() -> None:
    now_s = 0.0
    progress, _ = begun(80)
    (task,) = progress.bar.tasks
    task.start_time, task._get_time = now_s, lambda: now_s
    assert "left" not in live_line(progress, 80)
    now_s = 14.0
    progress.steps(CASES[0].id, 5)
    progress.steps(CASES[1].id, 2)
    line = live_line(progress, 80)  # 2 s a step, of which 149 are left
    assert "7/156 steps" in line
    assert "4:58 left" in line
    finish(progress, CASES[2], Status.UNSUPPORTED, "no")  # 13 steps less, and one that was taken
    line = live_line(progress, 80)
    progress.end()
    assert "20/156 steps" in line
    assert "3:58 left" in line


def test_what_a_signal_left_out_is_not_listed() -> None:
    progress, out = begun(80)
    before = out.getvalue()
    finish(progress, CASES[0], Status.INTERRUPTED, "stopped by SIGINT")
    progress.end()
    assert "SIGINT" not in out.getvalue()[len(before) :]


@pytest.mark.parametrize("width", [40, 80])
def test_lines_of_finished_cases_break_at_words_and_fit(width: int) -> None:
    progress, out = begun(width)
    finish(progress, CASES[0], Status.OK)
    finish(progress, CASES[-1], Status.TIMEOUT, REASON)
    progress.end()
    lines = out.getvalue().replace("\r", "\n").splitlines()
    shown = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip() for line in lines]
    assert max(map(len, shown)) <= width
    text = " ".join(" ".join(shown).split())
    assert "1/12 naive n2048 h1 1.5 ms" in text
    for word in REASON.split():
        assert any(word in line.split() for line in shown), word


def test_in_a_pipe_ids_are_whole_and_nothing_is_folded() -> None:
    progress, out = begun(80, terminal=False)
    finish(progress, CASES[-1], Status.TIMEOUT, REASON)
    progress.end()
    (line,) = [line for line in out.getvalue().splitlines() if REASON in line]
    assert CASES[-1].id in line
    assert "\x1b" not in out.getvalue()


def test_short_names_differ_where_ids_do() -> None:
    ids = [case.id for case in CASES]
    names = ShortNames(ids)
    assert len({names.of(one) for one in ids}) == len(ids)
    assert names.of(ids[0]) == "naive n2048 h1"
    alone = ShortNames(ids[:1])
    assert alone.of(ids[0]).split() == ids[0].split("-")


@pytest.mark.parametrize(("ipywidgets", "is_shown"), [(object(), True), (None, False)])
def test_a_notebook_shows_a_bar_where_rich_can_draw_one(
    ipywidgets: object, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_bar, "find_spec", lambda name: ipywidgets)
    out = SafeConsole(file=StringIO(), force_jupyter=True)
    assert live_bar.live_bar(out).disable is not is_shown
    assert not live_bar.shows_bar(SafeConsole(file=StringIO(), force_jupyter=False))


def test_json_lines_go_where_stdout_was_when_they_were_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While Ray runs, sys.stdout is another."""
    json_lines = progress(quiet=False, as_json=True)
    with redirect_stdout(StringIO()):
        json_lines.remark("a node was lost")
    assert json.loads(capsys.readouterr().out) == {"reason": "remark", "text": "a node was lost"}
