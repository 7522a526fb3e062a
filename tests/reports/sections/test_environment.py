"""reports/sections/environment.py: which device measured what, and which part of a plan that is."""

from pathlib import Path
from typing import Any

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Table
from attnbench.reports.sections import environment as section
from tests.reports.fake_runs import case, problem, row, write_run

MERGED = [{"number": 1, "of": 2, "run": "a"}, {"number": 2, "of": 2, "run": "b"}]


def tables(parent: Path, hosts: list[str], **meta: Any) -> dict[str, Table]:
    planned = [case("fused", problem(64 * (place + 1))) for place in range(len(hosts))]
    rows = [
        row(one, "ok", host=host, device_name="H100", device_uuid=f"GPU-{host}")
        for one, host in zip(planned, hosts, strict=True)
    ]
    runs = [read_run(write_run(parent, planned, rows, **meta))]
    blocks = section.render(frame(runs), run_meta(runs))
    return {block.title: block for block in blocks if isinstance(block, Table)}


def machine(found: dict[str, Table]) -> dict[str, str]:
    return dict(found["Machine, versions and settings"].rows)


def test_a_merged_run_says_which_device_measured_how_many_cases(tmp_path: Path) -> None:
    found = tables(tmp_path, ["b", "a", "a"], merged=MERGED)
    assert found["Which device measured what"].rows == (
        ("a", "2", "H100", "GPU-a"),
        ("b", "1", "H100", "GPU-b"),
    )
    assert machine(found)["part of the plan"] == "merged from 2 of 2 shards"


def test_a_run_on_several_devices_says_which_measured_what(tmp_path: Path) -> None:
    found = tables(tmp_path, ["b", "a", "a"], devices=[{"host": "a"}, {"host": "b"}])
    assert [row[:2] for row in found["Which device measured what"].rows] == [("a", "2"), ("b", "1")]


def test_one_device_needs_no_table_of_devices(tmp_path: Path) -> None:
    assert "Which device measured what" not in tables(tmp_path, ["a", "a"], merged=MERGED)


def test_a_shard_says_so_and_a_whole_run_does_not(tmp_path: Path) -> None:
    shard = tables(tmp_path / "shard", ["a"], shard={"number": 2, "of": 8})
    assert machine(shard)["part of the plan"] == "shard 2 of 8"
    assert "part of the plan" not in machine(tables(tmp_path / "whole", ["a"]))


def test_rows_from_before_devices_were_recorded_are_shown(tmp_path: Path) -> None:
    planned = [case("fused", problem(64))]
    rows = [row(planned[0], "ok")]
    for name in ("host", "device_name", "device_uuid"):
        rows[0].pop(name, None)
    runs = [read_run(write_run(tmp_path, planned, rows, merged=MERGED))]
    assert list(section.render(frame(runs), run_meta(runs)))
