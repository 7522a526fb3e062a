"""For formats of latencies only: the cases with one, stable names for them, and the other cases."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...harness.files.printable import visible
from ...harness.rows.run_files import Document
from ..data.load import rows_of
from ..data.row_groups import Row
from ..data.run_meta import Run
from ..formatting import STATUS_WORDS, list_text, plural
from . import NotExportable


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """A case; `row` is its row of the table, with samples. `reason`: why it has no latency."""

    scenario: str
    case: str
    meta: Document
    row: Row
    reason: str


def speeds(runs: Sequence[Run]) -> tuple[list[Speed], list[Speed]]:
    """Every case of the runs: those with a latency, and the others.

    Raises NotExportable if names would not be unique, or no case has a latency.
    """
    scenarios = [visible(str(run.meta["scenario"].get("name", ""))) for run in runs]
    twice = [name for name, count in Counter(scenarios).items() if count > 1]
    if twice:
        raise NotExportable(
            f"two runs of the scenario {twice[0]}: their cases would have the same names; export"
            " each into a file of its own"
        )
    every = [
        Speed(
            scenario=scenario,
            case=visible(row["case"]),
            meta=run.meta,
            row=row,
            reason=visible(row["reason"] or "latency was not measured"),
        )
        for run, scenario in zip(runs, scenarios, strict=True)
        for row in rows_of([run])
    ]
    timed = [one for one in every if one.row["latency_ms"] is not None]
    untimed = [one for one in every if one.row["latency_ms"] is None]
    if not timed:
        raise NotExportable(
            f"no case has a latency; {list_text(list(left_out(untimed))) or 'nothing was measured'}"
        )
    return timed, untimed


def one_machine(facts: Sequence[object]) -> None:
    """Raises NotExportable unless what is known of each run's machine and versions is equal."""
    if any(other != facts[0] for other in facts):
        raise NotExportable(
            "the runs come from different machines or versions, and a file of this format has only"
            " one; export each separately"
        )


def left_out(untimed: Sequence[Speed]) -> Iterator[str]:
    """A note on the untimed cases, if there are any."""
    if untimed:
        counts = Counter(STATUS_WORDS.get(one.row["status"], one.row["status"]) for one in untimed)
        each = list_text([f"{count} {status}" for status, count in counts.items()])
        yield (
            f"{plural(len(untimed), 'case')} without a latency left out ({each}); csv and json have"
            " them, with their reasons"
        )
