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


# ---- memory beside the peak of a call ------------------------------------------------------------


def test_who_keeps_memory_between_calls_or_works_outside_torch_is_named(tmp_path: Path) -> None:
    kept = {"workspace_bytes": 32 * MIB, "outside_bytes": 0}
    cases = [case(backend, problem(1024)) for backend in ("fused", "keeps", "numpy")]
    quiet = {"workspace_bytes": 1000, "outside_bytes": 2 * MIB}
    rows = [
        row(cases[0], **quiet),
        row(cases[1], **kept, peak_bytes=2 * MIB),
        row(cases[2], workspace_bytes=0, outside_bytes=98 * MIB, peak_bytes=0, output_bytes=0),
    ]
    found = blocks_of(memory, write_run(tmp_path, cases, rows))
    texts = [block.text.replace("\u00a0", " ") for block in found if isinstance(block, Text)]
    assert (
        "Beside the peak of a call, keeps keeps 32 MiB (16.0 times its peak) between calls at"
        " N = 1k and numpy takes 98 MiB outside torch's allocator at N = 1k. Comparisons of memory"
        " count it."
    ) in texts
    (table,) = [one for one in tables_of(found) if "kept between calls" in one.columns]
    assert table.columns[-4:] == (
        "kept between calls",
        "outside torch",
        "peak, kept and outside",
        "minimal traffic",
    )
    cells = {line[table.columns.index("backend")]: line[-4:-1] for line in table.rows}
    assert cells["keeps"] == ("32 MiB", "0 B", "34 MiB")
    assert cells["numpy"] == ("0 B", "98 MiB", "98 MiB")
    assert cells["fused"][:2] == ("1000 B", "2 MiB (noise)")


def test_a_mask_that_is_kept_is_shown_as_such_and_is_no_finding(tmp_path: Path) -> None:
    mask = 1024 * 1024
    planned = case("fused", problem(1024, causal=True, causal_align="top_left"))
    changed = row(planned, workspace_bytes=mask, outside_bytes=0, peak_bytes=2 * mask)
    found = blocks_of(memory, write_run(tmp_path / "a", [planned], [changed]))
    table = tables_of(found)[-1]
    assert "1 MiB (no more than a mask)" in table.rows[0]
    assert not any("Beside the peak" in str(block) for block in found)
    larger = changed | {"workspace_bytes": mask + 1}
    found = blocks_of(memory, write_run(tmp_path / "b", [planned], [larger]))
    assert any("Beside the peak" in str(block) for block in found)


def test_what_is_not_known_is_not_zero_and_has_its_reason(tmp_path: Path) -> None:
    planned = case("compiled", problem(1024))
    missing = {"outside_bytes": "it compiles"}
    changed = row(planned, workspace_bytes=0, outside_bytes=None, memory_missing=missing)
    found = blocks_of(memory, write_run(tmp_path / "a", [planned], [changed]))
    (table,) = tables_of(found)
    assert "not known" in table.rows[0]
    text = "Not known for compiled, what torch does not count: it compiles."
    assert any(text in str(block) for block in found)
    nothing = {"peak_bytes": None, "output_bytes": None, "workspace_bytes": None}
    missing = {"peak_bytes": "cudaMallocAsync does not count"}
    changed = row(planned, **nothing, memory_missing=missing)
    found = blocks_of(memory, write_run(tmp_path / "b", [planned], [changed]))
    assert any("the peak: cudaMallocAsync does not count" in str(block) for block in found)
