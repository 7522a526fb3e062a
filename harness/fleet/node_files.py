"""What devices elsewhere print and sample, kept in the run's folder under the device's number, and
the models that they save.
"""

import os
import re
from pathlib import Path

from ..files.safe_files import make_folder, open_plain, write_all, write_whole
from ..rows.run_files import TELEMETRY
from ..run.study_files import MODELS
from ..store.run_store import LOGS

NAME = re.compile(r"[A-Za-z0-9._-]{1,80}\.log", re.ASCII)
MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.safetensors", re.ASCII)
NUMBERED = re.compile(r"(?:device|telemetry)-(\d+)", re.ASCII)


class NodeFiles:
    """Appends; a run that is resumed gives its devices new numbers."""

    def __init__(self, run: Path) -> None:
        self._run = run
        found = [*run.glob("telemetry-*.jsonl"), *(run / LOGS).glob("device-*.log")]
        numbers = (match[1] for one in found if (match := NUMBERED.match(one.name)))
        self._first = 1 + max(map(int, numbers), default=0)

    def add(self, number: int, name: str, data: bytes) -> str:
        """Append to a file of device `number`, from 0; why it could not be kept, or ""."""
        place = self._first + number
        if name == TELEMETRY:
            path = self._run / f"telemetry-{place}.jsonl"
        elif NAME.fullmatch(name):
            path = self._run / LOGS / f"device-{place}-{name}"
        else:
            return f"device {place} sent a file called {name!r}; it was not kept"
        try:
            fd = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                write_all(fd, data)
            finally:
                os.close(fd)
        except OSError as error:
            return f"{path.name}: cannot be written ({error.strerror}); some of it is lost"
        return ""

    def keep_model(self, name: str, data: bytes) -> str:
        """As a run on this machine would have it; why it could not be kept, or ""."""
        if not MODEL.fullmatch(name):
            return f"a device sent a model called {name!r}; it was not kept"
        try:
            make_folder(self._run / MODELS)
            write_whole(self._run / MODELS / name, data)
        except OSError as error:
            return f"{MODELS}/{name}: cannot be written ({error.strerror}); it is lost"
        return ""
