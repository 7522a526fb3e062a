"""The files of a run: made once, appended to, never rewritten (docs/format.md)."""

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..files.errors import EnvironmentUnmet, StoreError, option, unless_refused
from ..files.safe_files import (
    PID_BYTES,
    FileLock,
    Held,
    is_folder,
    make_folder,
    open_plain,
    opened,
    sweep,
    sync_folder,
    temporary,
    write_whole,
)
from .record import Record
from .run_files import META, ROWS, SCHEMA, read_meta, shown_path

LOGS, QUARANTINE, LOCK, LATEST = "logs", "quarantine", ".lock", "latest"
OLD_SUITE = "suite.json"  # in folders of runs that earlier versions wrote: no run themselves
CHUNK_BYTES = 1 << 16
RUN_NAME = re.compile(r"\d{8}T\d{6}Z-.+-[0-9a-f]{8}")


class Store:
    """The only writer of a run folder; holds its lock until closed.

    The kernel frees the lock of a writer that is killed. Links are not followed.
    """

    def __init__(self, path: Path, lock: FileLock | None = None) -> None:
        """`lock`: the folder's, if it is held already.

        Raises EnvironmentUnmet if another process holds it, BadInput.
        """
        self.path = path
        self._lock = lock or writer_lock(path)
        try:
            with _writing(path / ROWS):
                self._fd = open_plain(path / ROWS, os.O_CREAT | os.O_RDWR | os.O_APPEND)
            with _writing(path / LOGS):
                make_folder(path / LOGS)
                sync_folder(path)
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def create(cls, root: Path, scenario: str, meta: Mapping[str, Any]) -> "Store":
        """A new run folder under `root` with its run.json; two starts never share a folder.

        Raises BadInput.
        """
        with _making(root, scenario) as (name, folder, lock):
            _write_json(folder / META, {"schema": SCHEMA, "run": name, **meta})
        return cls(root / name, lock)

    @classmethod
    def reopen(cls, path: Path) -> "Store":
        """A run folder to append to, after an incomplete last line was moved to quarantine/.

        Raises BadInput, EnvironmentUnmet.
        """
        store = cls(path)
        try:
            store._repair()
        except OSError as error:
            store.close()
            raise EnvironmentUnmet(
                f"{shown_path(path / ROWS)}: its last line is incomplete and cannot be moved to"
                f" {QUARANTINE}/ ({error.strerror}); nothing was changed; make room there, then"
                " resume again"
            ) from None
        return store

    def append(self, records: Iterable[Record]) -> None:
        """Put rows on disk before returning.

        On failure the file is as before, and StoreError carries the rows.
        """
        records = list(records)
        data = b"".join(record.line for record in records)
        before = os.fstat(self._fd).st_size
        written = 0
        try:
            self._check_place()
            while written < len(data):  # a write may be short, as with a file size limit
                written += os.write(self._fd, data[written:])
            os.fdatasync(self._fd)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, before)
            message = (
                f"{shown_path(self.path / ROWS)}: {error.strerror} after {before + written} bytes;"
                " all earlier rows are safe"
            )
            raise StoreError(message, [dict(record.row) for record in records]) from None

    def add_devices(self, devices: Iterable[Mapping[str, Any]]) -> None:
        """Add what is not there yet to `devices` of run.json. Raises BadInput."""
        meta = read_meta(self.path)
        known = list(meta.get("devices") or ())
        known += [one for one in devices if one not in known]
        with _writing(self.path / META):
            _write_json(self.path / META, {**meta, "devices": known})

    def close(self) -> None:
        os.close(self._fd)
        self._lock.release()

    def _check_place(self) -> None:
        """That the open file is the one that the folder shows. Raises OSError."""
        try:
            found = (self.path / ROWS).lstat()
        except FileNotFoundError:
            raise FileNotFoundError(2, "the file is gone") from None
        if not os.path.samestat(found, os.fstat(self._fd)):
            raise FileNotFoundError(2, "the file was replaced by another")

    def _repair(self) -> None:
        """Move what follows the last newline to quarantine/: the writer died there."""
        size = os.fstat(self._fd).st_size
        tail_start = size
        while tail_start > 0:
            begin = max(0, tail_start - CHUNK_BYTES)
            newline = os.pread(self._fd, tail_start - begin, begin).rfind(b"\n")
            if newline >= 0:
                tail_start = begin + newline + 1
                break
            tail_start = begin
        if tail_start == size:
            return
        make_folder(self.path / QUARANTINE)
        torn = os.pread(self._fd, size - tail_start, tail_start)
        write_whole(self.path / QUARANTINE / f"rows-at-{tail_start}.bin", torn)
        sync_folder(self.path)
        os.ftruncate(self._fd, tail_start)
        os.fdatasync(self._fd)


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def writer_lock(path: Path) -> FileLock:
    """The lock of a folder's only writer, held.

    Raises EnvironmentUnmet if another process has it, BadInput if there can be none.
    """
    with _writing(path / LOCK):
        try:
            return FileLock(path / LOCK)
        except Held as held:
            who = "another process" if held.pid is None else f"another process ({held.pid})"
            raise EnvironmentUnmet(
                f"{shown_path(path)} is being written by {who}; wait for it, or end it"
            ) from None


