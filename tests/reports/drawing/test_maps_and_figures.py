"""Maps of weights on the page, from a study's findings whatever they hold; and the page's figures
as files of their own.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.drawing import plots
from attnbench.reports.elements import Figure, Panel, Series, Table
from attnbench.reports.pages.figures import write_figures
from tests.reports.rendering import page_of
from tests.reports.rendering import markdown_of
from attnbench.reports.sections import attention_maps

from tests.reports.fake_runs import quickstart

pytestmark = pytest.mark.long

ROWS = [[0.75, 0.25, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]]


def finding(head: int, entropy: float) -> dict[str, Any]:
    return {
        "head": head,
        "heads": 2,
        "causal": False,
        "mean_entropy_nats": entropy,
        "weight_rows": ROWS,
    }


def with_study(parent: Path, findings: list[Any], status: str = "ok", reason: str = "") -> Path:
    folder = quickstart(parent)
    meta = json.loads((folder / "run.json").read_text())
    meta["studies"] = [{"case": "study-attention_maps", "study": "attention_maps"}]
    (folder / "run.json").write_text(json.dumps(meta))
    row = {
        "schema": 1,
        "kind": "study",
        "case": "study-attention_maps",
        "study": "attention_maps",
        "attempt": 1,
        "device": "cpu",
    }
    row |= {
        "status": status,
        "reason": reason,
        "log_tail": None,
        "findings": findings,
        "started_utc": None,
        "spent_s": 0.1,
    }
    with (folder / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    return folder


def test_heads_are_drawn_with_one_scale_and_told_in_numbers(tmp_path: Path) -> None:
    run = with_study(tmp_path, [finding(1, 1.0), finding(2, 0.5)])
    page = page_of(run)
    assert (
        "Of 2 heads with random weights, head 2 looks at the fewest tokens and head 1 at the most"
        in page
    )
    assert page.count("<image ") == 3  # two heads and the scale
    assert page == page_of(run)
    text = markdown_of(run)
    assert "| 1 | 2.72 | 1.00 |" in text


@pytest.mark.parametrize(
    "broken",
    [
        {"weight_rows": [[0.5, 0.5], [1.0]]},
        {"weight_rows": []},
        {"weight_rows": [["<img src=x>", 0]]},
        {"weight_rows": [[7.0]]},
        {"head": "<script>"},
        {"mean_entropy_nats": None},
    ],
)
def test_a_finding_that_is_no_map_is_not_drawn(tmp_path: Path, broken: dict[str, Any]) -> None:
    read = read_run(with_study(tmp_path, [finding(1, 1.0) | broken]))
    (only,) = attention_maps.render(frame([read]), run_meta([read]))
    assert "No map was asked for" in only.text  # type: ignore[union-attr]


def test_a_study_that_failed_says_why(tmp_path: Path) -> None:
    read = read_run(with_study(tmp_path, [], "error", "RuntimeError: a bug"))
    (only,) = attention_maps.render(frame([read]), run_meta([read]))
    assert "RuntimeError: a bug" in only.text  # type: ignore[union-attr]


def test_every_figure_of_the_page_is_a_file(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    first = write_figures([run], tmp_path / "figures")
    assert {path.suffix for path in first} == {".svg", ".png"}
    assert len(first) == 2 * page_of(run).count("<figure")
    for path in first:
        assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")
    before = {path: path.read_bytes() for path in first}
    assert {
        path: path.read_bytes() for path in write_figures([run], tmp_path / "figures")
    } == before


def test_the_command_writes_pages_figures_and_markdown(attnbench, tmp_path: Path) -> None:
    run = quickstart(tmp_path / "results")
    done = attnbench("report", run, "--format", "md", "--figures", "figures")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# attnbench: ")
    assert "figures/latency-1.svg" in done.stderr
    done = attnbench("report", run, "--format", "md", "--output", "summary.md")
    assert Path(done.stdout.strip()).read_text().startswith("# attnbench: ")
    (tmp_path / "file").write_text("")
    done = attnbench("report", run, "--figures", "file")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_crosses_take_no_room_where_there_are_none(tmp_path: Path) -> None:
    """Each panel reaches down to its label and the legend, whatever failed."""

    def height(y: float | None) -> float:
        ran = Series(backend="fused", kind="measured", x=(1.0, 2.0), y=(1.0, 2.0))
        failed = Series(backend="fused", kind="failed", x=(4.0,), y=(y,))
        panel = Panel(series=(ran, failed), x_label="N", y_label="bytes", unit="bytes")
        canvas, (axes,) = plots._drawing(
            Figure(
                title="",
                caption="",
                description="",
                panels=(panel,),
                table=Table(title="", columns=(), rows=()),
            ),
            ("fused",),
            "name",
            4.0,
        )
        canvas.draw_without_rendering()
        return float(axes.get_position().height)

    assert height(4.0) == pytest.approx(height(None), abs=0.02)
