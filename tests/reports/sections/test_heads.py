"""reports/sections/heads.py: the cost of h heads against one, as sentences and a table."""

from pathlib import Path

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.elements import Table, Text
from attnbench.reports.sections import heads as section
from tests.reports.fake_runs import head_sweep


def test_the_section_has_the_sentences_and_a_column_for_the_answer(tmp_path: Path) -> None:
    read = read_run(head_sweep(tmp_path))
    found = list(section.render(frame([read]), {read.meta["run"]: read.meta}))
    said = [block.text for block in found if isinstance(block, Text)]
    assert sum("heads cost as many FLOPs as one head" in text for text in said) == 3
    tables = [block for block in found if isinstance(block, Table)] + [
        block.table for block in found if hasattr(block, "table")
    ]
    assert tables
    place = tables[0].columns.index("same within 5 %")
    assert {line[place] for line in tables[0].rows} <= {"", "yes", "no", "undecided"}
    assert {line[place] for line in tables[0].rows if line[2] == "1"} == {""}
