"""Decode steps by the memory bandwidth that they reach: which there are, and the finding."""

from collections.abc import Sequence

from ..data.decode import NEXT, is_decode, rate_text, share_text
from ..data.peaks import memory_bytes_per_s
from ..data.row_groups import Group, Row, groups, label, varying_axes
from ..data.run_meta import Meta
from ..formatting import bandwidth_text

MOST_NAMED = 4


def timed_steps(rows: Sequence[Row]) -> list[Row]:
    """Decode steps with a latency, also those whose bytes are not known."""
    return [row for row in rows if is_decode(row) and row.get("latency_ms") is not None]


def known_rates(rows: Sequence[Row]) -> list[Row]:
    return [row for row in timed_steps(rows) if row.get("decode_bytes_per_s") is not None]


def own_text(row: Row) -> str:
    """The share of the measured bandwidth; the rate if there is none."""
    return own_share(row) or own_rate(row)


def own_share(row: Row) -> str:
    """`61.0 % (58.2 to 63.9)`; "" if no bandwidth was measured."""
    names = ("decode_bandwidth_ratio", "decode_bandwidth_low_ratio", "decode_bandwidth_high_ratio")
    return share_text(*(row.get(name) for name in names))


def own_rate(row: Row) -> str:
    """`9.80 GB/s (9.41 GB/s to 10.2 GB/s)`."""
    names = ("decode_bytes_per_s", "decode_low_bytes_per_s", "decode_high_bytes_per_s")
    return rate_text(*(row.get(name) for name in names))


def notes(row: Row) -> list[str]:
    return [one for one in str(row.get("decode_bandwidth_note") or "").split(NEXT) if one]


def largest(rows: Sequence[Row]) -> Group:
    """The problem that moves the most bytes, so that caches and launches matter least."""
    return max(groups(known_rates(rows), None), key=lambda group: group.rows[0]["minimal_bytes"])


def finding(rows: Sequence[Row], meta: Meta) -> str:
    """One sentence on the largest problem, some of whose rates must be known.

    `at N_kv = 8k, h_kv = 32 sdpa reaches 78.4 % (75.0 to 81.9) of the measured memory bandwidth
    (9.80 of 12.5 GB/s), naive 31.2 % (30.0 to 32.5)`.
    """
    group = largest(rows)
    axes = varying_axes([other.problem for other in groups(known_rates(rows), None)])
    where = label(group.problem, axes or ["kv_seq_len"])
    first, *others = sorted(group.rows, key=lambda row: -row["decode_bytes_per_s"])
    whole = memory_bytes_per_s(meta[first["run"]])
    rate = bandwidth_text(first["decode_bytes_per_s"])
    if whole is None:
        text = f"{first['backend']} moves {own_rate(first)}"
    else:
        text = (
            f"{first['backend']} reaches {own_text(first)} of the measured memory bandwidth"
            f" ({rate} of {bandwidth_text(whole)})"
        )
    rest = [f"{row['backend']} {own_text(row)}" for row in others]
    if len(rest) > MOST_NAMED:
        rest = [*rest[:MOST_NAMED], f"{len(rest) - MOST_NAMED} more less"]
    return "; ".join([f"at {', '.join([f'{where} {text}', *rest])}", *notes(first)])
