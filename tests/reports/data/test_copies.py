"""Of cases that were measured several times, one row of each."""

from pathlib import Path

from attnbench.reports.data.row_groups import first_copies
from tests.made_runs import quickstart
from tests.reports.comparison.test_devices import LENGTHS, copies_run, gpu
from tests.reports.rendering import rows_of

TWO = (gpu(1), gpu(2, "node2"))


def test_the_first_copy_of_each_case_stays_or_the_lowest_of_a_shard(tmp_path: Path) -> None:
    rows = rows_of(copies_run(tmp_path, TWO, (1.0, 1.1)))
    first = first_copies(rows)
    assert len(rows) == 2 * len(first) == 6 * len(LENGTHS)
    assert [row["case"] for row in first] == [
        row["case"] for row in rows if "replica" not in row["case"]
    ]
    shard = [row for row in rows if (row["seq_len"], row["replica"]) != (128, 1)]
    found = first_copies(shard)
    assert len(found) == 3 * len(LENGTHS)
    assert {row["replica"] for row in found if row["seq_len"] == 128} == {2}


def test_a_run_without_copies_is_left_as_it_is(tmp_path: Path) -> None:
    rows = rows_of(quickstart(tmp_path, lengths=(128, 256)))
    assert first_copies(rows) is rows
