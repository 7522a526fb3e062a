"""reports/sections/summary.py: the winner map has text for its colours and links to each case."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis import speed
from attnbench.reports.analysis.winner_map import winner_map
from attnbench.reports.data.row_groups import groups
from attnbench.reports.elements import Table, Text
from attnbench.reports.sections import summary
from tests.reports import fake_runs
from tests.reports.fake_inexact import inexact
from tests.reports.fake_runs import case, problem, quickstart, write_run
from tests.reports.rendering import blocks_of, page_of, rows_of, section_of, sentences, tables_of


def map_of(run: Path) -> Table:
    (found,) = tables_of(blocks_of(summary, run))
    return found


def test_every_cell_has_text_and_the_winner_says_that_it_is_fastest(tmp_path: Path) -> None:
    found = map_of(quickstart(tmp_path))
    for line, row in enumerate(found.rows):
        for place, cell in enumerate(row):
            assert cell
            assert ((line, place) in found.strong) == cell.endswith(" · fastest")
    fastest = next(row for row in found.rows if row[:2] == ("1k", "8"))
    assert re.fullmatch(r"\S+ (μs|ms) · fastest", fastest[found.columns.index("sdpa")])
    assert re.fullmatch(r"\S+ ms · ×2\.\d+", fastest[found.columns.index("fused")])


@pytest.mark.long
def test_failed_and_skipped_cases_are_hatched_and_have_their_status(tmp_path: Path) -> None:
    found = map_of(quickstart(tmp_path))
    by_place = {
        (line, place): cell for line, row in enumerate(found.rows) for place, cell in enumerate(row)
    }
    assert {by_place[place] for place in found.failed} == {
        *(
            "out of memory",
            "out of memory (predicted)",
            "unsupported",
            "unavailable",
            "crashed",
            "not reached",
        )
    }
    assert not found.failed & found.strong
    page = page_of(quickstart(tmp_path / "page"))
    section = section_of(page, "summary")
    assert len(
        re.findall(r'<td class="x" data-case="\d+"><a href="#row-\d+">[a-z]', section)
    ) == len(found.failed)


def test_every_case_of_the_map_is_a_link_to_its_row(tmp_path: Path) -> None:
    page = page_of(quickstart(tmp_path, lengths=(128, 256)))
    rows = dict(
        re.findall(
            r'<tr id="row-(\d+)" data-case="\d+"><th scope="row"><a href="#row-\d+">([^<]*)</a>',
            page,
        )
    )
    section = section_of(page, "summary")
    linked = re.findall(r'data-case="(\d+)">(?:<strong>)?<a href="#row-(\d+)">', section)
    assert len(linked) == len(rows) == 20
    assert all(one == other and one in rows for one, other in linked)


def test_a_tie_is_written_as_one_in_every_cell_of_it(tmp_path: Path) -> None:
    cases = [case(backend, problem(128)) for backend in ("a", "b", "c")]
    blocks = ([[[1.0], [1.01], [1.0]]], [[[1.5], [1.52], [1.51]]], [[[0.5], [9.0], [2.0]]])
    rows = [fake_runs.row(one, block_ms=block) for one, block in zip(cases, blocks, strict=True)]
    found = map_of(write_run(tmp_path, cases, rows))
    (cells,) = (line[1:] for line in found.rows)
    assert [re.sub(r"[\d.]+", "#", cell) for cell in cells] == [
        "# ms · tie: a = c",
        "# ms · ×#",
        "# ms · ×# · tie",
    ]
    assert not found.strong


def test_a_cell_has_the_paired_ratio_of_the_verdict_not_that_of_the_medians() -> None:
    def timed(name: str, call_ms: float, latency_ms: float) -> dict[str, Any]:
        made = fake_runs.row(case(name, problem(256)), "ok", block_ms=[[[call_ms]] * 5])
        return made | {"latency_ms": latency_ms}

    fastest, other = timed("fused", 1.0, 1.0), timed("sdpa", 2.0, 9.0)
    found = speed.race([fastest, other])
    assert "×2.00" in summary.cell(other, found)
    assert "×9" not in summary.cell(other, found)
    inexact_row = other | {"exactness": "approximate"}
    alone = speed.race([fastest, inexact_row])
    assert "×2.00" in summary.cell(inexact_row, alone)


def test_sentences_that_a_card_says_name_it(tmp_path: Path) -> None:
    texts = [block for block in blocks_of(summary, quickstart(tmp_path)) if isinstance(block, Text)]
    about = {block.about for block in texts}
    assert about == {"", "wall", "fastest", "heads"}
    assert next(block.about for block in texts if "is fastest" in block.text) == "fastest"


def test_without_an_exact_backend_nobody_is_fastest(tmp_path: Path) -> None:
    run = inexact(tmp_path, backends=("linformer", "rnn"))
    (group,) = groups(rows_of(run), "seq_len")
    assert speed.finding(group) == "no exact backend has a latency"
    assert {cell.kind for cell in winner_map(rows_of(run))} == {"nobody"}
    table = map_of(run)
    assert not table.strong
    assert "fastest" not in str(table.rows)
    assert page_of(run)


def test_the_first_table_gives_the_error_and_makes_only_exact_ones_bold(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    table = map_of(run)
    columns = dict(zip(table.columns, range(len(table.columns)), strict=True))
    assert {column for _, column in table.strong} == {columns["sdpa"]}
    assert re.fullmatch(
        r"6\.\d+ ms · ×0\.\d+ · approximate, error 12 %", table.rows[-1][columns["linformer"]]
    )
    assert re.fullmatch(r"20\d ms · ×1\d\.\d · not attention", table.rows[-1][columns["rnn"]])
    assert (
        "Not ranked: ~ approximates attention, with the error that is shown; ≠ computes something"
        " else, and has no error." in sentences(blocks_of(summary, run))
    )
