"""How much processes and runs of a device differ, and what intervals allow for because of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, hypot, log1p
from typing import NamedTuple

from ...harness.stats.contrasts import MANY, Spread, assumed_spread
from ..data.noise_floor import ASSUMED, ASSUMED_RATIO, ProcessNoise, assumed_noise, differ
from ..data.row_groups import Row, once
from ..formatting import rough_percent_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What the samples of two cases do not show: how much processes and runs differ on the device.

    `between_runs`: None if that is not known. `pairs`: how much the ratio of two cases of the same
    blocks differs from process to process, learnt from all pairs of a run.
    """

    process: ProcessNoise = ASSUMED
    between_runs: Spread | None = None
    pairs: Spread | None = None


class Allowance(NamedTuple):
    """What an interval allows for beside its samples. `doubt`: its code. `words`: what differs by
    so much: `processes differ on this machine`. `spread`: None if another one has it already.
    """

    spread: Spread | None
    doubt: str
    words: str


def noise_of(row: Row) -> Noise:
    """On the device of a row, as the table of rows has it."""
    return once([row], "noise", lambda: _noise_of(row))


def _noise_of(row: Row) -> Noise:
    ratio = row.get("process_noise_ratio")
    process = assumed_noise(row.get("device"))
    if ratio is not None:
        spread = assumed_spread(ratio, row.get("process_noise_degrees") or MANY)
        process = ProcessNoise(spread=spread, source=row["process_noise_source"])
    runs = row.get("between_runs_ratio")
    between = None if runs is None else assumed_spread(runs, row["between_runs_degrees"] or MANY)
    ratio = row.get("pair_noise_ratio")
    pairs = None if ratio is None else assumed_spread(ratio, row["pair_noise_degrees"])
    return Noise(process=process, between_runs=between, pairs=pairs)


def one_process(noise: Noise) -> Allowance:
    """How much one process of a case differs from that of another."""
    source = noise.process.source
    return Allowance(noise.process.spread, "one_process", f"processes {differ(source)}")


def between_runs(noise: Noise) -> Allowance:
    """How much two runs differ that were measured at different times; assumed if not known."""
    known = noise.between_runs is not None
    words = f"separate measurements {differ('' if known else 'assumed')}"
    runs = noise.between_runs or assumed_spread(ASSUMED_RATIO)
    return Allowance(runs, "runs_differ" if known else "between_runs", words)


def words_of(allowed: Sequence[Allowance]) -> str:
    """`the 12 % that processes differ on this machine`: all of it, named by what is most."""
    known = [(one.spread.ratio, one.words) for one in allowed if one.spread]
    if not known:
        return ""
    ratio = expm1(hypot(*(log1p(one) for one, _ in known)))
    return f"the {rough_percent_text(ratio)} that {max(known)[1]}"
