"""The files of a run: made once, appended to, never rewritten (docs/format.md)."""

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .errors import BadInput, EnvironmentUnmet, StoreError
from .record import SCHEMA

META, ROWS, LOGS, SUITE = "run.json", "rows.jsonl", "logs", "suite.json"
QUARANTINE, LOCK, LATEST = "quarantine", ".lock", "latest"
LINE_CAP_BYTES = 16 << 20
RUN_NAME = re.compile(r"\d{8}T\d{6}Z-.+-[0-9a-f]{8}")


class Store:
    """The only writer of a run folder; holds its lock until closed.

    The kernel frees the lock of a writer that is killed.
    """

    def __init__(self, path: Path) -> None:
        """Raises EnvironmentUnmet if another process holds the lock."""
        self.path = path
        self._lock = writer_lock(path)
        self._fd = os.open(path / ROWS, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o644)

    @classmethod
    def create(
        cls, root: Path, scenario: str, meta: Mapping[str, Any], now: datetime | None = None
    ) -> "Store":
        """A new run folder under `root` with its run.json; two starts never share a folder.

        Raises BadInput.
        """
        with _making(root, scenario, now) as path:
            (path / LOGS).mkdir()
            document = {"schema": SCHEMA, "run": path.name, **meta}
            write_whole(path / META, json.dumps(document, indent=1, allow_nan=False) + "\n")
        return cls(path)

    @classmethod
    def reopen(cls, path: Path) -> "Store":
        """A run folder to append to, after a torn last line was moved to quarantine/."""
        store = cls(path)
        store._repair()
        return store

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put rows on disk before returning.

        On failure the file is as before, and StoreError carries the rows.
        """
        unsaved = [dict(row) for row in rows]
        data = "".join(json.dumps(row, allow_nan=False) + "\n" for row in unsaved).encode()
        before = os.fstat(self._fd).st_size
        written = 0
        try:
            if not (self.path / ROWS).exists():
                raise FileNotFoundError(2, "the file is gone")
            while written < len(data):  # a write may be short, as with a file size limit
                written += os.write(self._fd, data[written:])
            os.fdatasync(self._fd)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, before)
            message = (
                f"{self.path / ROWS}: {error.strerror} after {before + written} bytes; all earlier"
                " rows are safe"
            )
            raise StoreError(message, unsaved) from None

    def close(self) -> None:
        os.close(self._fd)
        self._lock.release()

    def _repair(self) -> None:
        """Move what follows the last newline to quarantine/: the writer died there."""
        size = os.fstat(self._fd).st_size
        tail_start = size
        with open(self._fd, "rb", closefd=False) as file:
            step = 1 << 16
            while tail_start > 0:
                begin = max(0, tail_start - step)
                file.seek(begin)
                newline = file.read(tail_start - begin).rfind(b"\n")
                if newline >= 0:
                    tail_start = begin + newline + 1
                    break
                tail_start = begin
            if tail_start == size:
                return
            file.seek(tail_start)
            tail = file.read()
        (self.path / QUARANTINE).mkdir(exist_ok=True)
        write_whole(self.path / QUARANTINE / f"rows-at-{tail_start}.bin", tail)
        os.ftruncate(self._fd, tail_start)
        os.fdatasync(self._fd)


def create_suite(root: Path, name: str, meta: Mapping[str, Any]) -> Path:
    """A new folder for the runs of a suite under `root`, with its suite.json. Raises BadInput."""
    with _making(root, name) as path:
        write_suite(path, {"schema": SCHEMA, "suite": path.name, **meta})
    return path


def write_suite(path: Path, document: Mapping[str, Any]) -> None:
    write_whole(path / SUITE, json.dumps(document, indent=1, allow_nan=False) + "\n")


def writer_lock(path: Path) -> FileLock:
    """The lock of a folder's only writer, held. Raises EnvironmentUnmet if another has it."""
    lock = FileLock(path / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise EnvironmentUnmet(
            f"{path} is being written by another process; wait for it, or end it"
        ) from None
    return lock


@contextmanager
def _making(root: Path, name: str, now: datetime | None = None) -> Iterator[Path]:
    """A new folder, named by the time. Raises BadInput if it or what goes in cannot be written."""
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    path = root / f"{stamp}-{name}-{secrets.token_hex(4)}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        path.mkdir()
        yield path
    except OSError as error:
        raise BadInput(
            f"{root}: cannot make a run folder here ({error.strerror}); choose another with"
            " --out DIR"
        ) from None


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file in one step: after a crash it has the old content or the new, never a part."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def point_latest(root: Path, name: str) -> None:
    """Link results/latest to a run or suite that has finished, if the file system has links.

    Runs within a suite do not count: the suite does.
    """
    if (root / SUITE).is_file():
        return
    with suppress(OSError):
        temporary = root / f".{LATEST}.{secrets.token_hex(4)}"
        temporary.symlink_to(name)
        temporary.replace(root / LATEST)


def runs(root: Path) -> list[Path]:
    """Run folders under `root`, oldest first."""
    return [path for path in runs_and_suites(root) if (path / META).is_file()]


def runs_and_suites(root: Path) -> list[Path]:
    """The folders of runs and of suites under `root`, oldest first."""
    if not root.is_dir():
        return []
    named = (path for path in root.iterdir() if RUN_NAME.fullmatch(path.name))
    return sorted(
        path
        for path in named
        if not path.is_symlink() and ((path / META).is_file() or (path / SUITE).is_file())
    )


def results_root(folder: Path) -> Path:
    """Where calibrations and self-checks are: beside a run's folder, or beside its suite's."""
    return folder.parent if (folder / SUITE).is_file() else folder


def read_meta(path: Path) -> dict[str, Any]:
    """run.json. Raises BadInput if it is broken or newer than this version."""
    try:
        meta = json.loads((path / META).read_bytes())
        schema = int(meta["schema"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path / META}: not readable ({error}); the run cannot be used") from None
    if schema > SCHEMA:
        raise BadInput(
            f"{path / META}: format {schema} is newer than this attnbench understands ({SCHEMA});"
            " upgrade attnbench"
        )
    return dict(meta)


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """All rows in order, one at a time, without a torn last line.

    Raises BadInput for a broken line elsewhere.
    """
    with suppress(FileNotFoundError), (path / ROWS).open("rb") as file:
        number = 0
        while line := file.readline(LINE_CAP_BYTES + 1):
            number += 1
            if not line.endswith(b"\n") and len(line) <= LINE_CAP_BYTES:
                return
            try:
                row = json.loads(line)
                row["case"]
            except (ValueError, KeyError, TypeError):
                raise BadInput(
                    f"{path / ROWS}:{number}: not a row; the file was changed by something else"
                ) from None
            yield row
