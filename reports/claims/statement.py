"""A claim before it is tested: its words, and the test that gives the evidence."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from ...harness.rows.findings import Finding, by, findings_of
from ..data.exactness import RECURRENT, is_exact
from ..data.row_groups import Row, family
from .verdict import Evidence, agreed, shown

F = TypeVar("F", bound=Finding)
NAME = re.compile(r"([A-Z])(\d+)([a-z]?)")
REPORTS = Path(__file__).parent.parent
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
        return findings_of(study, self.studies)


Test = Callable[[Measured], Iterable[Evidence]]


@dataclass(frozen=True, slots=True)
class Statement:
    """`tested`: how. `needs`: what a run needs for it. `study`: the one that it reads, if any.

    `test`: the evidence, none if the run does not test it.
    """

    name: str
    statement: str
    tested: str
    needs: str
    study: str
    test: Test

    def parts(self, run: Measured) -> tuple[Evidence, ...]:
        """All evidence for one backend, or whatever it is of, together."""
        return tuple(
            Evidence(of, agreed(one.verdict for one in some), shown(some))
            for of, some in by(self.test(run), lambda one: one.of).items()
        )


def claim(
    name: str,
    statement: str,
    *,
    tested: str,
    needs: str = "",
    study: type[Finding] | None = None,
) -> Callable[[Test], Statement]:
    """The statement that a test decides, to write above it; `needs` is the study by default."""
    read = study.STUDY if study else ""
    return partial(Statement, name, statement, tested, needs or f"studies: [{read}]", read)


def statements() -> dict[str, Statement]:
    """Those of all files, in the order C1, C3a, C3b, C16, Q1.

    They are in this folder, or in a file of a pack whose name ends in `statements`.
    """
    found: dict[str, Statement] = {}
    for file in _files():
        for one in vars(import_module(file)).values():
            if isinstance(one, Statement) and found.setdefault(one.name, one) is not one:
                raise ValueError(f"{file}: the claim {one.name} is in another file too")
    return {name: found[name] for name in sorted(found, key=_place)}


def _place(name: str) -> tuple[str, int, str]:
    if (known := NAME.fullmatch(name)) is None:
        raise ValueError(f"the claim {name}: wanted a name such as C3a")
    return known[1], int(known[2]), known[3]


def _files() -> Iterator[str]:
    package = __name__.rsplit(".", 2)[0]
    for file in sorted(REPORTS.glob("*/[a-z]*.py")):
        folder = file.parent.name
        if folder == "claims" or file.stem.endswith("statements"):
            yield f"{package}.{folder}.{file.stem}"
