"""One run at a time on a device: two at once would measure each other."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import EnvironmentUnmet

POLL_S = 0.5


@contextmanager
def device_lock(device: str, *, wait: bool, check: Callable[[], None]) -> Iterator[None]:
    """Hold a device ("cpu", or a GPU's UUID) against this user's other runs.

    The kernel frees the lock when its holder dies. Raises EnvironmentUnmet if another run holds
    it, unless told to `wait`; `check` is called while waiting and may raise.
    """
    path = lock_folder() / f"attnbench-{os.getuid()}-{device}.lock"
    holder = path.with_suffix(".pid")
    lock = FileLock(path)
    while True:
        try:
            lock.acquire(timeout=POLL_S if wait else 0)
            break
        except Timeout:
            check()
            if not wait:
                raise EnvironmentUnmet(
                    f"{_who(holder)} is measuring on this {device};"
                    " wait for it to end, or add --wait"
                ) from None
    try:
        holder.write_text(str(os.getpid()))
        yield
    finally:
        with suppress(OSError):
            holder.unlink()
        lock.release()


def lock_folder() -> Path:
    """A folder on a local disk: file locks are not reliable on network file systems."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())


def _who(holder: Path) -> str:
    with suppress(OSError, ValueError):
        return f"another run (process {int(holder.read_text())})"
    return "another run"
