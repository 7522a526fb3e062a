"""The files of a run survive the crash of their writer, a full disk and a second writer."""

import json
import os
import resource
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from attnbench.harness.baselines import find_run
from attnbench.harness.errors import BadInput, EnvironmentUnmet, StoreError
from attnbench.harness.files import write_whole
from attnbench.harness.run_files import read_meta, read_rows
from attnbench.harness.store import Store, point_latest, runs
from tests.conftest import environment
from tests.fakes.stored_runs import case, plan, record

NAMES = [case(number).id for number in range(9)]


def make(root: Path, rows: int = 0) -> Store:
    cases = [case(number) for number in range(rows)]
    store = Store.create(root, "test", plan(cases, "test"))
    store.append(record(one) for one in cases)
    return store


def test_two_starts_in_one_second_get_two_folders(tmp_path):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    first, second = (Store.create(tmp_path, "same", {}, now=now) for _ in range(2))
    assert first.path != second.path
    assert first.path.name.startswith("20260101T000000Z-same-")


def test_second_writer_is_refused_and_a_dead_ones_lock_is_free(tmp_path):
    store = make(tmp_path)
    with pytest.raises(EnvironmentUnmet, match="another process"):
        Store(store.path)
    store.close()
    code = (
        "from attnbench.harness.store import Store; from pathlib import Path; import os;"
        f" Store(Path({str(store.path)!r})); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    Store(store.path).close()


def test_torn_tail_at_every_byte_leaves_all_earlier_rows(tmp_path):
    store = make(tmp_path, rows=3)
    store.close()
    whole = (store.path / "rows.jsonl").read_bytes()
    start_of_last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(start_of_last, len(whole)):
        (store.path / "rows.jsonl").write_bytes(whole[:cut])
        assert [row["case"] for row in read_rows(store.path)] == NAMES[:2]
        again = Store.reopen(store.path)
        again.append([record(case(8))])
        again.close()
        assert [row["case"] for row in read_rows(store.path)] == [*NAMES[:2], NAMES[8]]
        torn = whole[start_of_last:cut]
        kept = (
            [path.read_bytes() for path in (store.path / "quarantine").glob("*")] if torn else [b""]
        )
        assert torn in kept
        for path in (store.path / "quarantine").glob("*"):
            path.unlink()


def test_a_torn_tail_longer_than_one_read_is_found(tmp_path):
    store = make(tmp_path, rows=2)
    store.close()
    with (store.path / "rows.jsonl").open("ab") as file:
        file.write(b"x" * 200_000)
    Store.reopen(store.path).close()
    assert len(list(read_rows(store.path))) == 2
    assert len((store.path / "rows.jsonl").read_bytes().splitlines()) == 2


def test_broken_line_in_the_middle_is_named_with_its_number(tmp_path):
    store = make(tmp_path, rows=2)
    store.close()
    with (store.path / "rows.jsonl").open("ab") as file:
        file.write(b'{"case": \n{"case": "c9"}\n')
    with pytest.raises(BadInput, match=r"rows.jsonl:3: not valid JSON"):
        list(read_rows(store.path))


def test_full_disk_keeps_earlier_rows_and_hands_back_the_new_one(tmp_path):
    store = make(tmp_path, rows=2)
    size = (store.path / "rows.jsonl").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
    try:
        with pytest.raises(
            StoreError, match=r"rows.jsonl: File too large after \d+ bytes"
        ) as caught:
            store.append([record(case(7), "error", "x" * 4000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.unsaved[0]["case"] == NAMES[7]
    assert (store.path / "rows.jsonl").stat().st_size == size
    store.append([record(case(8))])
    assert [row["case"] for row in read_rows(store.path)] == [*NAMES[:2], NAMES[8]]
    store.close()


def test_vanished_folder_is_an_error_and_not_a_silent_loss(tmp_path):
    store = make(tmp_path, rows=1)
    (store.path / "rows.jsonl").unlink()
    with pytest.raises(StoreError, match="the file is gone"):
        store.append([record(case(8))])


def test_whole_files_are_old_or_new_when_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, "old")

    def fails(fd):
        raise OSError(5, "power cut")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="power cut"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_runs_are_found_by_path_name_and_latest(tmp_path):
    store = make(tmp_path, rows=1)
    store.close()
    name = store.path.name
    found = {find_run(one, tmp_path) for one in (str(store.path), name, "latest")}
    assert found == {store.path}
    with pytest.raises(BadInput, match="no such run"):
        find_run("nothing", tmp_path)
    with pytest.raises(BadInput, match="a folder without"):
        find_run(str(tmp_path), tmp_path)
    assert runs(tmp_path) == [store.path]


def test_latest_follows_the_newest(tmp_path):
    point_latest(tmp_path, "a")
    point_latest(tmp_path, "b")
    assert (tmp_path / "latest").readlink() == Path("b")


def test_newer_format_is_refused_naming_both_versions(tmp_path):
    store = make(tmp_path)
    store.close()
    meta = json.loads((store.path / "run.json").read_text())
    (store.path / "run.json").write_text(json.dumps({**meta, "schema": 99}))
    with pytest.raises(BadInput, match=r"format 99, newer than format 1"):
        read_meta(store.path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x1f\x8b garbage", b"null"])
def test_broken_run_json_is_one_line(tmp_path, content):
    store = make(tmp_path)
    store.close()
    (store.path / "run.json").write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_meta(store.path)
    assert "\n" not in str(caught.value)


def test_unwritable_root_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot make a run folder"):
        Store.create(tmp_path / "file" / "deeper", "x", {})
