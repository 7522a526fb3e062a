"""Sparse patterns: from which N on they beat masking a dense matrix, in time and in bytes."""

from collections.abc import Sequence

from ..data.row_groups import Group, Row, axis_text, backends, family, groups
from .crossover import Crossover, crossover, fewer_bytes_from, from_text

FAMILY = "sparse_"  # backends whose names begin with this compute no dense matrix
PREFERRED = ("sdpa", "fused")  # to compare with


def sparse_groups(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N with a timed sparse backend and a timed dense one."""
    return [
        group
        for group in groups(rows, "seq_len")
        if _timed(group, sparse=True) and _timed(group, sparse=False)
    ]


def _timed(group: Group, *, sparse: bool) -> list[str]:
    return backends(
        row
        for row in group.rows
        if row.get("latency_ms") is not None and family(row["backend"]).startswith(FAMILY) == sparse
    )


def dense(group: Group, baseline: str = "") -> str:
    """What sparse backends are compared with: the baseline, else sdpa, fused, or the first."""
    known = _timed(group, sparse=False)
    return next(name for name in (baseline, *PREFERRED, *known) if name in known)


def crossovers(group: Group, baseline: str = "") -> list[Crossover]:
    against = dense(group, baseline)
    found = [crossover(group.rows, name, against) for name in _timed(group, sparse=True)]
    return [one for one in found if one is not None]


def finding(group: Group, baseline: str = "") -> str:
    """`sparse_local is faster than sdpa from N = 2k on (...), fewer bytes from N = 512 on`."""
    texts = []
    for one in crossovers(group, baseline):
        start, known = fewer_bytes_from(group.rows, one.backend, one.against)
        last = axis_text("seq_len", one.lengths[-1])
        faster = "faster than" if one.faster_at else "not clearly faster than"
        when = one.text if one.faster_at else f"up to {last}"
        size = ""
        if start is not None:
            size = f", fewer bytes {from_text(start, known, axis_text('seq_len', start))}"
        elif known:
            size = f", not fewer bytes up to {axis_text('seq_len', known[-1])}"
        texts.append(f"{one.backend} is {faster} {one.against} {when}{size}")
    return "; ".join(texts) or "no sparse backend shares a timed N with a dense one"
