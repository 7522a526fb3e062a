"""How long a run is expected to take, as a value and in words; run/forecast.py predicts it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SLOWER = 2.0  # "at most" holds if calls take no longer than so many times the prediction


class Expected(NamedTuple):
    """Seconds of one case, wall or study."""

    about_s: float
    most_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What to expect of a run. `start_s`: of starting workers, which belong to no case.

    `unknown`: cases whose time nothing is known of; they are in no number. `devices` share the
    `units`, ids of what is measured on one of them.
    """

    expected: Mapping[str, Expected]
    start_s: float
    too_long: tuple[str, ...]
    longest_call_s: float
    timeout_s: float
    unknown: int = 0
    devices: int = 1
    units: Sequence[Sequence[str]] = ()

    @property
    def about_s(self) -> float:
        about_s = {name: one.about_s for name, one in self.expected.items()}
        return self.start_s + shared_s(about_s, self.units, self.devices)

    @property
    def most_s(self) -> float:
        most_s = {name: one.most_s for name, one in self.expected.items()}
        found = SLOWER * self.start_s + shared_s(most_s, self.units, self.devices)
        return max(found, SLOWER * self.about_s)

    @property
    def sentence(self) -> str:
        """'about 50 s, at most 2 min', 'on 4 devices: about 15 s, at most 30 s'."""
        where = f"on {self.devices} devices: " if self.devices > 1 else ""
        but = f"; not known for {self.unknown} cases" if self.unknown else ""
        times = f"about {duration_text(self.about_s)}, at most {duration_text(self.most_s)}"
        return f"{where}{times}{but}"

    @property
    def remarks(self) -> Iterator[str]:
        """Cases that the time limit will end, said before they begin."""
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
