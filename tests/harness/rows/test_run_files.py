"""Numbers of a row's line: none that a float cannot hold, however it is written. Files without an
end, as a sparse one is, and rows with millions of mistakes end all the same.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.safe_files import MOST_JUNK_BYTES, lines_of
from attnbench.harness.rows.model import check_meta
from attnbench.harness.rows.run_files import LINE_CAP_BYTES, BadRun, parsed_row, read_rows
from attnbench.harness.rows.run_store import is_being_written
from attnbench.reports.data.noise_floor import newest_noise_floor
from tests.made_runs import case, problem, row

ENDLESS_BYTES = 1 << 40
LINE = '{"schema": 1, "kind": "later", "case": "node000", "x": %s}'


@pytest.mark.parametrize(
    "number",
    [
        *("1e999", "1E400", "-1e309", "1e+309", "1.8E+308", "1e0309", "1.0e00309"),
        *("9" * 310 + ".0", "9" * 250 + "e99", "9" * 250 + ".5E+98"),
    ],
)
def test_a_number_beyond_the_largest_float_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="is not JSON; a missing value is null"):
        parsed_row((LINE % number).encode())


@pytest.mark.parametrize(
    "number",
    [
        *("1.5", "-2.5e-3", "1e99", "1E+99", "1e308", "5e-324", "1e-999", "0.1234567890123456789"),
        *("9" * 199 + "e99", "0." + "0" * 400 + "1"),
    ],
)
def test_any_other_number_is_read_as_it_is_written(number: str) -> None:
    assert parsed_row((LINE % number).encode())["x"] == float(number)


def endless(path: Path, begin: bytes = b"", line_bytes: int = 0) -> Path:
    """A terabyte of nothing behind `begin`; `line_bytes`: of each line of the first 4 GiB."""
    path.write_bytes(begin)
    os.truncate(path, ENDLESS_BYTES)
    with path.open("r+b") as file:
        for end in range(line_bytes, 4 << 30, line_bytes) if line_bytes else ():
            file.seek(end)
            file.write(b"\n")
    return path


@pytest.mark.parametrize("line_bytes", [0, LINE_CAP_BYTES // 2, LINE_CAP_BYTES * 4])
def test_rows_without_an_end_are_refused_and_salvage_leaves_them_out(
    tmp_path: Path, line_bytes: int
) -> None:
    good = (LINE % 1).encode() + b"\n"
    endless(tmp_path / "rows.jsonl", good, line_bytes)
    with pytest.raises(BadRun, match=r":2: .*--salvage"):
        list(read_rows(tmp_path))
    notes: list[str] = []
    assert len(list(read_rows(tmp_path, notes, salvage=True))) == 1
    assert "everything after line" in " ".join(notes)


def test_what_is_read_of_a_file_without_an_end_is_bounded(tmp_path: Path) -> None:
    with endless(tmp_path / "file", b"one\n").open("rb") as file:
        first, second = lines_of(file, 100)
        assert file.tell() <= MOST_JUNK_BYTES + 1000
    assert (first, len(second)) == (b"one\n", 101)


@pytest.mark.long
def test_other_files_of_a_run_may_have_no_end(tmp_path: Path) -> None:
    endless(tmp_path / "selfcheck.jsonl")
    assert newest_noise_floor([tmp_path], {}) is None
    assert not is_being_written(endless(tmp_path / ".lock").parent)


MISTAKES = 300_000


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("windows", [[]] * MISTAKES, "windows[0]: found [], wanted a valid dictionary"),
        ("conditions", [[0] * MISTAKES], "conditions[0][0]: found 0, wanted a valid dictionary"),
        ("judged", [0] * MISTAKES, "judged[0]: found 0, wanted a valid dictionary"),
    ],
)
def test_of_many_mistakes_the_first_is_told(name: str, value: Any, said: str) -> None:
    """Each costs hundreds of bytes of memory: 8 million in a line took minutes to be told."""
    line = json.dumps(row(case("naive", problem(64))) | {name: value}).encode()
    with pytest.raises(ValueError, match="found") as caught:
        parsed_row(line)
    assert said in str(caught.value)
    with pytest.raises(ValueError, match=r"cases\[0\]"):
        check_meta({"run": "", "device": "", "scenario": {}, "environment": {}, "cases": value})
