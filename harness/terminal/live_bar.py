"""One line at the bottom of a terminal that says what is going on, how far it is, and for how long.

On stderr, so that stdout carries data only; nothing is drawn if that is no terminal.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.segment import Segment
from rich.table import Column
from rich.text import Text

from ..files.printable import file_of, visible

BAR_FROM = 60  # columns: a narrower terminal has no room for a bar
FRAMES_PER_S = 4.0  # each is work beside what is measured


NO_BREAKS = {"\N{NO-BREAK SPACE}": "\ue0a0", "\N{NARROW NO-BREAK SPACE}": "\ue02f"}
"""What stands for them while rich folds lines: it breaks at every space, within 7 711 too. Both are
one column wide, and no text has the others: they are in an area for private use.
"""
FOLDING = str.maketrans(NO_BREAKS)
FOLDED = str.maketrans({held: space for space, held in NO_BREAKS.items()})


class SafeConsole(Console):
    """A console on which text is text: it colours and moves the cursor only by its own styles."""

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(text.translate(FOLDING), **settings)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(shown(text), style)


def shown(text: str) -> str:
    return visible(text.translate(FOLDED), lines=True)


def console(**settings: Any) -> Console:
    """stderr; rich itself leaves out colour without a terminal or with NO_COLOR."""
    file = file_of(sys.stderr)
    return SafeConsole(file=file, highlight=False, **{"soft_wrap": not file.isatty()} | settings)


def live_bar(out: Console) -> Progress:
    """A line that always keeps M/N and the times; what is being done gets the rest of it."""
    bar = (BarColumn(bar_width=16),) if out.width >= BAR_FROM else ()
    doing = TextColumn(
        "{task.fields[what]}",
        style="dim",
        markup=False,
        table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
    )
    return Progress(
        SpinnerColumn("dots" if out.encoding.startswith("utf") else "line"),
        *bar,
        CountAndTimes(" steps" if bar else "", table_column=Column(no_wrap=True)),
        doing,
        console=out,
        expand=True,
        transient=True,
        refresh_per_second=FRAMES_PER_S,
        disable=not shows_bar(out),
    )


def shows_bar(out: Console) -> bool:
    """A terminal, or a notebook with what rich draws bars by there."""
    return out.is_terminal or (out.is_jupyter and find_spec("ipywidgets") is not None)


class CountAndTimes(ProgressColumn):
    """'12/36 steps 0:23, 0:31 left': no count before it is known; what is left from the field
    `left_ratio`, in times of what has passed.
    """

    def __init__(self, unit: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.unit = unit

    def render(self, task: Task) -> Text:
        total, elapsed_s, ratio = task.total, task.elapsed or 0.0, task.fields.get("left_ratio")
        count = "" if total is None else f"{task.completed:.0f}/{total:.0f}{self.unit} "
        left = "" if ratio is None else f", {clock_text(elapsed_s * ratio)} left"
        return Text.assemble((count, "bold"), (f"{clock_text(elapsed_s)}{left}", "cyan"))


class Steps:
    """Progress of a command that is not a run: each step by its name, 'of N' if N is known.

    A context; nothing is shown if stderr is no terminal or `quiet`.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.total: int | None = None
        self.bar = live_bar(console())
        self.bar.disable = self.bar.disable or quiet
        self.done = -1

    def __enter__(self) -> "Steps":
        self.task = self.bar.add_task("", total=self.total, what="")
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def step(self, what: str, total: int | None = None) -> None:
        """The step before has ended; this one begins. `total`: once it is known."""
        self.done = 0 if total and self.total is None else self.done + 1
        self.total = total or self.total
        self.bar.update(self.task, what=what, completed=self.done, total=self.total)


@contextmanager
def busy(what: str, *, quiet: bool = False) -> Iterator[None]:
    """One step of unknown length, such as importing torch."""
    with Steps(quiet=quiet) as steps:
        steps.step(what)
        yield


def clock_text(seconds: float) -> str:
    """'0:07', '12:30', '1:02:03'."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
