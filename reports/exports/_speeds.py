"""What a format takes that holds speeds only: the cases that have one, a name for each that is
stable over runs, and who is left out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..data.load import frame
from ..data.read import Document, Run
from ..data.row_groups import Row, records
from ..formatting import STATUS_WORDS, list_text, plural, visible
from . import NotExportable


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A case with a latency; `row` is that of the tidy table, its samples included."""

    scenario: str
    case: str
    meta: Document
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """A case without a latency, and why."""

    scenario: str
    case: str
    status: str
    reason: str


def speeds(runs: Sequence[Run]) -> tuple[list[Timed], list[Silent]]:
    """Every case of the runs, as one or the other. Raises NotExportable where two runs would have
    the same names, or none has a speed.
    """
    scenarios = [visible(str(run.meta["scenario"].get("name", ""))) for run in runs]
    twice = [name for name, count in Counter(scenarios).items() if count > 1]
    if twice:
        raise NotExportable(
            f"two runs of the scenario {twice[0]}: their cases would have the same names; export"
            " each into a file of its own"
        )
    timed: list[Timed] = []
    silent: list[Silent] = []
    for run, scenario in zip(runs, scenarios, strict=True):
        for row in records(frame([run])):
            case = visible(row["case"])
            if row["latency_ms"] is not None:
                timed.append(Timed(scenario=scenario, case=case, meta=run.meta, row=row))
            else:
                why = row["reason"] or "latency was not measured"
                silent.append(
                    Silent(scenario=scenario, case=case, status=row["status"], reason=visible(why))
                )
    if not timed:
        raise NotExportable(
            f"no case has a latency; {list_text(list(left_out(silent))) or 'nothing was measured'}"
        )
    return timed, silent


def left_out(silent: Sequence[Silent]) -> Iterator[str]:
    """For people, where there is anything to say."""
    if silent:
        counted = Counter(STATUS_WORDS.get(one.status, one.status) for one in silent)
        each = list_text([f"{count} {status}" for status, count in counted.items()])
        yield (
            f"{plural(len(silent), 'case')} without a latency left out ({each}); csv and json have"
            " them, with their reasons"
        )
