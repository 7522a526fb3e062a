"""A run of two environments: no row is dropped, averaged, or taken for the other environment's."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.read import BadRun, read_run
from attnbench.reports.elements import Block, Figure, Table, Text
from attnbench.reports.pages.report import open_report
from attnbench.reports.subjects import name_of
from attnbench.reports.subjects.correctness import errors_by_backend
from tests.made_runs import case, problem, read_rows, two_environments, write_rows
from tests.reports.rendering import rows_of

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
