"""Do the numbers for a peak agree? Measured, by formula, by the meta device, by resident pages."""

from dataclasses import dataclass

from ..data.row_groups import Row
from ..formatting import bytes_text

# Exact numbers may differ by scalars that torch wraps as tensors, and by 8 bytes per head that
# autograd keeps.
EXACT_BYTES = {"cpu": 64, "cuda": 4096}
HEAD_BYTES = 8
# The kernel counts pages, and small tensors may lie in pages that it counted before: compared only
# for peaks that are large compared with that.
RESIDENT_FROM_BYTES = 16 << 20
RESIDENT_SLACK_BYTES = 4 << 20  # the largest difference over 93 cases on two cores was 2.2 MiB
RESIDENT_SLACK_RATIO = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPeak:
    """A second number for a measured peak; it `agrees` within the tolerance of its method."""

    name: str
    size_bytes: int
    agrees: bool


def other_peaks(row: Row) -> list[OtherPeak]:
    """The numbers to compare the measured peak with; none if nothing was measured."""
    measured = row.get("peak_bytes")
    if row["status"] != "ok" or measured is None:
        return []
    exact = EXACT_BYTES.get(row["device"], EXACT_BYTES["cuda"])
    exact += HEAD_BYTES * (row.get("heads") or 0)
    # Runs from before the meta device was used have no source: their prediction is a formula.
    is_formula = row.get("predicted_source") in (None, "formula")
    resident_slack = RESIDENT_SLACK_BYTES + int(RESIDENT_SLACK_RATIO * measured)
    numbers = (
        ("formula", row.get("predicted_peak_bytes") if is_formula else None, exact),
        ("meta", row.get("meta_peak_bytes"), exact),
        (
            "resident",
            row.get("resident_peak_bytes") if measured >= RESIDENT_FROM_BYTES else None,
            resident_slack,
        ),
    )
    return [
        OtherPeak(name=name, size_bytes=size, agrees=abs(size - measured) <= slack)
        for name, size, slack in numbers
        if size is not None
    ]


def disagreement(row: Row) -> str:
    """What differs, and how much: `formula 15.8 MiB less, meta 2 KiB more`; "" if all agree."""
    return ", ".join(
        f"{other.name} {bytes_text(abs(other.size_bytes - row['peak_bytes']))}"
        f" {'less' if other.size_bytes < row['peak_bytes'] else 'more'}"
        for other in other_peaks(row)
        if not other.agrees
    )
