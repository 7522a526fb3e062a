"""reports/sections/contrasts.py: every contrast with its word, and a note where there is none."""

from pathlib import Path

from attnbench.reports.elements import Text
from attnbench.reports.sections import contrasts as section
from tests.reports.fake_contrasts import decode, training
from tests.reports.fake_runs import quickstart
from tests.reports.rendering import blocks_of, sentences, summary_of, tables_of


def test_the_asked_axis_has_a_sentence_per_backend_and_an_open_table(tmp_path: Path) -> None:
    blocks = blocks_of(section, training(tmp_path))
    asked = [
        text.replace("\u00a0", " ") for text in sentences(blocks) if text.startswith("forward+")
    ]
    assert [text.split(":")[0] for text in asked] == [
        "forward+backward against forward at N = 1k, fused",
        "forward+backward against forward at N = 1k, naive",
    ]
    passes, scope = tables_of(blocks)
    assert (passes.folded, scope.folded) == (False, True)
    assert passes.title == "Passes: ratios to forward"
    assert scope.title == "Core, layer and block: ratios to the core"
    assert len(passes.rows) == 8
    place = passes.columns.index("word")
    assert {line[place] for line in passes.rows} == {"more"}


def test_every_ratio_links_to_its_case(tmp_path: Path) -> None:
    for table in tables_of(blocks_of(section, decode(tmp_path))):
        assert len(table.cases) == len(table.rows)


def test_without_a_second_value_a_note_says_so(tmp_path: Path) -> None:
    (only,) = blocks_of(section, quickstart(tmp_path, lengths=(128, 256)))
    assert isinstance(only, Text)
    assert only.kind == "note"
    assert only.text.startswith("There is nothing to compare")


def test_the_end_of_a_run_answers_what_its_contrast_asks(tmp_path: Path) -> None:
    lines = [line.replace("\u00a0", " ") for line in summary_of(decode(tmp_path))]
    contrast = "h_kv = 8 against h_kv = 32 at N_kv = 8k, sdpa: 0.25 times the time"
    assert any(line.startswith(contrast) for line in lines[:2])
    assert any("ime grows as N_kv^x" in line for line in lines[:2])
