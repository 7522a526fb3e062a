"""One run at a time on a device: two at once would measure each other.

All runs of a user meet in one folder, whatever their environment: a login session has
XDG_RUNTIME_DIR and perhaps TMPDIR, a job of cron or of `docker exec` has neither. Runs of other
users are not excluded: who could hold their lock could keep them from measuring.
"""

import os
import pwd
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..files.errors import EnvironmentUnmet
from ..files.printable import visible
from ..files.safe_files import PLAIN, FileLock, Held

POLL_S = 0.5
OURS = ("attnbench", "__main__.py")
MOST_COMMAND = 200  # characters of another run's command in a message
CHOSEN = "ATTNBENCH_LOCKS"
"""The user's own choice of a folder, such as one that containers share."""
OWN = f"attnbench-{os.geteuid()}"
MEETING = Path("/tmp") / OWN  # noqa: S108 - a folder that only this user can write to, or none

Places = Collection[tuple[Path, int]]
"""Folders and their descriptors."""


@contextmanager
def device_lock(device: str, *, wait: bool, check: Callable[[], None]) -> Iterator[None]:
    """Hold a device ("cpu", or a GPU's UUID) against this user's other runs.

    The kernel frees the lock when its holder dies. Raises EnvironmentUnmet if another run holds
    it, unless told to `wait`; `check` is called while waiting and may raise.
    """
    with ExitStack() as folders, ExitStack() as locks:
        places = dict[tuple[int, int], tuple[Path, int]]()
        for path, fd in (_meeting_place(), *_earlier_places()):
            folders.callback(os.close, fd)
            found = os.fstat(fd)
            places.setdefault((found.st_dev, found.st_ino), (path, fd))  # one may have two names
        while True:
            try:
                locks.enter_context(_taken(places.values(), f"attnbench-{device}.lock"))
                break
            except Held as held:
                check()
                if not wait:
                    raise EnvironmentUnmet(
                        f"{_holder(held.pid)} is measuring on this {device}; wait for it to end, or"
                        f" add --wait; {CHOSEN} names another folder for the lock"
                    ) from None
            time.sleep(POLL_S)
        yield


def _holder(pid: int | None) -> str:
    """The run, by its command; a number alone may be of another container."""
    if pid is None:
        return "another run"
    command = ""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        names = [Path(word).name for word in words]
        begin = next((i for i, one in enumerate(names) if one in OURS), None)
        if begin is not None:
            command = ": attnbench " + visible(" ".join(words[begin + 1 :]).strip())
    return f"another run (process {pid}{command[:MOST_COMMAND]})"


@contextmanager
def _taken(places: Places, name: str) -> Iterator[None]:
    """The locks of this name, all of them held. Raises Held, EnvironmentUnmet."""
    with ExitStack() as held:
        for folder, fd in places:
            try:
                held.callback(FileLock(name, dir_fd=fd, own=True).release)
            except OSError as error:
                raise EnvironmentUnmet(
                    f"{folder / name}: {error.strerror}, wanted a file of this user, which tells"
                    " that a run is measuring; remove it"
                ) from None
        yield


def _meeting_place() -> tuple[Path, int]:
    """The first of the candidates that only this user can write to: nobody else can take a lock in
    it, or put a link there.

    On a local disk if possible: locks are not reliable on network file systems. Raises
    EnvironmentUnmet if there is none.
    """
    refusals = []
    for path in _candidates():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            return path, _private(path)
        except OSError as error:
            refusals.append(f"{path} ({error.strerror})")
    raise EnvironmentUnmet(
        "no folder of this user's own for the lock of a device: tried"
        f" {', '.join(refusals)}; set {CHOSEN} to one"
    )


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get(CHOSEN):
        yield Path(chosen)
        return
    yield MEETING
    with suppress(KeyError):  # a user without an entry
        yield Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache" / OWN


def _earlier_places() -> Places:
    """Where 0.2 looked, by its environment: its runs and ours respect each other. Goes with 0.4."""
    if os.environ.get(CHOSEN):
        return []
    runtime = os.environ.get("XDG_RUNTIME_DIR") or "/nowhere"
    found = []
    for path in (f"/run/user/{os.geteuid()}", runtime, f"{tempfile.gettempdir()}/{OWN}"):
        with suppress(OSError):
            found.append((Path(path), _private(Path(path))))
    return found


def _private(path: Path) -> int:
    """A folder as a descriptor. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | PLAIN)
    found = os.fstat(fd)
    if found.st_uid != os.geteuid():
        os.close(fd)
        raise PermissionError(1, f"belongs to user {found.st_uid}")
    if stat.S_IMODE(found.st_mode) & 0o022:
        os.close(fd)
        raise PermissionError(1, "others may write to it")
    return fd
