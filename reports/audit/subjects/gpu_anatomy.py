"""What an SM holds of the audited kernels, and which of them fail."""

from collections.abc import Iterator, Sequence

from ....harness.audit.verdict import is_serialized, spills, verdicts
from ...data.row_groups import Row, by
from ...data.run_meta import Meta
from ...elements import Bar, Bars, Block, Card, Marked, Table, note, table_of
from ...formatting import list_text, plural
from ...quantity import Number
from ...subjects import Subject
from .. import cells
from ..kernels import by_gpu, first, gpu_text, kernel_name, kernels, short_name, versions

TITLE = "GPU anatomy"
SECTION = "asked"
ORDER = 47
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


TERMS = {
    "SM": (
        "Streaming multiprocessor. A GPU has from dozens to well over a hundred; each works"
        " independently, with its own registers, shared memory and tensor cores."
    ),
    "block": (
        "The threads that share one piece of work, here a tile of queries against tiles of keys. A"
        " block runs on one SM until it ends; other blocks wait until there is room."
    ),
    "warp": (
        "32 threads that execute each step together. An SM has four schedulers; in every cycle"
        " each picks a warp that is not waiting, so more warps hide more waiting."
    ),
    "registers": (
        "Where a thread keeps the values that it computes with, 32 bits each, at most 255. Those"
        " of all threads of a block are allocated as long as it lives, in steps of 8 per thread."
    ),
    "shared memory": (
        "Fast memory of the SM that all threads of a block can access; it holds tiles of queries,"
        " keys and values. The system reserves 1 KiB per block."
    ),
    "tensor memory": (
        "Where matrix products on 10.x and 11.0 keep their sums. A block waits until enough of it"
        " is free."
    ),
    "occupancy": "Warps resident on an SM over the most that it can hold.",
    "limited by": "The resource that runs out first, so no further block fits.",
    "spill": (
        "A value without a register goes to local memory, behind the caches, and is loaded again"
        " when it is needed."
    ),
    "matrix products": (
        "Instructions that multiply tiles on tensor cores. HMMA: each warp on its own. HGMMA: four"
        " warps together, from shared memory. UTCHMMA: one thread starts them, the sums go to"
        " tensor memory. Static count in the code: a loop counts once."
    ),
    "copies": (
        "Instructions that bring tiles into shared memory while the SM computes: LDGSTS by every"
        " thread, TMA as whole tiles."
    ),
    "exponentials": (
        "Powers of two (MUFU.EX2) for the softmax. They have a unit of their own, a few per cycle."
    ),
}


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    gpus = by_gpu(kernels(meta))
    if not gpus:
        return Subject(lacking="No kernel was audited. attnbench kernels audit does.")
    several = len({run for run, _ in gpus}) > 1
    names = [run if several else "" for run, _ in gpus]
    judged = [
        (f"{name}: {one.gpu}" if name else one.gpu, one)
        for name, of_gpu in zip(names, gpus.values(), strict=True)
        for one in verdicts(of_gpu)
    ]
    good = sum(one.is_good for _, one in judged)
    card = Card(
        title="What the compilers made of the kernels",
        sentence=f"All kernels are good for {good} of {plural(len(judged), 'GPU')}.",
        picture=table_of(
            "Verdicts",
            judged,
            {
                "GPU": lambda of: Marked(cell=of[0], verdict="good" if of[1].is_good else "bad"),
                "verdict": lambda of: of[1].words,
            },
        ),
        wide=True,
    )
    return Subject(card=card, blocks=tuple(_blocks(list(gpus.values()), names)))


def _blocks(gpus: Sequence[Sequence[Row]], names: Sequence[str]) -> Iterator[Block]:
    """`gpus`: the kernels of each GPU. `names`: of their runs, or "" if there is one."""
    bad = [row for rows in gpus for row in rows if is_bad(row)]
    if bad:
        yield table_of(
            "Kernels that fail the audit",
            bad[:MOST_ROWS],
            {
                "GPU": short_name,
                "kernel": kernel_name,
                "configuration": lambda row: cells.configuration(row["config"]),
                "registers": lambda row: row.get("thread_register_count") or "",
                "problem": cells.problem,
            },
        )
    shown = [row for rows in gpus for row in examples(rows)]
    if shown:
        yield Table(title="Terms", columns=("term", "meaning"), rows=tuple(TERMS.items()))
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
    same = by(rows, lambda row: f"{row['sm_warp_count']} of {row['sm_most_warp_count']} warps")
    held = [
        f"{warps} on {list_text([row['compute_capability'] for row in some])}"
        for warps, some in same.items()
    ]
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
        table=table_of(
            "One SM, and the resources of a block",
            [(row, *resource) for row in rows for resource in cells.resources(row)],
            {
                "GPU": lambda one: short_name(one[0]),
                "configuration": lambda one: cells.configuration(one[0]["config"]),
                "resource": lambda one: one[1].replace("_", " "),
                "of a block": lambda one: Number(cells.amount_text(one[1], one[2])),
                "of an SM": lambda one: Number(cells.amount_text(one[1], one[3])),
                "blocks": lambda one: one[0]["block_limits"].get(one[1], ""),
            },
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
