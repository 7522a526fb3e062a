"""Files of the user's on their way to devices elsewhere, and which device has which.

Imports no torch: the process that drives a run reads them, the one beside the device writes them.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..files.errors import BadInput, EnvironmentUnmet, option, shown
from ..files.safe_files import make_folder, opened, write_whole
from ..run.studies import Told
from ..scenario.shards import Units
from ..studies import takes
from ..studies.attachments import Attachment, Sent, Tried, attached_to, refuse_problems
from .remote import Opened

MOST_PLACES = 4  # NAME/tokens/FILE has three

Content = NDArray[np.uint8]
"""Of a file: an engine moves an array without copying it."""


def content_of(path: Path) -> Content:
    """Raises OSError."""
    with opened(path.resolve()) as file:
        return np.fromfile(file, dtype=np.uint8)


class Shipped(NamedTuple):
    """An attachment that devices elsewhere look at. `digests`: of its files when the run began."""

    name: str
    study: str
    sent: Sent
    digests: Mapping[str, bytes]


def shipped(one: Attachment) -> Shipped:
    """Raises BadInput: what cannot be sent asks no device."""
    sent, digests = one.sent(), {}
    for file, path in sent.files.items():
        try:
            with opened(path.resolve()) as content:
                digests[file] = file_digest(content, "sha256").digest()
        except OSError as error:
            raise BadInput(
                f"{option(takes(one.study), shown(str(path)))}: cannot be read ({error.strerror});"
                f" wanted a file that can, to send it to the devices of {option('on')}"
            ) from None
    return Shipped(one.name, one.study, sent, digests)


class Devices(Protocol):
    """Of devices elsewhere, what takes files; ray_devices.RayFleet is one."""

    opened: dict[int, Opened]

    def send(self, number: int, name: str, content: Content, /) -> str: ...

    def try_attachments(
        self, number: int, attached: Mapping[str, tuple[str, Told]], budget_bytes: int, /
    ) -> Tried: ...


class Shipping:
    """A device that was lost has lost its files too."""

    def __init__(self, fleet: Devices, attachments: Sequence[Shipped] = ()) -> None:
        self._fleet = fleet
        self._attachments = {one.name: one for one in attachments}
        self._there: dict[int, set[str]] = {}

    @property
    def told(self) -> Mapping[str, Told]:
        """What workers are told of each, within the folder of a device."""
        return {name: one.sent.request for name, one in self._attachments.items()}

    def refuse_bad(self, budget_bytes: int) -> list[str]:
        """Let the first device open every attachment; remarks on them for the user.

        Raises BadInput with what is wrong, EnvironmentUnmet if the files do not get there.
        """
        if not self._attachments:
            return []
        number = min(self._fleet.opened)
        host = self._fleet.opened[number].host
        options = [takes(one.study) for one in self._attachments.values()]
        if why := self._send(number, self._attachments):
            raise EnvironmentUnmet(f"--{options[0]}: {host}: {why}")
        attached = {name: (one.study, one.sent.request) for name, one in self._attachments.items()}
        found = self._fleet.try_attachments(number, attached, budget_bytes)
        refuse_problems(found.problems, options, f"{host}: ")
        return found.remarks

    def lacks(self, number: int, units: Units) -> bool:
        """Whether the device has not all attachments that these units are about."""
        return not self._names_in(units) <= self._there.get(number, set())

    def send(self, number: int, units: Units) -> str:
        """What the device lacks for these units; why it cannot have that, or ""."""
        return self._send(number, self._names_in(units) - self._there.get(number, set()))

    def forget(self, number: int) -> None:
        self._there.pop(number, None)

    def _names_in(self, units: Units) -> set[str]:
        names = (attached_to(one.study, dict(one.part)) for one in units.studies)
        return {name for name in names if name in self._attachments}

    def _send(self, number: int, names: Collection[str]) -> str:
        for name in sorted(names):
            one = self._attachments[name]
            for file, path in one.sent.files.items():
                try:
                    content = content_of(path)
                except OSError as error:
                    return f"{file}: cannot be read any more ({error.strerror})"
                if sha256(content.data).digest() != one.digests[file]:
                    return f"{file}: has other contents than when the run began"
                if why := self._fleet.send(number, file, content):
                    return why
            self._there.setdefault(number, set()).add(name)
        return ""


class ShippedFolder:
    """Where a device keeps what it was sent: a file is there whole, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names: set[PurePosixPath] = set()

    def keep(self, name: str, content: Content) -> str:
        """Why it cannot be kept, or ""."""
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or not 1 < len(place.parts) < MOST_PLACES:
            return f"{shown(name)}: not a name of a file in an attachment's folder"
        try:
            for folder in reversed(place.parents[:-1]):
                make_folder(self.path / folder)
            write_whole(self.path / place, content.data)
        except OSError as error:
            return f"{name}: cannot be written there ({error.strerror})"
        self._names |= {place, *place.parents[:-1]}
        return ""

    def here(self, request: Told) -> dict[str, str | None]:
        """What is told of an attachment, with the places that files have here."""
        return {what: name and str(self.path / name) for what, name in request.items()}

    def named(self, text: str) -> str:
        """A message without where this folder is; long paths are shortened in messages."""
        for name in sorted(map(str, self._names), key=len, reverse=True):
            text = text.replace(shown(str(self.path / name)), shown(name))
        return text.replace(f"{self.path}{os.sep}", "")
