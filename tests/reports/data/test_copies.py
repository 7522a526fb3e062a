"""Of cases that were measured several times, one row of each."""

from pathlib import Path

from attnbench.reports.data.copies import first_copies, has_copies
from attnbench.reports.data.load import load
from tests.made_runs import quickstart
from tests.reports.comparison.test_devices import LENGTHS, copies_run, gpu

TWO = (gpu(1), gpu(2, "node2"))


def test_the_first_copy_of_each_case_stays_in_the_order_of_the_plan(tmp_path: Path) -> None:
    frame = load(copies_run(tmp_path, TWO, (1.0, 1.1)))
    first = first_copies(frame)
    assert has_copies(frame)
    assert len(frame) == 2 * len(first) == 6 * len(LENGTHS)
    assert set(first["replica"]) == {1}
    assert list(first["case"]) == [one for one in frame["case"] if "replica" not in one]
    assert list(first.index) == list(range(len(first)))


def test_a_second_copy_stays_where_the_first_one_is_in_another_shard(tmp_path: Path) -> None:
    frame = load(copies_run(tmp_path, TWO, (1.0, 1.1)))
    shard = frame[~((frame["seq_len"] == 128) & (frame["replica"] == 1))]
    first = first_copies(shard)
    assert len(first) == 3 * len(LENGTHS)
    assert set(first[first["seq_len"] == 128]["replica"]) == {2}


def test_a_run_without_copies_is_left_as_it_is(tmp_path: Path) -> None:
    frame = load(quickstart(tmp_path, lengths=(128, 256)))
    assert first_copies(frame) is frame
    assert not has_copies(frame)
