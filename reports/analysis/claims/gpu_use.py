"""Who uses more of a GPU, by the share of active SMs: C13, and half of C12.

By performance counters only: other sources of utilization do not know it.
"""

from collections.abc import Iterator, Sequence

from ....harness.stats.intervals import Interval
from ...data.row_groups import Row, groups
from ...formatting import beyond_text
from ...subjects.utilization import observed
from .claim_verdict import ClaimVerdict, Evidence, deciding
from .statement import Measured, claim

LOOP, FUSED = "naive", "fused"


@claim(
    "C13",
    "The fused layer uses the GPU better than the loop over heads.",
    tested="intervals of the share of active SMs do not overlap (performance counters only)",
    needs="naive and fused, measure: [latency, utilization], on a GPU with performance counters",
    numbers=lambda evidence: f"{deciding(evidence)}, {len(evidence)} compared",
)
def better_used(run: Measured) -> Iterator[Evidence]:
    for loop, fused in both_active(run.rows, LOOP, FUSED):
        yield Evidence(f"{FUSED} against {LOOP}", fewer(loop, fused), active_text(loop, fused))


def both_active(rows: Sequence[Row], one: str, other: str) -> Iterator[tuple[Interval, Interval]]:
    """The share of active SMs of two backends, for every problem with counters of both."""
    wanted = (one, other)
    counted = [
        row for row in rows if row.get("utilization_tier") == "gpm" and row["backend"] in wanted
    ]
    for group in groups(counted, None):
        values = {row["backend"]: observed(row, "sm_active") for row in group.rows}
        ours, theirs = (values.get(backend) for backend in wanted)
        if ours is not None and theirs is not None:
            yield ours, theirs


def fewer(ours: Interval, theirs: Interval) -> ClaimVerdict:
    """Supported if our interval lies below theirs; inconclusive without intervals."""
    if ours.high < theirs.low:
        return "supported"
    return "refuted" if ours.low > theirs.high else "inconclusive"


def active_text(ours: Interval, theirs: Interval) -> str:
    one, other = (f"{100 * each.value:.0f} %{beyond_text(each.value)}" for each in (ours, theirs))
    return f"SMs active {one} against {other}"
