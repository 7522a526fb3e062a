"""A run of two environments: no row is dropped, averaged, or taken for the other environment's."""

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest
from rich.console import Console

from attnbench.reports.analysis.errors import errors_by_backend
from attnbench.reports.analysis.heads import comparable, most_heads
from attnbench.reports.analysis.reproduce import command
from attnbench.reports.comparison.compare import compare_backends
from attnbench.reports.data.load import frame, load
from attnbench.reports.data.read import BadRun, read_run
from attnbench.reports.data.row_groups import groups, records
from attnbench.reports.elements import Block, Figure, Table, Text
from attnbench.reports.exports import export
from attnbench.reports.pages import html, terminal
from attnbench.reports.pages.report import open_report
from attnbench.reports.sections import sections
from tests.reports.fake_pairs import two_environments
from tests.reports.fake_runs import case, problem
from tests.reports.pages.test_hostile import HOSTILE, Tags
from tests.reports.rendering import NO_VALUE, blocks_of, markdown_of, page_of, summary_of, text_of

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
    (section,) = (one for one in sections() if one.__name__.rpartition(".")[2] == name)
    return blocks_of(section, run)


def tables(run: Path, name: str) -> list[Table]:
    return [
        block.table if isinstance(block, Figure) else block
        for block in rendered(run, name)
        if isinstance(block, Table | Figure)
    ]


@pytest.mark.parametrize("over", ["seq_len", "heads", None])
def test_no_group_holds_a_backend_twice_at_the_same_place(
    run: Path, over: Literal["seq_len", "heads"] | None
) -> None:
    rows = records(frame([read_run(run)]))
    found = groups(rows, over)
    for group in found:
        assert (
            max(
                Counter(
                    (row["backend"], row["seq_len"], row["heads"]) for row in group.rows
                ).values()
            )
            == 1
        )
        assert len({row["python"] for row in group.rows}) == 1
        assert f"python {group.problem['python']}" in group.label
    assert sum(len(group.rows) for group in found) == len(rows) == 2 * len(PLANNED)


def test_the_frame_has_a_row_per_case_with_its_environment(run: Path) -> None:
    table = load(run)
    assert table["python"].value_counts().to_dict() == {"old": len(PLANNED), "new": len(PLANNED)}
    assert table["case"].is_unique


def test_the_winner_map_has_a_line_per_problem_and_environment(run: Path) -> None:
    (winners,) = (table for table in tables(run, "summary") if table.title.startswith("Who wins"))
    assert winners.columns[0] == "python"
    assert Counter(line[0] for line in winners.rows) == {"old": PROBLEMS, "new": PROBLEMS}
    assert all(cell for line in winners.rows for cell in line)
    assert len(winners.cases) == 2 * len(PLANNED)


def test_the_answer_is_first_in_the_terminal_summary(run: Path) -> None:
    lines = summary_of(run)
    assert lines[0].startswith(
        f"new against old: slower in {PROBLEMS}, faster in 0, same in {2 * PROBLEMS} and undecided"
        " in 0 of 24 cases"
    )
    assert sum(line.startswith("new against old: slower in") for line in lines) == 1
    assert any(line.startswith("Slower in new: naive at N") for line in lines)
    assert any(line.startswith("For python old") for line in lines)
    assert any(line.startswith("For python new") for line in lines)


def test_the_table_of_ratios_has_every_case_the_slower_ones_first(run: Path) -> None:
    ratios, differing = tables(run, "environments")
    assert ratios.columns == ("case", "old", "new", "ratio", "verdict")
    assert len(ratios.rows) == len(PLANNED)
    assert [line[-1] for line in ratios.rows] == ["slower"] * PROBLEMS + ["same"] * 2 * PROBLEMS
    assert {ratios.rows[line][column] for line, column in ratios.failed} == {"slower"}
    assert ratios.strong == frozenset()
    assert {key.rpartition("-")[2] for (_, column), key in ratios.cases.items() if column == 1} == {
        "old"
    }
    assert {key.rpartition("-")[2] for (_, column), key in ratios.cases.items() if column == 2} == {
        "new"
    }
    assert differing.rows == (("torch", "2.11.0", "2.13.0"),)


def test_where_more_than_time_changed_the_table_has_a_column_for_the_metric(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    more = [
        one | ({"peak_bytes": one["peak_bytes"] + 1} if one["case"].endswith("-new") else {})
        for one in rows
    ]
    (run / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in more))
    ratios = tables(run, "environments")[0]
    assert ratios.columns == ("case", "of", "old", "new", "ratio", "verdict")
    assert Counter(line[1] for line in ratios.rows) == {
        "latency": len(PLANNED),
        "peak bytes": len(PLANNED),
    }
    assert {ratios.rows[line][column] for line, column in ratios.failed} == {"slower", "more"}


