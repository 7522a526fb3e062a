"""For every claim there is a table of findings or rows in which it holds, and its opposite."""

from importlib import import_module

import pytest

from attnbench.reports.claims.ledger import QUANTITIES, STATEMENTS
from tests.conftest import ROOT

TABLES = sorted((ROOT / "tests" / "reports").glob("*/test_*.py"))


def judged() -> set[tuple[str, str]]:
    """Claims and verdicts of all tables JUDGED: tuples that begin with the one and end with the
    other.
    """
    found = set()
    for path in TABLES:
        if "\nJUDGED: " in path.read_text(encoding="utf-8"):
            module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            found |= {(row[0], row[-1]) for row in module.JUDGED}
    return found


@pytest.mark.parametrize("verdict", ["supported", "refuted"])
def test_every_claim_can_come_out_either_way(verdict: str) -> None:
    tested = {name for name, wanted in judged() if wanted == verdict}
    assert tested >= STATEMENTS.keys()


def test_every_claim_of_several_quantities_is_tried_without_one() -> None:
    names = [one.claim for one in QUANTITIES]
    several = {one for one in names if names.count(one) > 1}
    assert {name for name, wanted in judged() if wanted == "not decided"} >= several
