"""reports/sections/memory.py: whether the counts of peak bytes agree, and the parts of a peak."""

from pathlib import Path
from typing import Any

from attnbench.reports.elements import Table, Text
from attnbench.reports.sections import memory
from tests.reports.fake_runs import case, problem, row, write_run
from tests.reports.rendering import blocks_of, page_of, rows_of, summary_of, tables_of

MIB = 1 << 20


def run(tmp_path: Path, **changes: Any) -> Path:
    cases = [
        case(backend, problem(n)) for n in (512, 1024) for backend in ("naive", "fused", "sdpa")
    ]
    rows = [row(planned) for planned in cases]
    rows[1] |= changes
    return write_run(tmp_path, cases, rows)


def test_agreement_is_one_sentence(tmp_path: Path) -> None:
    path = run(tmp_path)
    first, *rest = blocks_of(memory, path)
    assert isinstance(first, Text)
    assert (
        first.text == "In all 6 cases the measured peak agrees with every other count: "
        "the backend's closed formula, the backend's own code run on the meta device."
    )
    assert [type(block) for block in rest] == [Table]
    assert not any("disagree" in sentence for sentence in summary_of(path))


def test_disagreement_is_counted_shown_and_in_the_terminal_summary(tmp_path: Path) -> None:
    path = run(tmp_path, peak_bytes=150 * MIB, predicted_peak_bytes=134 * MIB, meta_peak_bytes=None)
    first, table, _ = blocks_of(memory, path)
    assert isinstance(first, Text)
    assert first.text.startswith("In 5 of 6 cases the measured peak agrees")
    assert isinstance(table, Table)
    assert table.columns == (
        "N",
        "backend",
        "measured",
        "formula",
        "meta",
        "resident",
        "difference",
    )
    assert table.rows == (("512", "fused", "150 MiB", "134 MiB", "", "", "formula 16 MiB less"),)
    assert "formula 16 MiB less" in page_of(path)
    assert (
        "The counts of peak bytes disagree on 1 case: see Memory of a call in the report."
        in summary_of(path)
    )


def test_a_peak_is_split_into_output_and_temporaries(tmp_path: Path) -> None:
    path = run(tmp_path)
    (table,) = tables_of(blocks_of(memory, path))
    assert table.columns == (
        "N",
        "backend",
        "inputs",
        "output",
        "temporaries",
        "peak",
        "minimal traffic",
    )
    assert table.rows[1] == ("512", "fused", "3 MiB", "1 MiB", "17 MiB", "18 MiB", "4 MiB")
    for found in rows_of(path):
        assert found["temporary_bytes"] == found["peak_bytes"] - found["output_bytes"]


def test_runs_older_than_these_columns_are_still_read(tmp_path: Path) -> None:
    path = run(tmp_path)
    text = (path / "rows.jsonl").read_text()
    for field in (
        "output_bytes",
        "predicted_source",
        "meta_peak_bytes",
        "meta_reason",
        "work_exps",
        "minimal_bytes",
    ):
        text = text.replace(f'"{field}"', f'"unknown_{field}"')
    (path / "rows.jsonl").write_text(text)
    first, *rest = blocks_of(memory, path)
    assert isinstance(first, Text)
    assert (
        first.text == "In all 6 cases the measured peak agrees with every other count: the"
        " backend's closed formula."
    )
    assert rest == []
