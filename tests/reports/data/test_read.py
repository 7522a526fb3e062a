"""Reading a run: every broken folder is one named line, and reading changes nothing."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.rows import run_files
from attnbench.harness.rows.run_files import BadRun
from attnbench.reports.data.run_meta import read_run
from tests.made_runs import (
    WINDOW,
    case,
    problem,
    read_rows,
    row,
    write_rows,
    write_run,
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cases = [case(backend, problem(n)) for n in (128, 256) for backend in ("fused", "sdpa")]
    return write_run(tmp_path, cases, [row(planned) for planned in cases[:3]])


def line(run: Path, number: int, **changes: Any) -> None:
    """Changes one line of rows.jsonl."""
    path = run / "rows.jsonl"
    lines = path.read_text().splitlines()
    lines[number - 1] = json.dumps(json.loads(lines[number - 1]) | changes)
    path.write_text("".join(f"{one}\n" for one in lines))


def test_rows_come_in_the_order_of_the_plan_and_missing_cases_are_kept_apart(run: Path) -> None:
    write_rows(run, read_rows(run)[::-1])
    found = read_run(run)
    assert [one["case"] for one in found.rows] == [one["case"] for one in found.meta["cases"]][:3]
    assert [one["case"] for one in found.missing] == [found.meta["cases"][3]["case"]]
    assert found.notes == []


def test_the_last_attempt_of_a_case_counts(run: Path) -> None:
    rows = read_rows(run)
    write_rows(run, [*rows, rows[0] | {"attempt": 2, "peak_bytes": 77}])
    found = read_run(run)
    assert len(found.rows) == 3
    assert (found.rows[0]["attempt"], found.rows[0]["peak_bytes"]) == (2, 77)


def test_a_torn_tail_is_left_out_with_a_note_and_not_touched(run: Path) -> None:
    torn = (run / "rows.jsonl").read_bytes()[:-40]
    (run / "rows.jsonl").write_bytes(torn)
    found = read_run(run)
    assert len(found.rows) == 2
    assert len(found.missing) == 2
    assert "line 3" in found.notes[0]
    assert (run / "rows.jsonl").read_bytes() == torn


@pytest.mark.parametrize("rows", [None, b""])
def test_a_run_that_was_stopped_before_its_first_row_is_all_missing(
    run: Path, rows: bytes | None
) -> None:
    (run / "rows.jsonl").unlink()
    if rows is not None:
        (run / "rows.jsonl").write_bytes(rows)
    assert len(read_run(run).missing) == 4


@pytest.mark.parametrize("file", ["run.json", "rows.jsonl"])
def test_a_newer_format_is_refused_with_both_versions(run: Path, file: str) -> None:
    text = (run / file).read_text()
    (run / file).write_text(text.replace('"schema": 1', '"schema": 7'))
    with pytest.raises(BadRun, match=r"format 7, newer than format 1"):
        read_run(run)


GARBAGE = {
    "zeros": (b"\0" * 100 + b"\n", "not valid JSON"),
    "gzip": (gzip.compress(b"{}\n", mtime=0) + b"\n", "gzip"),
    "a list": (b"[1, 2]\n", "wanted a JSON object, found list"),
    "NaN": (b'{"schema": 1, "spent_s": NaN}\n', "NaN is not JSON"),
    "infinity by size": (b'{"schema": 1, "spent_s": 1e400}\n', "1e400 is not JSON"),
    "a huge integer": (b'{"schema": 1, "spent_s": ' + b"9" * 5000 + b"}\n", "not valid JSON"),
    "deep nesting": (b"[" * 100_000 + b"\n", "not valid JSON"),
    "not UTF-8": (b'{"schema": 1, "case": "\xff\xfe"}\n', "not valid JSON"),
    "no schema": (b"{}\n", "schema: found None"),
    "a false schema": (b'{"schema": true}\n', "schema: found True"),
}


@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize("file", ["run.json", "rows.jsonl"])
def test_garbage_is_one_line_with_file_and_line_number(run: Path, file: str, name: str) -> None:
    garbage, message = GARBAGE[name]
    good = (run / file).read_bytes() if file == "rows.jsonl" else b""
    (run / file).write_bytes(good + garbage)
    with pytest.raises(BadRun) as found:
        read_run(run)
    text = str(found.value)
    assert message in text
    assert "\n" not in text
    assert (f"{file}:4: " if good else f"{file}: ") in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": "128"}, "rows.jsonl:2: seq_len: found '128'"),
        ({"heads": True}, "heads: found True"),
        ({"batch": None}, "batch: found nothing"),
        ({"block_ms": [[[1e-300]]]}, "block_ms[0][0][0]: found 1e-300"),
        ({"status": "fine"}, "status: found 'fine', wanted one of ok, oom"),
        ({"block_ms": [[1.0]]}, "block_ms[0][0]: found 1.0"),
        ({"windows": [3]}, "windows[0]: found 3"),
        ({"windows": [{"way": "eager"}]}, "windows[0].window_s: found nothing"),
        ({"windows": [WINDOW | {"calls": "9"}]}, "windows[0].calls: found '9'"),
        ({"tables": [3]}, "tables: found [3]"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(
    run: Path, changes: dict[str, Any], message: str
) -> None:
    line(run, 2, **changes)
    with pytest.raises(BadRun) as found:
        read_run(run)
    assert message in str(found.value)


def test_a_huge_line_is_refused_without_reading_it_whole(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "LINE_CAP_BYTES", 1 << 20)
    with (run / "rows.jsonl").open("a") as file:
        file.write("x" * ((1 << 20) + 1))
    with pytest.raises(BadRun, match=r"rows\.jsonl:4: longer than 1 MiB"):
        read_run(run)


@pytest.mark.parametrize("file", ["run.json", "rows.jsonl"])
def test_a_link_out_of_the_folder_is_not_followed(run: Path, tmp_path: Path, file: str) -> None:
    (run / file).rename(tmp_path / "elsewhere")
    (run / file).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadRun, match="links are not followed"):
        read_run(run)


def test_a_pipe_is_not_waited_on(run: Path) -> None:
    (run / "rows.jsonl").unlink()
    os.mkfifo(run / "rows.jsonl")
    with pytest.raises(BadRun, match="not a plain file"):
        read_run(run)


def test_the_link_results_latest_may_name_a_run(run: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(run)
    assert len(read_run(tmp_path / "latest").rows) == 3


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere", "no such folder"), (".", "no such file"), ("file", "not a folder")],
)
def test_a_path_that_is_no_run_is_named(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRun, match=message):
        read_run(tmp_path / path)


def test_rows_of_another_kind_or_of_no_planned_case_have_a_note(run: Path) -> None:
    unplanned = row(case("sdpa", problem(512)))
    audited = {"schema": 1, "kind": "kernel", "case": "kernel-sm90", "status": "ok"}
    write_rows(run, [*read_rows(run), unplanned, unplanned | {"kind": "poem"}, audited])
    found = read_run(run)
    assert found.rows[-1]["case"] == unplanned["case"]
    assert found.notes == [
        "2 rows of a kind other than latency, wall and study left out",
        "1 row of cases that are not in the plan",
    ]
