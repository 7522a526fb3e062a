"""One run at a time on a device: two at once would measure each other."""

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..files.errors import EnvironmentUnmet
from ..files.safe_files import PLAIN, FileLock, Held

POLL_S = 0.5


@contextmanager
def device_lock(device: str, *, wait: bool, check: Callable[[], None]) -> Iterator[None]:
    """Hold a device ("cpu", or a GPU's UUID) against this user's other runs.

    The kernel frees the lock when its holder dies. Raises EnvironmentUnmet if another run holds
    it, unless told to `wait`; `check` is called while waiting and may raise.
    """
    with lock_folder() as (folder, fd):
        name = f"attnbench-{device}.lock"
        while True:
            try:
                lock = FileLock(name, dir_fd=fd, own=True)
                break
            except Held as held:
                check()
                if not wait:
                    who = "another run" if held.pid is None else f"another run (process {held.pid})"
                    raise EnvironmentUnmet(
                        f"{who} is measuring on this {device}; wait for it to end, or add --wait"
                    ) from None
            except OSError as error:
                raise EnvironmentUnmet(
                    f"{folder / name}: {error.strerror}, wanted a file of this user, which tells"
                    " that a run is measuring; remove it"
                ) from None
            time.sleep(POLL_S)
        try:
            yield
        finally:
            lock.release()


@contextmanager
def lock_folder() -> Iterator[tuple[Path, int]]:
    """A folder that only this user can write to, and its descriptor: nobody else can take a lock
    in it, or put a link there.

    On a local disk if possible: locks are not reliable on network file systems. Raises
    EnvironmentUnmet if there is none.
    """
    refusals = []
    for path in _candidates():
        try:
            fd = _private(path)
        except OSError as error:
            refusals.append(f"{path} ({error.strerror})")
            continue
        try:
            yield path, fd
        finally:
            os.close(fd)
        return
    raise EnvironmentUnmet(
        "no folder of this user's own for the lock of a device: tried"
        f" {', '.join(refusals)}; set XDG_RUNTIME_DIR to one"
    )


def _candidates() -> Iterator[Path]:
    """The first that can be used counts, so that all runs of a user find the same."""
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime)
    yield Path(tempfile.gettempdir()) / f"attnbench-{os.geteuid()}"
    with suppress(RuntimeError, OSError):  # a user without a home
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        cache.mkdir(parents=True, exist_ok=True)
        yield cache / f"attnbench-{os.geteuid()}"


def _private(path: Path) -> int:
    """A folder as a descriptor, made if it is not there. Raises OSError."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | PLAIN)
    found = os.fstat(fd)
    if found.st_uid != os.geteuid():
        os.close(fd)
        raise PermissionError(1, f"belongs to user {found.st_uid}")
    if stat.S_IMODE(found.st_mode) & 0o022:
        os.close(fd)
        raise PermissionError(1, "others may write to it")
    return fd
