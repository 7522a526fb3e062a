"""A run inside the caller's process: with its signals, its environment and a progress bar if asked
for.
"""

import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from sysconfig import get_paths
from typing import TYPE_CHECKING, Any

from ..files.errors import BadInput, Stopped, option
from .arguments import Models, as_argument

if TYPE_CHECKING:
    from ..run.listener import Begun, Listener
    from ..run.run_rows import RunResult
    from ..run.start import RunOptions
    from ..scenario import Change
    from ..scenario.selection import Selection

Row = Mapping[str, Any]
MOST_THREADS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What runs have in common. `wait_idle`: as --wait-idle. `of_packs`: values of their options.
    `folders`: from which workers may import, beside the current one.
    """

    wait: bool = False
    wait_idle: str | None = None
    quiet: bool = True
    allow_import: bool = False
    threads: int | None = None
    on_row: Callable[[Row], object] | None = None
    of_packs: Mapping[str, Any] = field(default_factory=dict)
    folders: Iterable[str] = ()

    @contextmanager
    def options(self, command: str) -> Iterator["RunOptions"]:
        """For runs in this process, with progress. Raises Refusal."""
        from ..run.packs import opted
        from ..run.start import RunOptions
        from ..terminal.idle import wait_until_idle
        from ..terminal.progress import progress, started

        wait_until_idle(self.wait_idle, quiet=self.quiet)
        listener = progress(quiet=self.quiet)
        translate(listener)
        if (on_row := self.on_row) is not None:
            listener.finished = _both(listener.finished, on_row)  # type: ignore[method-assign]
        options = RunOptions(
            command=[command],
            listener=listener,
            wait=self.wait,
            embedded=True,
            allow_import=self.allow_import,
        )
        options = opted(options, self.of_packs, dry_run=False)
        with worker_variables(self.threads, self.folders), started(listener), signals_passed_on():
            yield options


def translate(listener: "Listener") -> None:
    """Its remarks name arguments, not options."""
    begin, remark = listener.begin, listener.remark

    def begun(run: "Begun") -> None:
        begin(run._replace(remarks=[*map(as_argument, run.remarks)]))

    listener.begin = begun  # type: ignore[method-assign]
    listener.remark = lambda text: remark(as_argument(text))  # type: ignore[method-assign]


def _both(first: Callable[..., None], on_row: Callable[[Row], object]) -> Callable[..., None]:
    def finished(record: Any) -> None:
        first(record)
        on_row(dict(record.row))

    return finished


def measured(job: "Callable[[RunOptions], RunResult]", command: str, how: How) -> Path:
    """The folder of a run. A signal that ended it is raised again, for the caller's own handler."""
    from ..terminal.progress import say

    with how.options(command) as options:
        result = job(options)
    if result.few_threads and not how.quiet:
        say(as_argument(result.few_threads), stderr=True)
    return ended(result)


def ended(result: "RunResult") -> Path:
    path = result.path.resolve()  # it still leads there when the caller changes the directory
    if (
        result.signal == signal.SIGINT
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        raise KeyboardInterrupt(
            f"{path} has what was measured; attnbench.open_run({str(path)!r}).resume() goes on"
        )
    if result.signal is not None:
        signal.raise_signal(result.signal)
    return path


@contextmanager
def signals_passed_on() -> Iterator[None]:
    """One that came before there was anything to end in order."""
    try:
        yield
    except Stopped as stopped:
        signal.raise_signal(stopped.exit_code - 128)
        raise


@contextmanager
def worker_variables(threads: int | None = None, folders: Iterable[str] = ()) -> Iterator[None]:
    """Of the environment, for the workers that start meanwhile: torch's threads, and folders behind
    all others that they import from. Raises BadInput.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise BadInput(f"threads: found {threads}; wanted 1 to {MOST_THREADS}")
    before = dict(os.environ)
    path = before.get("PYTHONPATH", "").split(os.pathsep)
    found = {*path, str(Path.cwd()), *get_paths().values()}  # without these
    more = [one for one in dict.fromkeys(folders) if one not in found]
    changed = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    if more:
        changed["PYTHONPATH"] = os.pathsep.join([*filter(None, path), *more])
    os.environ.update(changed)
    try:
        yield
    finally:
        for name in changed:
            os.environ.pop(name)
        os.environ.update({name: before[name] for name in changed if name in before})


@contextmanager
def torch_threads_kept() -> Iterator[None]:
    """What is measured in this process sets them; the caller's number comes back."""
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


# ---- what is measured ----------------------------------------------------------------------------


def changes_of(changes: Mapping[str, Any], **fields: Any) -> "list[Change]":
    """Fields that are None are not set."""
    from ..scenario import Change

    given = {name.replace("__", "."): value for name, value in fields.items() if value is not None}
    return [
        Change(
            name,
            value,
            option("set", f"{name}={json.dumps(value, default=str, ensure_ascii=False)}"),
        )
        for name, value in (*given.items(), *changes.items())
    ]


def with_models(selection: "Selection", given: Models, tokens: str | Path | None) -> "Selection":
    """With the trained models to look at. Raises BadInput."""
    from ..run.packs import selected

    named: list[tuple[str | None, str]]
    if isinstance(given, Mapping):
        named = [(str(name), str(path)) for name, path in given.items()]
    else:
        paths = (given,) if isinstance(given, str | Path) else given
        named = [(None, str(path)) for path in paths]
    if tokens is not None and not named:
        raise BadInput("tokens: belong to checkpoints; give the model too")
    texts = None if tokens is None else str(tokens)
    return selected(selection, {"checkpoint": named, "tokens": texts})


def of_packs(
    on: str | None, address: str | None, devices: int | None, device_kind: str | None
) -> dict[str, Any]:
    """On whose devices: the options of `attnbench run --on`."""
    return {"on": on, "address": address, "devices": devices, "device_kind": device_kind}
