"""A statement of the ledger before it is tested."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...data.row_groups import Row
from .claim_verdict import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """`tested`: how. `to_run`: what a run needs for it. `test`: from rows and findings to verdicts.

    `study`: the study whose findings it reads, if it reads some. `of_inexact`: it also reads rows
    of approximations and recurrent layers; the others are about exact attention.
    """

    statement: str
    tested: str
    to_run: str
    test: Callable[[list[Row], Sequence[Any]], list[Part]]
    study: str = ""
    of_inexact: bool = False
