"""reports/sections/heads.py: the cost of h heads against one, as sentences and a table."""

from pathlib import Path

from attnbench.reports.sections import heads as section
from tests.reports.fake_runs import head_sweep
from tests.reports.rendering import blocks_of, figures_of, sentences, tables_of


def test_the_section_has_the_sentences_and_a_column_for_the_answer(tmp_path: Path) -> None:
    found = blocks_of(section, head_sweep(tmp_path))
    texts = sentences(found)
    assert sum("heads cost as many FLOPs as one head" in text for text in texts) == 3
    tables = tables_of(found) + [figure.table for figure in figures_of(found)]
    place = tables[0].columns.index("same within 5 %")
    assert {line[place] for line in tables[0].rows} <= {"", "yes", "no", "undecided"}
    assert {line[place] for line in tables[0].rows if line[2] == "1"} == {""}