def test_baselines_and_heads_are_compared_within_an_environment(run: Path) -> None:
    rows = records(frame([read_run(run)]))
    costs = [cost for _, found in comparable(rows) for cost in most_heads(found)]
    assert Counter((cost.backend, cost.row["python"]) for cost in costs) == {
        (backend, python): len(LENGTHS) for backend in BACKENDS for python in ("old", "new")
    }
    assert all(cost.row["python"] == cost.one["python"] for cost in costs)
    text = " ".join(summary_of(run)).replace("\u00a0", " ")
    heads = re.findall(r"For python (old|new), N = 2k: (naive|fused|sdpa) with 8 heads", text)
    assert sorted(heads) == sorted(
        (python, backend) for python in ("old", "new") for backend in BACKENDS
    )
    found = compare_backends(run, "fused", None)
    assert all(
        one.base and one.new and one.base.problem["python"] == one.new.problem["python"]
        for one in found.verdicts
    )
    assert len([one for one in found.verdicts if one.metric == "latency"]) == 2 * 2 * PROBLEMS


def test_claims_and_errors_are_separate_for_each_environment(run: Path) -> None:
    texts = [
        block.text
        for block in rendered(run, "claims")
        if isinstance(block, Text) and block.kind == "finding"
    ]
    assert [text.rpartition(" in ")[2] for text in texts] == ["old.", "new."]
    rows = records(frame([read_run(run)]))
    assert [(one.python, one.backend, len(one.checked)) for one in errors_by_backend(rows)] == [
        (python, backend, PROBLEMS) for python in ("old", "new") for backend in BACKENDS
    ]
    errors, *_ = tables(run, "correctness")
    assert errors.columns[:2] == ("backend", "python")
    assert len(errors.rows) == 2 * len(BACKENDS)


def test_a_failure_in_one_environment_is_listed_for_that_one_only(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    gone = {
        "status": "crashed",
        "reason": "SIGSEGV",
        "block_ms": None,
        "session": None,
        "peak_bytes": None,
    }
    lost = [
        one | (gone if one["backend"] == "sdpa" and one["case"].endswith("-new") else {})
        for one in rows
    ]
    (run / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lost))
    (failed,) = tables(run, "refusals")
    assert failed.rows == (
        ("crashed", "SIGSEGV", "", "new", str(PROBLEMS), "sdpa", "256, 512, 1k, 2k"),
    )
    assert any(line.startswith("Broken in new: sdpa at N") for line in summary_of(run))


@pytest.mark.long
def test_every_section_of_the_page_has_both_environments_and_no_row_is_lost(run: Path) -> None:
    page = page_of(run)
    for row in records(frame([read_run(run)])):
        assert f">{row['case']}<" in page
    assert "Between environments" in page
    assert "Machine, versions and settings in new" in page
    assert "/venvs/old/bin/python" in page
    assert not re.search(NO_VALUE, text_of(page))


def test_exports_have_every_case_once(run: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(export(run, "csv").content)))
    assert Counter(line["python"] for line in lines) == {"old": len(PLANNED), "new": len(PLANNED)}
    objects = json.loads(export(run, "json").content)
    assert len({one["case"] for one in objects}) == len(objects) == 2 * len(PLANNED)
    text = export(run, "md").content
    assert text.count("| old |") == text.count("| new |") == len(PLANNED)


def test_markdown_and_terminal_give_the_answer(run: Path) -> None:
    text = markdown_of(run)
    assert "<summary>Between environments: new against old: slower in 8" in text
    console = Console(width=200, record=True, file=io.StringIO())
    for part in terminal.render(open_report([run]), (*terminal.USUAL, "environments")):
        console.print(part)
    printed = console.export_text()
    assert "Between environments" in printed
    assert "new against old: slower in 8" in printed


@pytest.mark.long
def test_the_command_that_repeats_a_case_names_no_interpreter_of_the_file(run: Path) -> None:
    read = read_run(run)
    assert command(read.rows[-1], read.meta).startswith("attnbench run --backends sdpa")
    page = html.render(open_report([run]))
    assert "ends in the name of an environment is measured again by the attnbench of that" in page
    assert "python -m attnbench" not in page


def test_hostile_names_and_facts_are_inert(tmp_path: Path) -> None:
    run = two_environments(tmp_path, {}, PLANNED[:3], names=(HOSTILE, f"{HOSTILE}2"))
    page = page_of(run)
    found = Tags()
    found.feed(page)
    assert not found.tags & {"img", "iframe", "object", "embed", "link", "base", "form"}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", page)
    assert "\x1b" not in markdown_of(run)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"environments": 3}, "environments: wanted a list"),
        ({"environments": [3]}, r"environments\[0\]: wanted an object"),
        (
            {"environments": [{"name": 1, "path": "", "environment": {}}]},
            r"environments\[0\]: name: found 1, wanted str",
        ),
        (
            {"environments": [{"name": "a", "path": "", "environment": []}]},
            r"environments\[0\]: environment: found",
        ),
    ],
)
def test_broken_environments_are_one_line(run: Path, change: dict[str, Any], text: str) -> None:
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(meta | change))
    with pytest.raises(BadRun, match=text):
        read_run(run)


@pytest.mark.parametrize("where", ["plan", "row"])
def test_an_environment_that_is_no_name_is_one_line(run: Path, where: str) -> None:
    meta = json.loads((run / "run.json").read_text())
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    (meta["cases"] if where == "plan" else rows)[2]["python"] = 7
    (run / "run.json").write_text(json.dumps(meta))
    (run / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    with pytest.raises(BadRun, match=r"python: found 7, wanted str"):
        read_run(run)
