"""What devices elsewhere print, kept in the run's folder under the device's number."""

import os
import re
from pathlib import Path

from ..files.safe_files import open_plain, write_all
from ..process.worker_log import LOG_CAP_BYTES
from ..rows.run_store import LOGS

LOG = re.compile(r"[A-Za-z0-9._-]{1,80}\.log", re.ASCII)
NUMBERED = re.compile(r"device-(\d+)", re.ASCII)


class NodeFiles:
    """Logs are appended; a run that is resumed gives its devices new numbers."""

    def __init__(self, run: Path) -> None:
        self._run = run
        numbers = (
            match[1]
            for one in (run / LOGS).glob("device-*.log")
            if (match := NUMBERED.match(one.name))
        )
        self._first = 1 + max(map(int, numbers), default=0)

    def add(self, number: int, name: str, data: bytes) -> str:
        """Keep a file of device `number`, from 0; why it could not be kept, or ""."""
        place = self._first + number
        if LOG.fullmatch(name):
            path = self._run / LOGS / f"device-{place}-{name}"
        else:
            return f"device {place} sent a file called {name!r}; it was not kept"
        try:
            fd = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                left = LOG_CAP_BYTES - os.fstat(fd).st_size
                write_all(fd, data[: max(0, left)])
            finally:
                os.close(fd)
        except OSError as error:
            where = path.relative_to(self._run)
            return f"{where}: cannot be written ({error.strerror}); some of it is lost"
        return ""
