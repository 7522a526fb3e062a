"""Do the numbers for a peak agree? Measured, by formula, by the meta device, by resident pages."""

from dataclasses import dataclass

from ..data.memory_need import clearly_outside_bytes
from ..data.row_groups import Row, distinguishing_axes, label, problem
from ..formatting import bytes_text, list_text, number_text

# Exact numbers may differ by scalars that torch wraps as tensors, and by 8 bytes per head that
# autograd keeps.
EXACT_BYTES = {"cpu": 64, "cuda": 4096}
HEAD_BYTES = 8
# The kernel counts pages, and small tensors may lie in pages that it counted before: compared only
# for peaks that are large compared with that.
RESIDENT_FROM_BYTES = 16 << 20
RESIDENT_SLACK_BYTES = 4 << 20  # the largest difference over 93 cases on two cores was 2.2 MiB
RESIDENT_SLACK_RATIO = 0.01
KEPT_RATIO = 0.05  # of the peak: less that is kept between calls is not worth a sentence


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


# ---- what is not in the peak of a call -----------------------------------------------------------


def kept_text(row: Row) -> str:
    """`32 MiB`, with a remark where it is no more than a mask of one byte per pair."""
    kept = row.get("workspace_bytes")
    text = bytes_text(kept) or "not known"
    return f"{text} (no more than a mask)" if kept and is_no_more_than_a_mask(row) else text


def is_no_more_than_a_mask(row: Row) -> bool:
    """A backend may make a mask once, before its calls; it is no work of a call."""
    masked = row.get("causal") or row.get("mask") not in (None, "none")
    entries = row["batch"] if row.get("mask") == "padding" else 1
    return bool(masked and row["workspace_bytes"] <= entries * row["seq_len"] * row["kv_seq_len"])


def kept_finding(rows: list[Row]) -> str:
    """Who keeps most between calls, and who works outside torch's allocator; "" if nobody does.

    `Beside the peak of a call, keeps_scores keeps 32 MiB (16.0 times its peak) between calls at N =
    1k, and numpy takes 98 MiB outside torch's allocator at N = 1k: both count in comparisons.`
    """
    axes = distinguishing_axes(rows)
    parts = []
    for what, size_of in _BESIDE.items():
        largest: dict[str, Row] = {}
        for row in rows:
            if size_of(row) and size_of(row) >= size_of(largest.get(row["backend"], row)):
                largest[row["backend"]] = row
        for backend, row in largest.items():
            size, peak = size_of(row), row["peak_bytes"]
            times = f" ({number_text(size / peak)} times its peak)" if peak else ""
            where = label(problem(row), axes)
            at = f" at {where}" if where else ""
            parts.append(f"{backend} {what.format(bytes_text(size) + times)}{at}")
    if not parts:
        return ""
    return f"Beside the peak of a call, {list_text(parts)}. Comparisons of memory count it."


def _worth_telling(row: Row) -> int:
    kept: int = row.get("workspace_bytes") or 0
    told = kept >= KEPT_RATIO * (row.get("peak_bytes") or 0) and not is_no_more_than_a_mask(row)
    return kept if kept and told else 0


_BESIDE = {
    "keeps {} between calls": _worth_telling,
    "takes {} outside torch's allocator": clearly_outside_bytes,
}
