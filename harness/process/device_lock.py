"""One run at a time on a device: two at once would measure each other.

All runs of a user meet in one folder, whatever their environment: a login session has
XDG_RUNTIME_DIR and perhaps TMPDIR, a job of cron or of `docker exec` has neither. Runs of other
users are not excluded: who could hold their lock could keep them from measuring.
"""

import os
import pwd
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from ..files.errors import EnvironmentUnmet, option
from ..files.printable import visible
from ..files.safe_files import PLAIN, FileLock, Held

POLL_S = 0.5
OURS = ("attnbench", "__main__.py")
MOST_COMMAND = 200  # characters of another run's command in a message
CHOSEN = "ATTNBENCH_LOCKS"
"""The user's own choice of a folder, such as one that containers share."""
OWN = f"attnbench-{os.geteuid()}"
MEETING = Path("/tmp") / OWN  # noqa: S108 - a folder that only this user can write to, or none


@contextmanager
def device_lock(
    device: str, *, wait: bool, check: Callable[[], None], held: str | None = None
) -> Iterator[None]:
    """Hold a device ("cpu", or a GPU's UUID) against this user's other runs.

    The kernel frees the lock when its holder dies. Raises EnvironmentUnmet if another run holds
    it, unless told to `wait`; `check` is called while waiting and may raise. `held`: a device that
    the caller has locked already.
    """
    if device == held:
        yield
        return
    with ExitStack() as stack:
        place, folder_fd = _meeting_place()
        stack.callback(os.close, folder_fd)
        name = f"attnbench-{device}.lock"
        while True:
            try:
                stack.callback(FileLock(name, dir_fd=folder_fd, own=True).release)
                break
            except Held as other:
                check()
                if not wait:
                    raise EnvironmentUnmet(
                        f"{_holder(other.pid)} is measuring on this {device}; wait for it to end,"
                        f" or add {option('wait', True)}; {CHOSEN} names another folder for the"
                        " lock"
                    ) from None
            except OSError as error:
                raise EnvironmentUnmet(
                    f"{place / name}: {error.strerror}; wanted a lock file of this user; remove it"
                ) from None
            time.sleep(POLL_S)
        yield


def _holder(pid: int | None) -> str:
    """The run, by its command; a number alone may be of another container."""
    if pid is None:
        return "another run"
    command = ""
    with suppress(psutil.Error, StopIteration):
        words = psutil.Process(pid).cmdline()
        begin = next(i for i, word in enumerate(words) if Path(word).name in OURS)
        command = ": attnbench " + visible(" ".join(words[begin + 1 :]).strip())
    return f"another run (process {pid}{command[:MOST_COMMAND]})"


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
        f"no folder for device locks that only this user can write to: tried {', '.join(refusals)};"
        f" set {CHOSEN} to one"
    )


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get(CHOSEN):
        yield Path(chosen)
        return
    yield MEETING
    with suppress(KeyError):  # a user without an entry
        yield Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache" / OWN


def _private(path: Path) -> int:
    """A folder as a descriptor. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | PLAIN)
    found = os.fstat(fd)
    is_own, is_open = found.st_uid == os.geteuid(), found.st_mode & 0o022
    if is_own and not is_open:
        return fd
    os.close(fd)
    why = "others may write to it" if is_own else f"belongs to user {found.st_uid}"
    raise PermissionError(1, why)
