"""What an SM, a warp and occupancy are, by the example of the audited kernels."""

from collections.abc import Iterator

import pandas as pd

from ..analysis.audited_kernels import (
    LIMITS,
    by_gpu,
    configuration,
    examples,
    finding,
    gpu_text,
    is_bad,
    kernels,
    short_name,
    versions,
)
from ..data.row_groups import Row
from ..data.run_meta import Meta
from ..elements import Bar, Bars, Block, Table, Text, note
from ..formatting import list_text, plural
from . import _gpu_glossary, _kernel_cells

TITLE = "GPU anatomy"
ORDER = 47
NEEDS = ()
ABOUT = ("kernels",)
MOST_ROWS = 1000
MOST_PARTS = 64  # of a bar: no SM holds as many blocks
HOW_TO_READ = (
    "Occupancy is computed, not measured: it is an upper bound, and a run can only have fewer"
    " warps. It does not measure speed. Large tiles read keys and values less often but need more"
    " registers, and asynchronous copies and matrix products keep an SM busy with few warps. So a"
    " low occupancy is a reason to look, not a fault; a spill is one, and fails an audit."
)


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = kernels(meta)
    if not rows:
        yield note("No kernel was audited. attnbench kernels audit compiles and reads them.")
        return
    gpus = by_gpu(rows)
    several = len({run for run, _ in gpus}) > 1
    for (run, _), of_gpu in gpus.items():
        yield Text(text=f"{f'{run}: ' if several else ''}{finding(of_gpu)}.")
    yield from _bad(rows)
    shown = [found for of_gpu in gpus.values() if (found := examples(of_gpu))]
    if shown:
        yield from _explained(shown)
    for (run, _), of_gpu in gpus.items():
        yield _all(of_gpu, run if several else "")
        if len(of_gpu) > MOST_ROWS:
            yield note(f"The first {MOST_ROWS} of {len(of_gpu)} kernels; rows.jsonl has them all.")


def _explained(shown: list[list[Row]]) -> Iterator[Block]:
    """`shown`: the example kernels of each GPU."""
    first = shown[0][0]
    yield Table(
        title=f"Terms, and their values for the top-ranked {_kernel_cells.kernel_name(first)}",
        columns=("term", "meaning", *(short_name(of_gpu[0]) for of_gpu in shown)),
        rows=tuple(_gpu_glossary.lines([of_gpu[0] for of_gpu in shown])),
    )
    yield note(HOW_TO_READ)
    names = dict.fromkeys(row["kernel"] for of_gpu in shown for row in of_gpu)
    for name in names:
        yield _figure([row for of_gpu in shown for row in of_gpu if row["kernel"] == name])


def _figure(rows: list[Row]) -> Bars:
    """One SM of each GPU, and the share of it that the resident blocks take."""
    same: dict[str, list[str]] = {}
    for row in rows:
        warps = f"{row['sm_warp_count']} of {row['sm_most_warp_count']} warps"
        same.setdefault(warps, []).append(row["compute_capability"])
    held = [f"{warps} on {list_text(gpus)}" for warps, gpus in same.items()]
    return Bars(
        title=f"Of {rows[0]['kernel']} an SM holds {', '.join(held)}",
        caption=(
            f"{_kernel_cells.kernel_name(rows[0])} · {versions(rows)} · each part is one block;"
            " orange and bold: the limiting resource"
        ),
        description=(
            "For each GPU one bar per resource of an SM. Each coloured part is what one block"
            " takes; the limiting resource is orange and bold. The table below has every number."
        ),
        groups=tuple(
            (f"{short_name(row)}: {configuration(row['config'])}", tuple(_bars(row)))
            for row in rows
        ),
        table=Table(
            title="One SM, and the resources of a block",
            columns=(
                "GPU",
                "configuration",
                "resource",
                "of a block",
                "of an SM",
                "blocks that fit",
            ),
            rows=tuple(
                (short_name(row), configuration(row["config"]), *cells)
                for row in rows
                for cells in _kernel_cells.budget(row)
            ),
        ),
    )


def _bars(row: Row) -> Iterator[Bar]:
    blocks = row["sm_block_count"]
    for name, taken, capacity in _kernel_cells.resources(row):
        share = taken / capacity
        full = name in row["limited_by"]
        # A block that does not fit is drawn with its share, at most the whole.
        shares = (share,) * min(blocks, MOST_PARTS) if blocks else (min(share, 1.0),)
        yield Bar(
            label=LIMITS[name],
            shares=shares,
            note=_kernel_cells.use_text(name, blocks, taken, capacity),
            full=full,
        )


def _bad(rows: list[Row]) -> Iterator[Block]:
    """The kernels that fail the audit."""
    bad = [row for row in rows if is_bad(row)]
    if bad:
        yield Table(
            title="Kernels that fail the audit",
            columns=("GPU", "kernel", "configuration", "registers", "problem"),
            rows=tuple((short_name(row), *_kernel_cells.bad_cells(row)) for row in bad[:MOST_ROWS]),
        )


def _all(rows: list[Row], run: str) -> Table:
    named = f" of {run}" if run else ""
    return Table(
        title=f"All {plural(len(rows), 'kernel')} for {gpu_text(rows[0])}{named}: {versions(rows)}",
        columns=_kernel_cells.COLUMNS,
        rows=tuple(_kernel_cells.cells(row) for row in rows[:MOST_ROWS]),
        failed=frozenset(
            (place, 0) for place, row in enumerate(rows[:MOST_ROWS]) if row["status"] != "ok"
        ),
        folded=True,
    )
