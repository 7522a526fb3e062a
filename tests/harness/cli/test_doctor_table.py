"""Doctor's tables."""

from attnbench.harness.cli.doctor_table import tables
from attnbench.harness.doctor import Finding, Findings

GPU = "GPU-11111111"


def test_the_gpu_that_torch_uses_is_marked():
    found = Findings(
        findings=(Finding("cpu", "x"), Finding("gpu", "y", gpu=GPU)),
        environment={},
        gpus=({"short_uuid": GPU, "torch_uses": True},),
    )
    assert [table.title for table in tables(found)] == [None, f"{GPU}, the one that torch uses"]
    assert found.exit_code == 0


def test_advice_stands_below_the_finding():
    found = Findings(findings=(Finding("ecc", "3 errors", "bad", "reset it"),), environment={})
    (table,) = tables(found)
    assert [list(column.cells) for column in table.columns] == [
        ["ecc"],
        ["bad"],
        ["3 errors\n-> reset it"],
    ]
    assert found.exit_code == 4
