"""A claim of the ledger before it is tested: its words, and the test that gives the evidence."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ....harness.rows.findings import Finding, findings_of
from ...data.exactness import is_exact
from ...data.row_groups import Row
from .claim_verdict import Evidence, Part, deciding, parts

F = TypeVar("F", bound=Finding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What claims are tested on: the rows of a run, and the findings of its studies.

    `rows` are of exact attention; `every` has approximations and recurrent layers too.
    """

    every: Sequence[Row]
    rows: Sequence[Row]
    studies: Any

    def of(self, study: type[F]) -> list[F]:
        """What this study found, by the model of its findings."""
        return findings_of(study, self.studies)


def measured(rows: Sequence[Row], studies: Any) -> Measured:
    exact = [row for row in rows if is_exact(row)]
    return Measured(every=rows, rows=exact, studies=studies)


Test = Callable[[Measured], Iterable[Evidence]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """`tested`: how. `needs`: what a run needs for it. `study`: the one that it reads, if any.

    `test`: the evidence, none if the run does not test it; `numbers`: which of it is shown.
    """

    name: str
    statement: str
    tested: str
    needs: str
    study: str
    numbers: Callable[[Sequence[Evidence]], str]
    test: Test

    def parts(self, of: Measured) -> tuple[Part, ...]:
        return parts(self.test(of), self.numbers)


def claim(
    name: str,
    statement: str,
    *,
    tested: str,
    needs: str = "",
    study: type[Finding] | None = None,
    numbers: Callable[[Sequence[Evidence]], str] = deciding,
) -> Callable[[Test], Statement]:
    """The statement that a test decides, to write above it; `needs` is the study by default."""

    def tested_by(test: Test) -> Statement:
        return Statement(
            name=name,
            statement=statement,
            tested=tested,
            needs=needs or f"studies: [{study.STUDY}]" if study else needs,
            study=study.STUDY if study else "",
            numbers=numbers,
            test=test,
        )

    return tested_by
