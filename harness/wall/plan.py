"""The walls of a scenario: one for each backend and each combination of the axes other than the sequence length."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...impls.problem import Problem
from ..case import Case, identity, in_environment, problem_of
from ..scenario import Scenario
from ..scenario.grid import length_beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """A backend, and a problem whose seq_len is the unknown. Keys and values grow with it, unless `kv_seq_len` fixes their length.

    `python` as of a case.
    """

    backend: str
    problem: Problem
    kv_seq_len: int | None = None
    python: str | None = None

    @property
    def id(self) -> str:
        """Readable, stable, unique among cases and walls, for example wall-fused-b1-d512-h8-fp32-forward-core."""
        lengths = [] if self.kv_seq_len is None else [f"kv{self.kv_seq_len}"]
        return in_environment(f"wall-{identity(self.backend, self.problem, lengths)}", self.python)

    def at(self, seq_len: int) -> Case:
        """The case at one length."""
        kv_seq_len = seq_len if self.kv_seq_len is None else self.kv_seq_len
        problem = replace(self.problem, seq_len=seq_len, kv_seq_len=kv_seq_len)
        return Case(backend=self.backend, problem=problem, python=self.python)

    def fields(self) -> dict[str, Any]:
        """The wall as a row and a plan carry it: no seq_len, and kv_seq_len only where it is fixed."""
        rest = {name: value for name, value in asdict(self.problem).items() if name != "seq_len"}
        return {"case": self.id, "backend": self.backend, "python": self.python, **rest, "kv_seq_len": self.kv_seq_len}


def walls_of(scenario: Scenario, device: str, pythons: Sequence[str | None] = (None,)) -> tuple[Wall, ...]:
    """Every backend on every combination in every environment, each once; none where the scenario does not ask for walls."""
    made = (
        Wall(backend=backend, problem=Problem(**values), kv_seq_len=values.get("kv_seq_len"), python=python)
        for values in scenario.wall_values(device)
        for backend in scenario.backends
        for python in pythons
    )
    return tuple({wall.id: wall for wall in made}.values())


def wall_of(fields: dict[str, Any]) -> Wall:
    """The wall that `fields` was written from; further keys are ignored. Raises KeyError where one is missing."""
    kv_seq_len = fields["kv_seq_len"]
    problem = problem_of({**fields, "seq_len": length_beside(kv_seq_len), "kv_seq_len": kv_seq_len or 0})
    return Wall(backend=fields["backend"], problem=problem, kv_seq_len=kv_seq_len, python=fields.get("python"))
