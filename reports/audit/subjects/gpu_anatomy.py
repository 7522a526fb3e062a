"""What an SM holds of the audited kernels, and which of them fail."""

from collections.abc import Iterator, Sequence

from ....harness.audit.verdict import is_serialized, spills, verdicts
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Bar, Bars, Block, Card, Table, note
from ...formatting import list_text, plural
from ...subjects import Subject
from .. import cells
from ..glossary import TERMS
from ..kernels import by_gpu, first, gpu_text, kernel_name, kernels, short_name, versions

TITLE = "GPU anatomy"
ORDER = 47
NEEDS = ()
ABOUT = ("kernels",)
EXAMPLE_WIDTH = 128  # of a head, in most models of today
EXAMPLE_FIELDS = (
    *("sm_most_warp_count", "sm_most_block_count", "sm_register_count", "sm_shared_bytes"),
    *("allocated_register_count", "allocated_shared_bytes", "block_warp_count"),
    *("thread_register_count", "block_limits", "limited_by"),
)
"""What an example row must have, besides numbers of blocks and warps, which may be 0."""
MOST_ROWS = 1000
MOST_PARTS = 64  # of a bar: no SM holds as many blocks
HOW_TO_READ = (
    "Occupancy is computed, not measured: it is an upper bound, and a run can only have fewer"
    " warps. It does not measure speed. Large tiles read keys and values less often but need more"
    " registers, and asynchronous copies and matrix products keep an SM busy with few warps. So a"
    " low occupancy is a reason to look, not a fault; a spill is one, and fails an audit."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    gpus = by_gpu(kernels(meta))
    if not gpus:
        return Subject(lacking="No kernel was audited. attnbench kernels audit does.")
    several = len({run for run, _ in gpus}) > 1
    names = [run if several else "" for run, _ in gpus]
    judged = [
        (name, one)
        for name, of_gpu in zip(names, gpus.values(), strict=True)
        for one in verdicts(of_gpu)
    ]
    good = [one.is_good for _, one in judged]
    card = Card(
        name="gpu_anatomy",
        title="What the compilers made of the kernels",
        sentence=f"All kernels are good for {sum(good)} of {plural(len(good), 'GPU')}.",
        picture=Table(
            title="Verdicts",
            columns=("GPU", "verdict"),
            rows=tuple(
                (f"{f'{name}: ' if name else ''}{one.gpu}", one.words) for name, one in judged
            ),
            verdicts={(at, 0): "good" if ok else "bad" for at, ok in enumerate(good)},
        ),
        wide=True,
    )
    return Subject(card=card, blocks=tuple(_blocks(list(gpus.values()), names)))


def _blocks(gpus: Sequence[Sequence[Row]], names: Sequence[str]) -> Iterator[Block]:
    """`gpus`: the kernels of each GPU. `names`: of their runs, or "" if there is one."""
    bad = [row for rows in gpus for row in rows if is_bad(row)]
    if bad:
        yield Table(
            title="Kernels that fail the audit",
            columns=("GPU", "kernel", "configuration", "registers", "problem"),
            rows=tuple(
                (
                    short_name(row),
                    kernel_name(row),
                    cells.configuration(row["config"]),
                    str(row.get("thread_register_count") or ""),
                    cells.problem(row),
                )
                for row in bad[:MOST_ROWS]
            ),
        )
    shown = [row for rows in gpus for row in examples(rows)]
    if shown:
        yield Table(title="Terms", columns=("term", "meaning"), rows=TERMS)
        yield note(HOW_TO_READ)
    for kernel in dict.fromkeys(row["kernel"] for row in shown):
        yield _figure([row for row in shown if row["kernel"] == kernel])
    yield note(cells.LEGEND)
    for rows, name in zip(gpus, names, strict=True):
        of = f" of {name}" if name else ""
        title = f"All {plural(len(rows), 'kernel')} for {gpu_text(rows[0])}{of}: {versions(rows)}"
        yield cells.table(title, rows[:MOST_ROWS], folded=True)
        if len(rows) > MOST_ROWS:
            yield note(f"The first {MOST_ROWS} of {len(rows)} kernels; rows.jsonl has them all.")


def is_bad(row: Row) -> bool:
    """It fails the audit, or was not reached."""
    return row["status"] != "ok" or spills(row) is not False or is_serialized(row)


def examples(rows: Sequence[Row]) -> list[Row]:
    """The first of each kernel with an occupancy, of the head width nearest the usual one."""
    counts = ("occupancy_ratio", "sm_block_count", "sm_warp_count")
    known = [
        row
        for row in rows
        if all(row.get(name) is not None for name in counts)
        and all(row.get(name) for name in EXAMPLE_FIELDS)
    ]
    found = first(known, causal=True)
    width = min(
        (row["d_k"] for row in found), key=lambda at: (abs(at - EXAMPLE_WIDTH), at), default=0
    )
    return [row for row in found if row["d_k"] == width]


def _figure(rows: Sequence[Row]) -> Bars:
    """One SM of each GPU, and the share of it that the resident blocks take."""
    same: dict[str, list[str]] = {}
    for row in rows:
        warps = f"{row['sm_warp_count']} of {row['sm_most_warp_count']} warps"
        same.setdefault(warps, []).append(row["compute_capability"])
    held = [f"{warps} on {list_text(gpus)}" for warps, gpus in same.items()]
    return Bars(
        title=f"Of {rows[0]['kernel']} an SM holds {', '.join(held)}",
        caption=(
            f"{kernel_name(rows[0])} · {versions(rows)} · each part is one block;"
            " orange and bold: the limiting resource"
        ),
        description=(
            "For each GPU one bar per resource of an SM. Each coloured part is what one block"
            " takes; the limiting resource is orange and bold. The table below has every number."
        ),
        groups=tuple(
            (f"{short_name(row)}: {cells.configuration(row['config'])}", tuple(_bars(row)))
            for row in rows
        ),
        table=Table(
            title="One SM, and the resources of a block",
            columns=("GPU", "configuration", "resource", "of a block", "of an SM", "blocks"),
            rows=tuple(
                (
                    short_name(row),
                    cells.configuration(row["config"]),
                    name.replace("_", " "),
                    cells.amount_text(name, taken),
                    cells.amount_text(name, capacity),
                    str(row["block_limits"].get(name, "")),
                )
                for row in rows
                for name, taken, capacity in cells.resources(row)
            ),
        ),
    )


def _bars(row: Row) -> Iterator[Bar]:
    held = row["sm_block_count"]
    for name, taken, capacity in cells.resources(row):
        share = taken / capacity
        amounts = (cells.amount_text(name, count) for count in (taken, capacity))
        yield Bar(
            label=name.replace("_", " "),
            # A block that does not fit is drawn with its share, at most the whole.
            shares=(share,) * min(held, MOST_PARTS) if held else (min(share, 1.0),),
            note=f"{held} {cells.TIMES} {' of '.join(amounts)}",
            full=name in row["limited_by"],
        )
