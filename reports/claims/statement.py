"""A claim before it is tested: its words, and the test that gives the evidence."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from ...harness.rows.findings import Finding
from ..data.exactness import RECURRENT, is_exact
from ..data.row_groups import Row, by, family
from ..data.study_processes import read_findings
from .verdict import ClaimVerdict, Evidence, agreed, jointly, shown

F = TypeVar("F", bound=Finding)
NAME = re.compile(r"([A-Z])(\d+)([a-z]?)")
LINEAR = ("sparse_local", "sparse_random", "linformer", "performer")
STRIDED = "sparse_strided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What claims are tested on: the rows of a run, and the findings of its studies.

    `every` has approximations and recurrent layers too.
    """

    every: Sequence[Row]
    studies: Any

    @property
    def rows(self) -> list[Row]:
        """Of exact attention."""
        return [row for row in self.every if is_exact(row)]

    @property
    def quadratic(self) -> list[Row]:
        """Those that claims on quadratic growth are about: no sparse pattern."""
        others = (*LINEAR, STRIDED, *RECURRENT)
        return [row for row in self.rows if family(row["backend"]) not in others]

    def of(self, study: type[F]) -> list[F]:
        """What this study found, by the model of its findings."""
        return read_findings(study, self.studies)


Test = Callable[[Measured], Iterable[Evidence]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """`tested`: how. `needs`: what a run needs for it. `studies`: those that it reads.

    `halves`: what must hold together, as evidence names it; a statement that is tested as a whole
    has one, "". `test`: the evidence, none if the run does not test it.
    """

    name: str
    statement: str
    tested: str
    needs: str
    studies: tuple[str, ...]
    halves: tuple[str, ...]
    test: Test

    def parts(self, run: Measured) -> tuple[Evidence, ...]:
        """All evidence for one backend, or whatever it is of, together.

        What supports is kept apart from what is open: another part may refute, and then it depends.

        Raises ValueError for evidence of a half that the statement does not have.
        """
        found = by(self.test(run), lambda one: (one.of, one.half))
        if unknown := {half for _, half in found} - set(self.halves):
            raise ValueError(f"{self.name}: evidence of {unknown}; wanted one of {self.halves}")
        return tuple(
            Evidence(of, agreed(one.verdict for one in same), shown(same), half)
            for (of, half), some in found.items()
            for same in _apart(some)
        )

    def verdict(self, parts: Sequence[Evidence]) -> ClaimVerdict:
        """Supported only if every half is; one without evidence leaves it not decided."""
        return jointly(
            agreed(one.verdict for one in parts if one.half == half) for half in self.halves
        )

    def missing(self, parts: Sequence[Evidence]) -> tuple[str, ...]:
        """The halves without evidence, beside others that have some."""
        tested = {one.half for one in parts if one.verdict != "not run"}
        return tuple(half for half in self.halves if tested and half not in tested)


def _apart(some: Sequence[Evidence]) -> Iterator[Sequence[Evidence]]:
    if agreed(one.verdict for one in some) != "not decided":
        yield some
        return
    supporting = [one for one in some if one.verdict == "supported"]
    yield from filter(None, (supporting, [one for one in some if one not in supporting]))


def claim(
    name: str,
    statement: str,
    *,
    tested: str,
    needs: str = "",
    study: type[Finding] | Sequence[type[Finding]] = (),
    halves: Sequence[str] = ("",),
) -> Callable[[Test], Statement]:
    """The statement that a test decides, to write above it; `needs` is the studies by default."""
    read = tuple(one.STUDY for one in ((study,) if isinstance(study, type) else study))

    def of(test: Test) -> Statement:
        return Statement(
            name=name,
            statement=statement,
            tested=tested,
            needs=needs or f"studies: [{', '.join(read)}]",
            studies=read,
            halves=tuple(halves),
            test=test,
        )

    return of


def statements() -> dict[str, Statement]:
    """Those of all files of this folder, in the order C1, C3a, C3b, C15."""
    found: dict[str, Statement] = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        file = f"{__package__}.{path.stem}"
        for one in vars(import_module(file)).values():
            if isinstance(one, Statement) and found.setdefault(one.name, one) is not one:
                raise ValueError(f"{file}: the claim {one.name} is in another file too")
    return {name: found[name] for name in sorted(found, key=_place)}


def _place(name: str) -> tuple[str, int, str]:
    if (known := NAME.fullmatch(name)) is None:
        raise ValueError(f"the claim {name}: wanted a name such as C3a")
    return known[1], int(known[2]), known[3]
