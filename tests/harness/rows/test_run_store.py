"""The files of a run survive the crash of their writer, a full disk and a second writer."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput, EnvironmentUnmet, StoreError
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.rows.run_store import (
    Store,
    is_being_written,
    runs,
    writer_lock,
)
from tests.conftest import environment
from tests.fakes.stored_runs import case, plan, record

NAMES = [case(number).id for number in range(9)]


def make(root: Path, rows: int = 0) -> Store:
    cases = [case(number) for number in range(rows)]
    store = Store.create(root, "test", plan(cases, "test"))
    store.append(record(one) for one in cases)
    return store


def test_two_starts_in_one_second_get_two_folders(tmp_path):
    first, second = (Store.create(tmp_path, "same", {}) for _ in range(2))
    assert first.path != second.path
    assert re.fullmatch(r"\d{8}T\d{6}Z-same-[0-9a-f]{8}", first.path.name)


def test_second_writer_is_refused_and_a_dead_ones_lock_is_free(tmp_path):
    store = make(tmp_path)
    with pytest.raises(EnvironmentUnmet, match="another process"):
        Store(store.path)
    store.close()
    code = (
        "from attnbench.harness.rows.run_store import Store; from pathlib import Path; import os;"
        f" Store(Path({str(store.path)!r})); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    Store(store.path).close()


def test_nobody_else_can_write_to_a_new_folder_once_it_has_its_name(tmp_path, monkeypatch):
    rename, refused = Path.rename, []

    def rename_and_try(path, target):
        rename(path, target)
        with pytest.raises(EnvironmentUnmet, match="another process") as error:
            writer_lock(target)
        refused.append(error)

    monkeypatch.setattr(Path, "rename", rename_and_try)
    make(tmp_path).close()
    assert len(refused) == 1
    writer_lock(next(tmp_path.iterdir())).release()


@pytest.mark.long
def test_torn_tail_wherever_it_is_cut_leaves_all_earlier_rows(tmp_path):
    store = make(tmp_path, rows=3)
    store.close()
    whole = (store.path / "rows.jsonl").read_bytes()
    start_of_last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(start_of_last, len(whole), 23):
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


@pytest.mark.parametrize("kind", ["the file is gone", "the file was replaced by another"])
def test_vanished_or_swapped_rows_are_an_error_and_not_a_silent_loss(tmp_path, kind):
    store = make(tmp_path, rows=1)
    (tmp_path / "victim").write_bytes(b"kept")
    (store.path / "rows.jsonl").unlink()
    if "replaced" in kind:
        (store.path / "rows.jsonl").symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match=kind):
        store.append([record(case(8))])
    assert (tmp_path / "victim").read_bytes() == b"kept"


@pytest.mark.parametrize("name", ["rows.jsonl", ".lock", "logs"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_run_whose_files_lead_elsewhere_is_not_written_to(tmp_path, name, kind):
    store = make(tmp_path / "results", rows=2)
    store.close()
    place, victim = store.path / name, tmp_path / "victim"
    place.rename(victim)
    if kind == "link":
        place.symlink_to(victim)
    else:
        os.mkfifo(place)
    before = sorted(victim.iterdir()) if victim.is_dir() else victim.read_bytes() + b"torn"
    if victim.is_file():
        victim.write_bytes(before)
    with pytest.raises(
        BadInput, match=r"cannot be written .*(links|plain|not a folder)"
    ) as refused:
        Store.reopen(store.path)
    assert "\n" not in str(refused.value)
    assert (sorted(victim.iterdir()) if victim.is_dir() else victim.read_bytes()) == before


def synced(monkeypatch):
    """The paths of what is put on disk, in order."""
    seen = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def keep(fd, real=real):
            seen.append(Path(f"/proc/self/fd/{fd}").readlink())
            real(fd)

        monkeypatch.setattr(os, name, keep)
    return seen


def test_rows_and_the_names_of_a_runs_files_are_on_disk_before_the_first_case(
    tmp_path, monkeypatch
):
    seen = synced(monkeypatch)
    store = make(tmp_path)
    assert tmp_path in seen  # the folder's name
    assert seen.index(tmp_path) < seen.index(store.path)  # the names of rows.jsonl and logs
    assert any(path.name.endswith("attnbench-tmp") for path in seen)  # run.json
    seen.clear()
    store.append([record(case(0))])
    assert seen == [store.path / "rows.jsonl"]
    store.close()


def test_a_torn_tail_is_in_quarantine_on_disk_before_it_leaves_the_rows(tmp_path, monkeypatch):
    store = make(tmp_path, rows=1)
    store.close()
    with (store.path / "rows.jsonl").open("ab") as file:
        file.write(b"torn")
    seen = synced(monkeypatch)
    Store.reopen(store.path).close()
    folder = store.path / "quarantine"
    assert seen.index(folder) < seen.index(store.path / "rows.jsonl")


@pytest.mark.long
@pytest.mark.parametrize("when", ["mkdir", "write", "rename"])
def test_a_start_that_is_killed_leaves_no_run_and_the_next_one_sweeps(tmp_path, when):
    cuts = {
        "mkdir": "safe_files.write_all = die",
        "write": "safe_files.os.fsync = die",
        "rename": "Path.rename = die",
    }
    code = (
        "import os; from attnbench.harness.files import safe_files;"
        " from attnbench.harness.rows import run_store; from pathlib import Path;"
        " die = lambda *_: os._exit(9);"
        f" {cuts[when]}; run_store.Store.create(Path({str(tmp_path)!r}), 'x', {{'cases': []}})"
    )
    killed = subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    assert killed.returncode == 9
    assert runs(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 1
    store = make(tmp_path)
    assert list(tmp_path.iterdir()) == [store.path]
    store.close()


@pytest.mark.parametrize("what", ["pipe", "link", "text", "huge"])
def test_an_odd_lock_is_of_nobody_who_writes(tmp_path, what):
    lock = tmp_path / ".lock"
    if what == "pipe":
        os.mkfifo(lock)
    elif what == "link":
        (tmp_path / "pid").write_text(str(os.getpid()))
        lock.symlink_to("pid")
    else:
        lock.write_text("x" if what == "text" else "1" * 5000)
    assert not is_being_written(tmp_path)
    assert is_being_written(make(tmp_path / "held").path)
