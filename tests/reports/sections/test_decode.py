"""reports/sections/decode.py: every decode step with its bytes, rate and share."""

from pathlib import Path

from attnbench.reports.sections import decode as section
from tests.made_runs import made, problem
from tests.reports.data.test_decode import decode_run
from tests.reports.rendering import blocks_of, sentences, tables_of


def test_steps_whose_bytes_are_not_known_are_listed_without_a_rate(tmp_path: Path) -> None:
    step = made("performer", problem(1, kv_seq_len=512), 5.0, exactness="approximate")
    found = blocks_of(section, decode_run(tmp_path, lengths=(), more=[step]))
    (table,) = tables_of(found)
    assert [row[4] for row in table.rows] == [""]
    assert any(text.startswith("Not exact attention") for text in sentences(found))
