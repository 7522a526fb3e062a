"""reports/sections/decode.py: every decode step with its bytes, rate and share."""

from pathlib import Path

from attnbench.reports.elements import Text
from attnbench.reports.sections import decode as section
from tests.reports.fake_contrasts import timed
from tests.reports.fake_decode import MIB, decode_run
from tests.reports.fake_runs import problem, quickstart
from tests.reports.rendering import blocks_of, sentences, tables_of


def test_the_table_has_every_step_and_what_its_numbers_are_of(tmp_path: Path) -> None:
    found = blocks_of(section, decode_run(tmp_path))
    (table,) = tables_of(found)
    assert table.columns == (
        *("problem", "backend", "must move", "time", "rate", "of measured bandwidth", "see"),
    )
    assert len(table.rows) == 12
    share = {row[1]: row[5] for row in table.rows if row[0].startswith("N_kv\u00a0=\u00a08k")}
    assert share["sdpa"].startswith("50.0 % (4")
    texts = sentences(found)
    assert "Imaginary CPU 9000 (cpu): measured memory bandwidth of 20.0 GB/s." in texts
    marked = {row[0] for row in table.rows if row[6] == "a"}
    assert len(marked) == 3  # 16 MiB, 4 MiB and 16 MiB fit in 32 MiB
    assert any(text.startswith("a: the data fit in the CPU's cache of 32 MiB") for text in texts)


def test_what_holds_for_every_step_is_said_once(tmp_path: Path) -> None:
    found = blocks_of(section, decode_run(tmp_path, calibrated={}, cache_bytes=4 * MIB))
    (table,) = tables_of(found)
    assert table.columns == ("problem", "backend", "must move", "time", "rate")
    assert all(" GB/s (" in row[4] for row in table.rows)  # with its interval
    said = [text for text in sentences(found) if text.startswith("No memory bandwidth was")]
    assert len(said) == 1


def test_runs_without_decode_say_what_would_be_one(tmp_path: Path) -> None:
    (only,) = blocks_of(section, quickstart(tmp_path))
    assert isinstance(only, Text)
    assert only.kind == "note"
    assert "attnbench run decode" in only.text


def test_steps_whose_bytes_are_not_known_are_listed_without_a_rate(tmp_path: Path) -> None:
    made = timed("performer", problem(1, kv_seq_len=512), 5.0, exactness="approximate")
    found = blocks_of(section, decode_run(tmp_path, lengths=(), more=[made]))
    (table,) = tables_of(found)
    assert [row[4] for row in table.rows] == [""]
    assert any(text.startswith("Not exact attention") for text in sentences(found))
