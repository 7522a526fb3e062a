"""A run of two environments: no row is dropped, averaged, or taken for the other environment's."""

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.comparison.compare import compare_backends
from attnbench.reports.contrasts import against_one_head as comparable
from attnbench.reports.contrasts import most_heads
from attnbench.reports.data.read import BadRun, read_run
from attnbench.reports.elements import Block, Figure, Table, Text
from attnbench.reports.exports import export
from attnbench.reports.pages.report import open_report
from attnbench.reports.subjects import name_of
from attnbench.reports.subjects.correctness import errors_by_backend
from tests.made_runs import case, problem, read_rows, two_environments, write_rows
from tests.reports.pages.test_hostile import HOSTILE, Tags
from tests.reports.rendering import markdown_of, page_of, rows_of, summary_of

BACKENDS = ("naive", "fused", "sdpa")
LENGTHS = (256, 512, 1024, 2048)
PLANNED = [
    case(backend, problem(n, heads)) for n in LENGTHS for heads in (1, 8) for backend in BACKENDS
]
PROBLEMS = len(LENGTHS) * 2


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return two_environments(tmp_path, {"naive": 1.25}, PLANNED)


def rendered(run: Path, name: str) -> list[Block]:
    report = open_report([run])
    (of,) = (one for one in report.subjects if name_of(one) == name)
    return list(report.part(of).blocks)


def tables(run: Path, name: str) -> list[Table]:
    return [
        block.table if isinstance(block, Figure) else block
        for block in rendered(run, name)
        if isinstance(block, Table | Figure)
    ]


def test_baselines_and_heads_are_compared_within_an_environment(run: Path) -> None:
    rows = rows_of(run)
    costs = [cost for _, found in comparable(rows) for cost in most_heads(found)]
    assert Counter((cost.backend, cost.row["python"]) for cost in costs) == {
        (backend, python): len(LENGTHS) for backend in BACKENDS for python in ("old", "new")
    }
    assert all(cost.row["python"] == cost.base["python"] for cost in costs)
    text = " ".join(summary_of(run)).replace("\u00a0", " ")
    heads = re.findall(r"For python (old|new), N = 2k: 8 heads against one: ", text)
    assert sorted(heads) == ["new", "old"]
    found = compare_backends(run, "fused", None)
    assert all(
        one.base and one.new and one.base.problem["python"] == one.new.problem["python"]
        for one in found.verdicts
    )
    assert len([one for one in found.verdicts if one.metric == "latency"]) == 2 * 2 * PROBLEMS


def test_claims_and_errors_are_separate_for_each_environment(run: Path) -> None:
    meta = json.loads((run / "run.json").read_text())
    meta["scenario"]["name"] = "claims_upgrade"
    (run / "run.json").write_text(json.dumps(meta))
    texts = [
        block.text
        for block in rendered(run, "claims")
        if isinstance(block, Text) and block.kind == "finding"
    ]
    assert [text.rpartition(" in ")[2] for text in texts] == ["old.", "new."]
    rows = rows_of(run)
    assert [(one.python, one.backend, len(one.checked)) for one in errors_by_backend(rows)] == [
        (python, backend, PROBLEMS) for python in ("old", "new") for backend in BACKENDS
    ]
    errors, *_ = tables(run, "correctness")
    assert errors.columns[:2] == ("backend", "python")
    assert len(errors.rows) == 2 * len(BACKENDS)


def test_exports_have_every_case_once(run: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(export(run, "csv").content)))
    assert Counter(line["python"] for line in lines) == {"old": len(PLANNED), "new": len(PLANNED)}
    objects = json.loads(export(run, "json-rows").content)
    assert len({one["case"] for one in objects}) == len(objects) == 2 * len(PLANNED)


def test_hostile_names_and_facts_are_inert(tmp_path: Path) -> None:
    run = two_environments(tmp_path, {}, PLANNED[:3], names=(HOSTILE, f"{HOSTILE}2"))
    page = page_of(run)
    found = Tags()
    found.feed(page)
    assert not found.tags & {"img", "iframe", "object", "embed", "link", "base", "form"}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", page)
    assert "\x1b" not in markdown_of(run)


ONE = {"name": "a", "path": "", "environment": {}}


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (3, "environments: found 3"),
        ([3], r"environments\[0\]: found 3"),
        ([ONE | {"name": 1}], r"environments\[0\].name: found 1"),
        ([ONE | {"environment": []}], r"environments\[0\].environment: found"),
        ("plan", "python: found 7"),
        ("row", "python: found 7"),
    ],
)
def test_a_broken_environment_is_one_line(run: Path, found: Any, text: str) -> None:
    meta, rows = json.loads((run / "run.json").read_text()), read_rows(run)
    if isinstance(found, str):
        (meta["cases"] if found == "plan" else rows)[2]["python"] = 7
    else:
        meta["environments"] = found
    (run / "run.json").write_text(json.dumps(meta))
    write_rows(run, rows)
    with pytest.raises(BadRun, match=text):
        read_run(run)
