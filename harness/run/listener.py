"""Who hears how a run goes: a progress bar, JSON lines, a test."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..rows.record import Record


class Begun(NamedTuple):
    """What is said of a run as it begins. `planned`: how many cases, walls and studies; `done`: how
    many have a row already; `steps`: of what is left, by id, at most; `devices`: that share them.
    """

    path: Path
    planned: Mapping[str, int]
    done: int = 0
    remarks: Sequence[str] = ()
    steps: Mapping[str, int] = {}
    devices: int = 1


class Listener:
    """Each method is called once per event, in the order of the run; these do nothing."""

    def start(self) -> None:
        """May be called before `begin`, so that also starting workers is seen."""

    def begin(self, run: Begun) -> None: ...

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None:
        """The walls by id, with the fields of their rows that need no trial."""

    def running(self, what: str, phase: str) -> None: ...

    def steps(self, what: str, done: int) -> None:
        """So many steps of a case or wall are done: its check, then its blocks, or its trials."""

    def finished(self, record: Record) -> None: ...

    def remark(self, text: str) -> None: ...

    def end(self) -> None:
        """Of what `start` began, however it went."""
