"""A claim of the ledger before it is tested: its words, and the test that gives the evidence."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...data.exactness import is_exact
from ...data.row_groups import Row
from .claim_verdict import Evidence, Part, deciding, parts

Finding = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What claims are tested on: the rows of a run, and the findings of its studies.

    `rows` are of exact attention; `every` has approximations and recurrent layers too.
    """

    every: Sequence[Row]
    rows: Sequence[Row]
    findings: Sequence[Any]

    def of(self, study: str) -> list[Finding]:
        return [one for one in self.findings if isinstance(one, dict) and one.get("study") == study]


def measured(rows: Sequence[Row], findings: Any) -> Measured:
    return Measured(
        every=rows,
        rows=[row for row in rows if is_exact(row)],
        findings=findings if isinstance(findings, list) else [],
    )


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
    study: str = "",
    numbers: Callable[[Sequence[Evidence]], str] = deciding,
) -> Callable[[Test], Statement]:
    """The statement that a test decides, to write above it; `needs` is the study by default."""

    def tested_by(test: Test) -> Statement:
        return Statement(
            name=name,
            statement=statement,
            tested=tested,
            needs=needs or f"studies: [{study}]",
            study=study,
            numbers=numbers,
            test=test,
        )

    return tested_by
