"""The verdict of a selfcheck in words."""

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from ..selfcheck import FILE, MOST_CHANCE, Verdict


def table(verdict: Verdict) -> Table:
    """One line per backend that was measured against itself."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("backend against itself", "ratio", "95 % interval", "told apart"):
        drawn.add_column(column)
    for pair in verdict.pairs:
        ratio = pair.ratio
        drawn.add_row(
            pair.backend,
            f"{ratio.value:.3f}",
            f"{ratio.low:.3f} to {ratio.high:.3f}",
            "yes" if pair.told_apart else "no",
        )
    return drawn


def sentences(verdict: Verdict, root: Path) -> Iterator[str]:
    """What the numbers mean for the next measurement here, and where they were put."""
    yield (
        f"Noise floor on {verdict.device}: within one process equal backends differ by up to"
        f" {verdict.paired_noise_ratio:.1%}; from one process to the next by up to"
        f" {verdict.run_noise_ratio:.1%} (95 % of cases)."
    )
    share = verdict.clock_overhead_ms / verdict.shortest_ms
    yield (
        f"The clock adds {verdict.clock_overhead_ms * 1e6:.0f} ns to a call, {share:.3%} of the"
        " shortest one here."
    )
    if verdict.contended_blocks or verdict.throttled_blocks:
        yield (
            f"Of {verdict.blocks} blocks {verdict.contended_blocks} were contended and"
            f" {verdict.throttled_blocks} throttled: other work on this machine is part of the"
            " floor."
        )
    if verdict.false_alarms > MOST_CHANCE:
        yield (
            f"Equals were told apart in {verdict.false_alarms} of {len(verdict.pairs)} pairs: do"
            " not trust intervals from here now."
        )
    elif verdict.false_alarms:
        yield (
            "One pair of equals was told apart, which chance alone does in 1 check of 7; run it"
            " again."
        )
    else:
        yield "No equals were told apart."
    yield f"Appended to {root / FILE}."
