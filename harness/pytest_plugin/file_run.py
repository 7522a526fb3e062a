"""The run of one scenario file: all of it is measured when its first test asks."""

import signal
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

from ..files.errors import Refusal, Spelling, Stopped, option, spelled
from ..rows.record import Record
from ..run.listener import Begun
from ..run.start import RunOptions, start_run
from ..scenario import Change, Scenario, load, read_change
from ..scenario.selection import Selection
from ..terminal.progress import LiveProgress, lines_console
from .gate import base_of, shortest
from .options import PytestRequest

UNTIMED = "nothing was timed, as pytest-benchmark is disabled"
FIELDS = {
    "plan": "plan",
    "measure": "measure",
    "device": "device",
    "timeout": "limits.timeout_s",
    "memory_gib": "limits.memory_gib",
}
"""Options that change a field of every scenario."""


class FileRun(LiveProgress):
    """`base`: the stored run, or last:N, that it is compared with. `refusal`: why no case of the
    file has a result. `notes`: for the end of the session.
    """

    def __init__(self, file: Path, request: PytestRequest, config: pytest.Config) -> None:
        """Raises BadInput."""
        super().__init__(lines_console())
        self.out.quiet = config.getoption("capture") != "no"
        self.request, self.config = request, config
        self.scenario: Scenario = load(Path(shortest(file)), changes_of(request))
        wanted = request.fail_slower is not None
        self.base = base_of(self.scenario.name, request.against, request.runs) if wanted else None
        self.path: Path | None = None
        self.refusal: Refusal | None = None
        self.records: dict[str, Record] = {}
        self.statuses: Counter[str] = Counter()
        self.notes: list[str] = []

    def begin(self, run: Begun) -> None:
        run = run._replace(remarks=[spelled(one, Spelling.PYTEST) for one in run.remarks])
        self.path = run.path
        self.notes += run.remarks
        super().begin(run)

    def finished(self, record: Record) -> None:
        self.records[record.id] = record
        self.statuses[record.status] += 1
        super().finished(record)

    def remark(self, text: str) -> None:
        self.notes.append(text := spelled(text, Spelling.PYTEST))
        super().remark(text)

    def measure(self, cases: frozenset[str], *, timed: bool) -> float:
        """Measure the cases, unless it was done before. Raises Refusal. The seconds that the cases
        took, which belong to their tests.

        Without `timed` only correctness and memory are measured.
        """
        if self.refusal is not None:
            raise self.refusal
        if self.records:
            return 0.0
        scenario, request, project = self.scenario, self.request, self.config.rootpath
        if not timed:
            scenario = scenario.model_copy(update={"measure": ("memory",)})
            self.notes.append(UNTIMED)
        # from where the tests of the project import
        folders = tuple(
            str(Path(one).absolute()) for one in dict.fromkeys([str(project), *sys.path])
        )
        options = RunOptions(
            command=["pytest", *map(str, self.config.invocation_params.args)],
            listener=self,
            wait=request.wait,
            embedded=True,
            allow_import=folders if request.allow_import else False,
        )
        self.refusal = Refusal("its run ended early")
        try:
            with warnings.catch_warnings():
                # torch and other packages warn when they are imported; no case fails for that
                warnings.simplefilter("default")
                result = start_run(scenario, request.runs, 0, Selection(ids=cases), options)
            self.statuses, received = result.statuses, result.signal
        except Stopped as stopped:
            received = stopped.exit_code - 128
        except Refusal as refusal:
            self.refusal = refusal
            raise
        if received is not None:  # Ctrl-C then ends pytest in pytest's way
            signal.raise_signal(received)
            raise KeyboardInterrupt
        self.refusal = None
        return sum(record["spent_s"] or 0.0 for record in self.records.values())


def changes_of(request: PytestRequest) -> list[Change]:
    """Raises BadInput."""
    asked = {name: getattr(request, name) for name in FIELDS}
    return [
        *map(read_change, request.set),
        *(
            Change(FIELDS[name], value, option(name, text_of(value)))
            for name, value in asked.items()
            if value is not None
        ),
    ]


def text_of(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)
