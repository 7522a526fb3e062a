"""reports/pages/page_data.py: the rows inside the page are compact and have five digits."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.load import rows_of
from attnbench.reports.data.run_meta import read_run
from attnbench.reports.pages.page_data import page_data
from tests.made_runs import case, problem, quickstart, row, write_run

PLENTY = 1 << 30


def value(column: Any, place: int) -> Any:
    return (
        column[place]
        if isinstance(column, list)
        else column["of"][column["at"][place] if column["at"] else 0]
    )


def samples(packed: list[Any]) -> list[list[list[float]]]:
    power, processes = packed
    return [
        [[sample * 10.0**power for sample in block] for block in process] for process in processes
    ]


def test_every_value_comes_back_and_floats_have_five_digits(tmp_path: Path) -> None:
    rows = rows_of([read_run(quickstart(tmp_path))])
    document = json.loads(page_data(rows, PLENTY))
    for name, column in document["columns"].items():
        for place, exact in enumerate(one[name] for one in rows):
            wanted = pytest.approx(exact, rel=1e-4) if isinstance(exact, float) else exact
            assert value(column, place) == wanted, (name, place)
    assert "block_ms" not in document["columns"]
    assert "log_tail" not in document["columns"]
    for packed, exact in zip(document["samples"], (one["block_ms"] for one in rows), strict=True):
        assert (packed is None) == (exact is None)
        if packed is not None:
            for process, of_process in zip(samples(packed), exact, strict=True):
                for block, of_block in zip(process, of_process, strict=True):
                    assert block == pytest.approx(of_block, rel=1e-4)


def test_samples_become_medians_and_are_then_left_out_as_room_gets_short(tmp_path: Path) -> None:
    cases = [case("fused", problem(n)) for n in (128, 256)]
    rows = [row(one, block_ms=[[[1.0, 5.0, 2.0] * 300, [4.0]], []]) for one in cases]
    table = rows_of([read_run(write_run(tmp_path, cases, rows))])
    whole, rest = (len(page_data(table, most)) for most in (PLENTY, 0))
    assert json.loads(page_data(table, whole))["kind"] == "calls"
    thin = json.loads(page_data(table, rest + 100))
    assert thin["kind"] == "medians"
    assert "too large" in thin["samples_are"]
    assert samples(thin["samples"][0]) == [[[2.0], [4.0]], []]
    none = json.loads(page_data(table, 0))
    assert none["kind"] == "none"
    assert none["samples"] is None
    assert "run's folder" in none["samples_are"]
