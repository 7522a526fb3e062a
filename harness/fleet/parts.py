"""The files of an attachment, and how they get to a device elsewhere: in parts, with their hash.

Imports no torch: the process that drives a run reads them, the one beside the device writes them.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..files.errors import BadInput, shown
from ..files.safe_files import PLAIN, NotPlain, make_folder, open_plain, write_all
from ..studies import takes
from ..studies.attachments import Attachment

PART_BYTES = 8 << 20
MOST_PLACES = 4  # NAME/tokens/FILE has three


class ShippedFile(NamedTuple):
    """`name`: within the folder that the device has for them, with slashes. `path`: here."""

    name: str
    path: Path
    size_bytes: int
    sha256: str


class Part(NamedTuple):
    """Some of a file; the last part ends at `size_bytes`, and the whole then has this `sha256`."""

    name: str
    offset: int
    data: bytes
    size_bytes: int
    sha256: str


class Shipped(NamedTuple):
    """An attachment that devices elsewhere look at. `request`: as of Attachment.sent."""

    name: str
    study: str
    option: str
    request: dict[str, str | None]
    files: tuple[ShippedFile, ...]


def shipped(one: Attachment) -> Shipped:
    """Only what is read of it. Raises BadInput."""
    sent = one.sent()
    files = tuple(_hashed(takes(one.study), name, path) for name, path in sent.files.items())
    return Shipped(one.name, one.study, takes(one.study), sent.request, files)


def parts_of(file: ShippedFile) -> Iterator[Part]:
    """At least one, also of an empty file. Raises OSError."""
    with os.fdopen(open_plain(file.path.resolve()), "rb") as opened:
        offset = 0
        while offset < file.size_bytes or not offset:
            data = opened.read(min(PART_BYTES, file.size_bytes - offset))
            if not data and file.size_bytes:
                raise OSError(0, "shorter than it was when the run began")
            yield Part(file.name, offset, data, file.size_bytes, file.sha256)
            offset += len(data)
            if not data:
                return


def _hashed(option: str, name: str, path: Path) -> ShippedFile:
    try:
        with os.fdopen(open_plain(path.resolve()), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return ShippedFile(name, path, file.tell(), digest)
    except OSError as error:
        raise BadInput(
            f"--{option} {shown(str(path))}: cannot be read ({error.strerror}); wanted a file that"
            " can, to send it to the devices of --on"
        ) from None


# ---- beside the device ---------------------------------------------------------------------------


class ShippedFolder:
    """Where a device keeps what it was sent: a file is there whole, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hashes: dict[str, hashlib._Hash] = {}

    def keep(self, part: Part) -> str:
        """Parts of a file come in order. Why one cannot be kept, or ""."""
        try:
            return self._keep(part)
        except NotPlain as error:
            return f"{part.name}: {error.strerror}"
        except OSError as error:
            return f"{part.name}: cannot be written there ({error.strerror})"

    def here(self, request: Mapping[str, str | None]) -> dict[str, str | None]:
        """A request of Shipped's with the places that files have here."""
        return {what: name and str(self.path / name) for what, name in request.items()}

    def named(self, text: str) -> str:
        """A message without where this folder is; long paths are shortened in messages."""
        names = {one for file in self._hashes for one in (file, *PurePosixPath(file).parents)}
        for name in sorted(map(str, names), key=len, reverse=True):
            text = text.replace(shown(str(self.path / name)), shown(name))
        return text.replace(f"{self.path}{os.sep}", "")

    def _keep(self, part: Part) -> str:
        name = PurePosixPath(part.name)
        if name.is_absolute() or ".." in name.parts or not 1 < len(name.parts) < MOST_PLACES:
            return f"{shown(part.name)}: not a name of a file in an attachment's folder"
        path = self.path / name
        for folder in reversed(path.relative_to(self.path).parents[:-1]):
            make_folder(self.path / folder)
        unfinished = path.with_name(f".{path.name}.part")
        if not part.offset:
            unfinished.unlink(missing_ok=True)
            self._hashes[part.name] = hashlib.sha256()
        so_far = self._hashes[part.name]
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_APPEND | PLAIN, 0o600)
        try:
            write_all(fd, part.data)
        finally:
            os.close(fd)
        so_far.update(part.data)
        if part.offset + len(part.data) < part.size_bytes:
            return ""
        if so_far.hexdigest() != part.sha256:
            unfinished.unlink()
            return f"{part.name}: arrived with other contents; did it change while it was sent?"
        unfinished.replace(path)
        return ""
