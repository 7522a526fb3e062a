"""Do the numbers for one peak agree? Measured, by formula, from the meta device, and as the kernel
saw it.
"""

from dataclasses import dataclass

from ..data.row_groups import Row
from ..formatting import bytes_text

# Exact numbers may differ by scalars that torch wraps as tensors, and by the factors of 8 bytes
# that autograd keeps, one for each head.
EXACT_BYTES = {"cpu": 64, "cuda": 4096}
HEAD_BYTES = 8
# The kernel counts pages, and small tensors may lie in pages that it has counted before: compared
# only where that is little.
RESIDENT_FROM_BYTES = 16 << 20
RESIDENT_SLACK_BYTES = 4 << 20  # the most that was seen over 93 cases on two cores is 2.2 MiB
RESIDENT_SLACK_RATIO = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A number beside the measured one; `agrees` within what its way of counting allows."""

    name: str
    size_bytes: int
    agrees: bool


def others(row: Row) -> list[Other]:
    """The numbers that the row's measured peak can be held against; none where nothing was
    measured.
    """
    measured = row.get("peak_bytes")
    if row["status"] != "ok" or measured is None:
        return []
    exact = EXACT_BYTES.get(row["device"], EXACT_BYTES["cuda"]) + HEAD_BYTES * (
        row.get("heads") or 0
    )
    slack = {
        "formula": exact,
        "meta": exact,
        "resident": RESIDENT_SLACK_BYTES + int(RESIDENT_SLACK_RATIO * measured),
    }
    sizes = {
        # Runs of before the meta device was asked have no source: theirs was always a formula.
        "formula": (
            row.get("predicted_peak_bytes")
            if row.get("predicted_source") in (None, "formula")
            else None
        ),
        "meta": row.get("meta_peak_bytes"),
        "resident": row.get("resident_peak_bytes") if measured >= RESIDENT_FROM_BYTES else None,
    }
    return [
        Other(name=name, size_bytes=size, agrees=abs(size - measured) <= slack[name])
        for name, size in sizes.items()
        if size is not None
    ]


def disagreement(row: Row) -> str:
    """What differs, and by how much: `formula 15.8 MiB less, meta 15.8 MiB less`; "" where all that
    can be compared agree.
    """
    return ", ".join(
        f"{other.name} {bytes_text(abs(other.size_bytes - row['peak_bytes']))}"
        f" {'less' if other.size_bytes < row['peak_bytes'] else 'more'}"
        for other in others(row)
        if not other.agrees
    )
