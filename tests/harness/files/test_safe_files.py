"""What is no regular file is written in place or refused; what killed writers left is swept."""

import fcntl
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attnbench.harness.files import safe_files as files
from attnbench.harness.files.safe_files import (
    FileLock,
    Held,
    NotPlain,
    append_lines,
    open_plain,
    opened,
    refuse_way_out,
    temporary,
    write_output,
    write_whole,
)
from tests.conftest import environment


def test_a_pipe_is_written_in_place_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    assert not write_output(pipe, "page")
    reader.join(60)
    assert got == [b"page"]
    assert pipe.is_fifo()


@pytest.mark.long
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_stdout_in_a_file_is_written_where_it_stands(tmp_path: Path, name: str, mode: str) -> None:
    target = tmp_path / "target"
    target.write_text("earlier\n")
    code = (
        "from attnbench.harness.files.safe_files import write_output; from pathlib import Path;"
        f" print('before'); write_output(Path({name!r}), 'page\\n'); print('after')"
    )
    with target.open(mode) as stdout:
        subprocess.run(
            [sys.executable, "-c", code], stdout=stdout, env=environment(), check=True, timeout=60
        )
    earlier = "earlier\n" if mode == "ab" else ""
    assert target.read_text() == f"{earlier}before\npage\nafter\n"


def test_a_link_to_a_file_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "page.html"
    for old in (None, "old"):
        if old is not None:
            target.write_text(old)
            target.chmod(0o640)
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to("there/page.html")
        assert write_output(tmp_path / "link", "new")
        assert (tmp_path / "link").is_symlink()
        assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_links_in_a_circle_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels"):
        write_output(tmp_path / "loop", "page")
    with pytest.raises(NotPlain, match="a folder"):
        write_output(tmp_path, "page")
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("old")
    (tmp_path / "link").symlink_to("victim")
    os.lchown(tmp_path / "link", 12345, 12345)
    with pytest.raises(NotPlain, match="another user"):
        write_output(tmp_path / "link", "page")
    assert (tmp_path / "victim").read_text() == "old"


def test_a_file_of_ours_replaces_a_link_and_refuses_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("old")
    (tmp_path / "report.html").symlink_to("victim")
    write_whole(tmp_path / "report.html", "new")
    assert (tmp_path / "victim").read_text() == "old"
    assert not (tmp_path / "report.html").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotPlain, match="not a plain file"):
        write_whole(tmp_path / "pipe", "new")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREAT])
def test_only_plain_files_are_opened_and_nothing_is_waited_for(tmp_path: Path, flags: int) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "link", "folder"):
        with pytest.raises(NotPlain):
            open_plain(tmp_path / name, flags)
    os.close(open_plain(tmp_path / "file", flags))


def test_lines_are_appended_after_an_incomplete_one_and_never_through_a_link(
    tmp_path: Path,
) -> None:
    (tmp_path / "lines").write_text("whole\nhalf")
    append_lines(tmp_path / "lines", "new\n")
    assert (tmp_path / "lines").read_text() == "whole\nhalf\nnew\n"
    (tmp_path / "link").symlink_to("lines")
    with pytest.raises(NotPlain):
        append_lines(tmp_path / "link", "evil\n")


def test_what_a_killed_writer_left_is_swept_and_what_a_living_one_has_is_not(
    tmp_path: Path,
) -> None:
    code = (
        "import os; from attnbench.harness.files import safe_files; from pathlib import Path;"
        " safe_files.os.fsync = lambda fd: os._exit(9);"  # killed before the rename
        f" safe_files.write_whole(Path({str(tmp_path / 'page')!r}), 'new')"
    )
    (tmp_path / "page").write_text("old")
    killed = subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    assert killed.returncode == 9
    left = [path for path in tmp_path.iterdir() if path.name != "page"]
    assert len(left) == 1
    assert (tmp_path / "page").read_text() == "old"
    with temporary(tmp_path, is_folder=True) as (living, _):
        write_whole(tmp_path / "page", "newer")
        assert {path.name for path in tmp_path.iterdir()} == {"page", living.name}
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_a_lock_file_names_its_holder_until_it_is_free(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert (tmp_path / "lock").read_text() == str(os.getpid())
    with pytest.raises(Held) as held:
        FileLock(tmp_path / "lock")
    assert held.value.pid == os.getpid()
    lock.release()
    lock.release()
    assert (tmp_path / "lock").read_text() == ""
    FileLock(tmp_path / "lock").release()


def test_a_fork_of_the_holder_does_not_free_its_lock(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    if (child := os.fork()) == 0:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(Held) as held:
        FileLock(tmp_path / "lock")
    assert held.value.pid == os.getpid()
    lock.release()


def test_of_several_writers_of_a_new_file_one_writes_it(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def write(number: int) -> bool:
        start.wait()
        try:
            write_whole(tmp_path / "name", str(number), new=True)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        wrote = list(pool.map(write, range(8)))
    assert wrote.count(True) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["name"]
    assert (tmp_path / "name").read_text() == str(wrote.index(True))


def test_no_reader_keeps_the_owner_from_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who can open a file can hold its lock."""
    (tmp_path / "lock").touch(0o644)
    FileLock(tmp_path / "lock").release()
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(files, "MOST_WAIT_S", 0.1)
    append_lines(tmp_path / "lines", "one\n")
    with (tmp_path / "lines").open() as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        append_lines(tmp_path / "lines", "two\n")
    assert (tmp_path / "lines").read_text() == "one\ntwo\n"


def test_an_error_of_reading_names_the_file() -> None:
    with opened("/proc/self/mem") as file:
        for read in (file.read, lambda: file.read(10), file.readline):
            with pytest.raises(OSError, match="Input/output error: '/proc/self/mem'"):
                read()


@pytest.mark.parametrize("inside", ["run.json", "20261121T093000Z-mine-00000000/run.json"])
def test_no_link_leads_out_of_a_folder_of_results(tmp_path: Path, inside: str) -> None:
    results, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    (results / inside).parent.mkdir(parents=True)
    elsewhere.mkdir()
    (results / "out").symlink_to(elsewhere)
    (results / "page").symlink_to(elsewhere / "page")
    refuse_way_out(results / "out")  # nothing says yet that these are results
    (results / inside).touch()
    for write in (write_output, write_whole):
        with pytest.raises(NotPlain, match="out is a link out of a folder of results"):
            write(results / "out" / "page", "x")
    with pytest.raises(NotPlain, match="page is a link out of a folder of results"):
        write_output(results / "page", "x")
    assert not list(elsewhere.iterdir())
    (results / "latest").symlink_to(Path(inside).parent)
    assert write_output(results / "latest" / "page.html", "x")
