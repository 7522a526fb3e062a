"""Files of the user's on their way to devices elsewhere, and which device has which."""

from collections.abc import Collection, Sequence

from ..files.errors import BadInput, EnvironmentUnmet
from ..learning.checkpoints.shipped import Shipped, parts_of
from ..scenario.shards import Units
from ..studies import OF_CHECKPOINTS
from .remote import Fleet


class Shipping:
    """A device that was lost has lost its files too."""

    def __init__(self, fleet: Fleet, checkpoints: Sequence[Shipped] = ()) -> None:
        self._fleet = fleet
        self._checkpoints = {one.name: one for one in checkpoints}
        self._there: dict[int, set[str]] = {}

    def refuse_bad(self, budget_bytes: int) -> list[str]:
        """Let the first device open every checkpoint; remarks on them for the user.

        Raises BadInput with what is wrong, EnvironmentUnmet if the files do not get there.
        """
        if not self._checkpoints:
            return []
        number = min(self._fleet.opened)
        host = self._fleet.opened[number].host
        if why := self._send(number, self._checkpoints):
            raise EnvironmentUnmet(f"--checkpoint: {host}: {why}")
        requests = {name: one.request() for name, one in self._checkpoints.items()}
        found = self._fleet.try_checkpoints(number, requests, budget_bytes)
        if found.problems:
            raise BadInput(*(f"--checkpoint: {host}: {problem}" for problem in found.problems))
        return found.remarks

    def lacks(self, number: int, units: Units) -> bool:
        """Whether the device has not all checkpoints that these units are about."""
        return not self._names_in(units) <= self._there.get(number, set())

    def send(self, number: int, units: Units) -> str:
        """What the device lacks for these units; why it cannot have that, or ""."""
        return self._send(number, self._names_in(units) - self._there.get(number, set()))

    def forget(self, number: int) -> None:
        self._there.pop(number, None)

    def _names_in(self, units: Units) -> set[str]:
        of_models = (dict(one.part) for one in units.studies if one.study == OF_CHECKPOINTS)
        return {str(part.get("checkpoint")) for part in of_models} & self._checkpoints.keys()

    def _send(self, number: int, names: Collection[str]) -> str:
        for name in sorted(names):
            for file in self._checkpoints[name].files:
                try:
                    if why := self._fleet.send(number, parts_of(file)):
                        return why
                except OSError as error:
                    return f"{file.name}: cannot be read any more ({error.strerror})"
            self._there.setdefault(number, set()).add(name)
        return ""
