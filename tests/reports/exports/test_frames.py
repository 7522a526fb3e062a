"""reports/exports/_frames.py: walls and findings of studies as frames; docs/format.md names every
column.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import attnbench
from attnbench.reports.data.columns import COLUMNS
from attnbench.reports.data.load import load
from attnbench.reports.data.run_meta import read_run
from attnbench.reports.subjects.wall import longest
from tests.conftest import ROOT
from tests.made_runs import many_problems, quickstart

RUNS = ROOT / "tests" / "approved" / "runs"


def documented(*sections: str) -> set[str]:
    """The names in the first columns of a section's tables."""
    text = (ROOT / "docs" / "format.md").read_text()
    cells = [
        cell
        for section in sections
        for cell in re.findall(
            r"^\| ([^|]*) \|", text.split(f"\n## {section}\n")[1].split("\n## ")[0], re.MULTILINE
        )
    ]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_columns_of_a_frame_are_those_that_are_documented() -> None:
    """All that every frame has, and what probes of a GPU add."""
    known = documented("rows.jsonl", "Columns of a frame", "Decode steps", "Windows")
    found = {*COLUMNS, *load(RUNS / "gpu")}
    assert found <= known, found - known
    assert documented("Columns of a frame", "Decode steps") <= {*load(RUNS / "empty")}


def test_a_frame_knows_its_run_and_several_have_a_column(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    assert load(run).attrs == {"run": run.name}
    both = load([run, many_problems(tmp_path)])
    assert both["run"].nunique() == 2
    assert run.name in set(both["run"])
    assert "run" not in load(run)


def test_walls_are_rows_with_the_answer_of_the_page() -> None:
    run = read_run(RUNS / "walls")
    frame = attnbench.Run(RUNS / "walls").walls()
    planned = [*run.walls, *run.missing_walls]
    assert frame["case"].tolist() == [one["case"] for one in planned]
    assert frame["status"].tolist()[len(run.walls) :] == ["not reached"] * len(run.missing_walls)
    assert frame.attrs["run"] == run.meta["run"]
    for row, (_, found) in zip(run.walls, frame.head(len(run.walls)).iterrows(), strict=True):
        answer = longest(row)
        known = answer.n is not None
        assert (
            (found["longest_seq_len"] == answer.n) if known else pd.isna(found["longest_seq_len"])
        )
        assert (found["longest_how"] == answer.how) if known else pd.isna(found["longest_how"])
    assert {"longest_seq_len", "longest_how"} <= set(frame)
    assert frame["seq_len_low"].dtype == frame["longest_seq_len"].dtype == "Int64"
    assert (frame["seq_len_low"].fillna(1) != 0).all()


def test_findings_are_rows_and_a_study_without_any_has_its_reason() -> None:
    run = read_run(RUNS / "studies")
    frame = attnbench.Run(RUNS / "studies").studies()
    wanted = sum(max(len(row["findings"]), 1) for row in run.studies) + len(run.missing_studies)
    assert len(frame) == wanted
    assert list(frame)[:5] == ["study", "case", "device", "status", "reason"]
    assert (frame.loc[frame["status"] != "ok", "reason"] != "").all()
    name = frame["study"].iloc[0]
    one = attnbench.Run(RUNS / "studies").studies(name)
    assert set(one["study"]) == {name}
    assert len(one.columns) < len(frame.columns)


@pytest.mark.parametrize("frame", [attnbench.Run.walls, attnbench.Run.studies])
def test_a_run_without_any_has_an_empty_frame_with_columns(
    frame: Callable[[attnbench.Run], pd.DataFrame], tmp_path: Path
) -> None:
    found = frame(attnbench.Run(quickstart(tmp_path)))
    assert found.empty
    assert "status" in found
