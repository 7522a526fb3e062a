"""Files of ours: opened without following links, written whole, held by one process at a time.

Imports `errors` only: what reads and what writes runs share it.
"""

import errno
import fcntl
import io
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from .errors import BadInput

PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.attnbench-tmp")
MOST_LINKS = 40  # as the kernel: more are a loop
PID_BYTES = 20
NEW_FILE = 0o666  # less what the user's mask takes away
LOCK_FILE = 0o600  # who can open a file can hold its lock, also without the right to write
MOST_WAIT_S, POLL_S = 2.0, 0.05  # for whoever appends to the same file
RESULTS = ("run.json", "suite.json", "[0-9]*T[0-9]*Z-*/run.json", "[0-9]*T[0-9]*Z-*/suite.json")
"""What a folder of results has in it."""
MOST_JUNK_BYTES = 256 << 20  # of a file, that are no text or beyond the length of a line
LINE_BYTES = 256  # that any line counts as: of a million, more than ten a second for a day


class NotPlain(OSError):
    """A link, a pipe, a device or a folder, where a file is wanted; strerror says which."""


class Held(Exception):
    """Another process holds the lock; `pid` is None if it is not known."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(pid)
        self.pid = pid


# ---- opening -------------------------------------------------------------------------------------


def open_plain(
    path: Path | str, flags: int = os.O_RDONLY, mode: int = NEW_FILE, dir_fd: int | None = None
) -> int:
    """A descriptor of a regular file; a link is not followed, a pipe not waited for.

    Raises OSError; NotPlain if it is something else.
    """
    try:
        fd = os.open(path, flags | PLAIN, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPlain(errno.ELOOP, "a link, and links are not followed") from None
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise NotPlain(error.errno, "not a plain file") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotPlain(errno.EINVAL, "not a plain file")
    return fd


class _File(io.FileIO):
    """Of which an error of reading names the path."""

    readall = io.RawIOBase.readall  # by `read`, and that by `readinto`
    read = io.RawIOBase.read  # type: ignore[assignment] # of None bytes is asked for by nobody

    def __init__(self, fd: int, path: Path | str) -> None:
        super().__init__(fd)
        self.path = path

    def readinto(self, buffer: Any, /) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            error.filename = str(self.path)
            raise


def opened(path: Path | str) -> io.BufferedReader:
    """A regular file to read, as open_plain. Raises OSError, also when it is read."""
    return io.BufferedReader(_File(open_plain(path), path))


def is_folder(path: Path) -> bool:
    """A folder itself, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def refuse_way_out(path: Path) -> None:
    """Raises NotPlain if a link in a folder of results leads to somewhere outside of it."""
    path = path.absolute()
    for place in (path, *path.parents):
        if place.is_symlink() and any(any(place.parent.glob(name)) for name in RESULTS):
            inside = os.path.realpath(place.parent)
            if not Path(os.path.realpath(place)).is_relative_to(inside):
                what = f"{place.name} is a link out of a folder of results, and is not followed"
                raise NotPlain(errno.ELOOP, what)


