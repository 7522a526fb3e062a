"""Files of the user's on their way to devices elsewhere, and which device has which."""

from collections.abc import Collection, Mapping, Sequence

from ..files.errors import EnvironmentUnmet
from ..run.study_files import Told
from ..scenario.shards import Units
from ..studies.attachments import attached_to, refuse_problems
from .parts import Shipped, parts_of
from .remote import Fleet


class Shipping:
    """A device that was lost has lost its files too."""

    def __init__(self, fleet: Fleet, attachments: Sequence[Shipped] = ()) -> None:
        self._fleet = fleet
        self._attachments = {one.name: one for one in attachments}
        self._there: dict[int, set[str]] = {}

    @property
    def told(self) -> Mapping[str, Told]:
        """What workers are told of each, within the folder of a device."""
        return {name: one.request for name, one in self._attachments.items()}

    def refuse_bad(self, budget_bytes: int) -> list[str]:
        """Let the first device open every attachment; remarks on them for the user.

        Raises BadInput with what is wrong, EnvironmentUnmet if the files do not get there.
        """
        if not self._attachments:
            return []
        number = min(self._fleet.opened)
        host = self._fleet.opened[number].host
        if why := self._send(number, self._attachments):
            option = next(iter(self._attachments.values())).option
            raise EnvironmentUnmet(f"--{option}: {host}: {why}")
        attached = {name: (one.study, one.request) for name, one in self._attachments.items()}
        found = self._fleet.try_attachments(number, attached, budget_bytes)
        options = [one.option for one in self._attachments.values()]
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
            for file in self._attachments[name].files:
                try:
                    if why := self._fleet.send(number, parts_of(file)):
                        return why
                except OSError as error:
                    return f"{file.name}: cannot be read any more ({error.strerror})"
            self._there.setdefault(number, set()).add(name)
        return ""