def is_being_written(path: Path) -> bool:
    """By the process that its lock names, which would have removed its name at its end."""
    try:
        with opened(path / LOCK) as file:
            pid = file.read(PID_BYTES)
    except OSError:
        return False
    return pid.isdigit() and Path(f"/proc/{int(pid)}").exists()


def _writing(path: Path) -> AbstractContextManager[None]:
    """Raises BadInput where a file of a run cannot be written."""
    return unless_refused(shown_path(path), "copy the run to a folder of yours, or start another")


@contextmanager
def _making(root: Path, name: str) -> Iterator[tuple[str, Path, FileLock]]:
    """The name of a new folder, which tells the time, a temporary one that will get it, and that
    one's lock, held: a folder of this name is complete, or absent, and nobody else's to write to.

    Raises BadInput if it or what goes in cannot be written.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = root / f"{stamp}-{name}-{secrets.token_hex(4)}"
    elsewhere = f"choose another with {option('runs', 'DIR')}"
    with unless_refused(root, elsewhere, "cannot make a run folder here"):
        root.mkdir(parents=True, exist_ok=True)
        sweep(root)
        with temporary(root, is_folder=True) as (folder, _):
            lock = FileLock(folder / LOCK)
            try:
                yield path.name, folder, lock
                folder.rename(path)
            except BaseException:
                lock.release()
                raise
        sync_folder(root)


def point_latest(root: Path, name: str) -> str:
    """Link results/latest to a run that has finished, if the file system has links.

    Returns a remark if something that is no link
    stands there, which is left alone, or a link that cannot be changed.
    """
    latest = root / LATEST
    if latest.exists() and not latest.is_symlink():
        return (
            f"{shown_path(latest)} is not a link and stays as it is; `latest` on the command line"
            " still names the newest run"
        )
    try:
        with temporary(root, is_folder=True) as (folder, _):
            (folder / LATEST).symlink_to(name)
            (folder / LATEST).replace(latest)
    except OSError as error:
        if latest.is_symlink():
            return (
                f"{shown_path(latest)}: cannot be changed ({error.strerror}) and names an earlier"
                " run; name this one by its folder"
            )
    return ""


def runs(root: Path) -> list[Path]:
    """Run folders under `root`, oldest first, by their names, also those that cannot be read.
    Raises OSError if `root` cannot be read.
    """
    try:
        named = [path for path in root.iterdir() if RUN_NAME.fullmatch(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(path for path in named if is_folder(path) and not (path / OLD_SUITE).exists())