def read_text(path: Path, name: str, most_bytes: int, wanted: str) -> str:
    """A user's file, of UTF-8, also at the end of links, but not if they lead out of results; of no
    pipe. Raises BadInput, which calls it `name`, at the place of the first bad byte.
    """
    try:
        refuse_way_out(path)
        with opened(os.path.realpath(path)) as file:
            content = file.read(most_bytes + 1)
    except FileNotFoundError:
        raise BadInput(f"{name}: no such file; wanted {wanted}") from None
    except (OSError, ValueError) as error:  # a ValueError for a NUL byte
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{name}: {reason}; wanted {wanted}") from None
    if len(content) > most_bytes:
        raise BadInput(f"{name}: larger than {most_bytes >> 20} MiB; wanted {wanted}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"{name}:{text_place(content[: error.start].decode())}"
        raise BadInput(
            f"{where}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None


def lines_of(file: BinaryIO, most_bytes: int) -> Iterator[bytes]:
    """The lines of a file; of one that is longer, the first `most_bytes` and one more.

    A sparse file of a terabyte is zeros, and takes no room on the disk but minutes to read: nothing
    is read after a million lines, or MOST_JUNK_BYTES of those with zeros or beyond their length.
    """
    junk = 0
    while junk <= MOST_JUNK_BYTES and (line := file.readline(most_bytes + 1)):
        yield line
        junk += len(line) if b"\0" in line else LINE_BYTES
        while len(line) > most_bytes and not line.endswith(b"\n") and junk <= MOST_JUNK_BYTES:
            line = file.readline(most_bytes + 1) or b"\n"
            junk += len(line)


def text_place(before: str) -> str:
    """line:col of the character that follows `before`."""
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def append_lines(path: Path, text: str) -> None:
    """Append whole lines and put them on disk; an incomplete last line, which a crash or a full
    disk leaves, is ended before. Raises OSError.
    """
    fd = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        ends_s = time.monotonic() + MOST_WAIT_S
        while not _locked(fd) and time.monotonic() < ends_s:
            time.sleep(POLL_S)  # another one's line may be half there, and is not torn
        size = os.fstat(fd).st_size
        torn = text and size and os.pread(fd, 1, size - 1) != b"\n"
        write_all(fd, ("\n" * bool(torn) + text).encode())
        os.fdatasync(fd)
    finally:
        os.close(fd)


def make_folder(path: Path) -> None:
    """A folder, if it is not there yet. Raises OSError; NotPlain if it is a link or a file."""
    with suppress(FileExistsError):
        path.mkdir()
    if not stat.S_ISDIR(path.lstat().st_mode):
        what = "a link, and links are not followed" if path.is_symlink() else "not a folder"
        raise NotPlain(errno.ENOTDIR, what)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """A write may be short, as with a file size limit."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_folder(path: Path) -> None:
    """Put the names of a folder's files on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# ---- writing -------------------------------------------------------------------------------------


def write_whole(path: Path, content: str | bytes | memoryview, *, new: bool = False) -> None:
    """Replace a file in one step: after a crash it has the old content or the new, never a part.

    A link at this place is replaced, not followed. Raises OSError; NotPlain for a pipe or a device,
    or below a link out of a folder of results. `new`: FileExistsError if there is something, and of
    several writers at once one writes it.
    """
    data = content.encode() if isinstance(content, str) else content
    kept_mode = None
    refuse_way_out(path.parent)
    with suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "not a plain file"
            raise NotPlain(errno.EINVAL, what)
        kept_mode = stat.S_IMODE(found.st_mode) if stat.S_ISREG(found.st_mode) else None
    sweep(path.parent)
    with temporary(path.parent, is_folder=False) as (unfinished, fd):
        write_all(fd, data)
        if kept_mode is not None:
            os.fchmod(fd, kept_mode)
        os.fsync(fd)
        if new:
            path.hardlink_to(unfinished)
        else:
            unfinished.replace(path)
    sync_folder(path.parent)


def write_output(path: Path, content: str | bytes) -> bool:
    """Write to a place that the user named; whether it is now a file there, with this content.

    A regular file is replaced in one step, also at the end of links, which stay. A pipe, a device
    or an open descriptor (`/dev/stdout`) is written in place. Raises OSError; NotPlain for a link
    of another user, or out of a folder of results.
    """
    data = content.encode() if isinstance(content, str) else content
    refuse_way_out(path)
    for _ in range(MOST_LINKS):
        if (fd := _own_descriptor(path)) is not None:
            for stream in (sys.stdout, sys.stderr):  # what was printed before comes first
                with suppress(AttributeError, OSError, ValueError):
                    stream.flush()
            write_all(fd, data)
            return False
        if not path.is_symlink():
            break
        if path.lstat().st_uid not in (os.geteuid(), 0):
            raise NotPlain(errno.ELOOP, "a link of another user, which is not followed")
        path = path.parent / path.readlink()
    else:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not path.exists() or path.is_file() or path.is_dir():
        write_whole(path, data)
        return True
    fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    return False


def _own_descriptor(path: Path) -> int | None:
    """The number N of /dev/fd/N and its other names; None for any other path."""
    folder = Path(os.path.realpath(path.parent))
    is_ours = folder.name == "fd" and folder.is_relative_to(f"/proc/{os.getpid()}")
    return int(path.name) if is_ours and path.name.isdecimal() else None


# ---- temporaries ---------------------------------------------------------------------------------


@contextmanager
def temporary(folder: Path, *, is_folder: bool) -> Iterator[tuple[Path, int]]:
    """A new file or folder in `folder`, and its descriptor; removed unless it was renamed.

    Its lock tells `sweep` that its writer lives. Raises OSError.
    """
    while True:
        path = folder / f".{secrets.token_hex(8)}.attnbench-tmp"
        if is_folder:
            path.mkdir()
            try:
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | PLAIN)
            except FileNotFoundError:  # swept already
                continue
        else:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, NEW_FILE)
        if _locked(fd) and path.exists():
            break
        _remove(path)  # as a sweeper does that has it, or had
        os.close(fd)
    try:
        yield path, fd
    finally:
        _remove(path)
        os.close(fd)


def sweep(folder: Path) -> None:
    """Remove the temporaries of writers that were killed."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_stale(Path(entry.path))


def _remove_if_stale(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | PLAIN)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    finally:
        os.close(fd)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


# ---- locks ---------------------------------------------------------------------------------------


def _locked(fd: int) -> bool:
    """False if somebody else has the lock. Some network file systems have no locks."""
    with suppress(OSError):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


class FileLock:
    """A lock file, held; the process that holds it is named in it.

    The kernel frees it when its holder dies.
    """

    def __init__(self, path: Path | str, *, dir_fd: int | None = None, own: bool = False) -> None:
        """`own`: the file must be this user's alone. Raises Held, OSError."""
        while True:
            self._fd = open_plain(path, os.O_RDWR | os.O_CREAT, LOCK_FILE, dir_fd)
            try:
                found = os.fstat(self._fd)
                if own and (found.st_uid != os.geteuid() or found.st_nlink > 1):
                    raise NotPlain(errno.EPERM, "not this user's own file")
                with suppress(OSError):  # another user's
                    os.fchmod(self._fd, LOCK_FILE)  # earlier versions let others read it
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.pread(self._fd, PID_BYTES, 0)
                os.close(self._fd)
                raise Held(int(pid) if pid.isdigit() else None) from None
            except BaseException:
                os.close(self._fd)
                raise
            if os.fstat(self._fd).st_nlink:
                break
            os.close(self._fd)  # its last holder removed it; that lock excludes nobody
        self._pid = os.getpid()
        with suppress(OSError):  # a full disk; the lock holds all the same
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, str(self._pid).encode(), 0)

    def release(self) -> None:
        """Safe to call twice. In a fork of the holder it stays held."""
        if self._fd >= 0:
            if self._pid == os.getpid():
                with suppress(OSError):
                    os.ftruncate(self._fd, 0)
                with suppress(OSError):  # a child that is being started has the descriptor too
                    fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
        self._fd = -1
