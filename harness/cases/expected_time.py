"""How long a run is expected to take, as a value and in words; run/forecast.py predicts it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

END_S = 3.0  # of ending workers and reading the results


class Expected(NamedTuple):
    """Of one case, wall or study: seconds, and steps as in Listener."""

    about_s: float
    steps: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What to expect of a run. `start_s`: of starting workers, which belong to no case.

    `unknown`: cases whose time nothing is known of; they are in no number. `devices` share the
    `units`, ids of what is measured on one of them. `walls_s`: the limit of the time of all walls.
    `busy`: what other work on this machine means for the run; "" if it is idle.
    """

    expected: Mapping[str, Expected]
    start_s: float
    too_long: tuple[str, ...]
    longest_call_s: float
    timeout_s: float
    unknown: int = 0
    devices: int = 1
    units: Sequence[Sequence[str]] = ()
    walls_s: float | None = None
    busy: str = ""

    @property
    def about_s(self) -> float:
        about_s = {name: one.about_s for name, one in self.expected.items()}
        return self.start_s + shared_s(about_s, self.units, self.devices) + END_S

    @property
    def sentence(self) -> str:
        """'about 50 s', 'on 4 devices: about 15 s'."""
        where = f"on {self.devices} devices: " if self.devices > 1 else ""
        but = f"; not known for {self.unknown} cases" if self.unknown else ""
        return f"{where}about {duration_text(self.about_s)}{but}"

    @property
    def remarks(self) -> Iterator[str]:
        """What is known to go wrong, said before it does: on a busy machine, by the time limit."""
        if self.busy:
            yield self.busy
        if self.too_long:
            some = ", ".join(self.too_long[:3])
            more = f" and {len(self.too_long) - 3} more" if len(self.too_long) > 3 else ""
            yield (
                f"one call is predicted to take up to {duration_text(self.longest_call_s)}, more"
                f" than the limit of {self.timeout_s:g} s, in {some}{more}: expect the status"
                " timeout; raise the limit with --timeout, or leave them out with --skip"
            )


def shared_s(seconds: Mapping[str, float], units: Iterable[Iterable[str]], devices: int) -> float:
    """How long so many devices take, each for whole units; no less than the longest one takes."""
    whole_s = sum(seconds.values())
    if devices == 1:
        return whole_s
    longest_s = max((sum(seconds.get(one, 0.0) for one in unit) for unit in units), default=0.0)
    return max(whole_s / devices, longest_s)


def duration_text(seconds: float) -> str:
    """'8 s', '50 s', '4 min', '2 h 10 min': two digits of a prediction are enough."""
    if seconds < 90:
        step = 1 if seconds < 10 else 5 if seconds < 30 else 10
        return f"{max(1, step * round(seconds / step))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(10 * round(minutes / 10), 60)
    return f"{hours} h {rest} min" if rest and hours < 10 else f"{hours} h"
