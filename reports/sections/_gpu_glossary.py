"""The words of the section on GPU anatomy: what each means, and what it comes to for a kernel."""

from collections.abc import Callable, Iterator

from ..analysis.audited_kernels import configuration, limit_text, spills
from ..data.row_groups import Row
from ..formatting import number_text, plural
from ._kernel_cells import amount_text, copies_text, matrix_instruction, resources, spill_text

NONE = "not known"


def lines(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    """A word, what it means, and what it comes to for each of these kernels."""
    for word, meaning, said in WORDS:
        cells = [said(row) for row in rows]
        if any(cells):
            yield word, meaning, *(cell or "none" for cell in cells)


def _sm(row: Row) -> str:
    return f"{row['sm_most_warp_count']} warps, {row['sm_most_block_count']} blocks at most"


def _block(row: Row) -> str:
    return configuration(row["config"])


def _warp(row: Row) -> str:
    return f"{row['block_warp_count']} in a block of {32 * row['block_warp_count']} threads"


def _registers(row: Row) -> str:
    return f"{row['thread_register_count']} of 255"


def _room(name: str) -> Callable[[Row], str]:
    """`57,344 of 65,536: 1 block`; "" where there is no such resource."""

    def said(row: Row) -> str:
        taken, capacity = {one: (taken, capacity) for one, taken, capacity in resources(row)}.get(
            name, (0, 0)
        )
        unit = " columns" if name == "tensor_memory" else ""
        room = plural(row["block_limits"].get(name, 0), "block")
        return (
            f"{amount_text(name, taken)} of {amount_text(name, capacity)}{unit}: {room}"
            if capacity
            else ""
        )

    return said


def _occupancy(row: Row) -> str:
    return (
        f"{row['sm_warp_count']} of {row['sm_most_warp_count']} warps:"
        f" {number_text(100 * row['occupancy_ratio'])} %"
    )


def _spilled(row: Row) -> str:
    found = spills(row)
    return NONE if found is None else spill_text(row) if found else "nothing"


def _matrix(row: Row) -> str:
    name = matrix_instruction(row)
    return (
        NONE
        if row.get("instructions") is None
        else f"{row['instructions'][name]} {name}"
        if name
        else ""
    )


def _copies(row: Row) -> str:
    mix = row.get("instructions")
    return NONE if mix is None else copies_text(mix)


def _exponentials(row: Row) -> str:
    mix = row.get("instructions")
    return (
        NONE if mix is None else f"{mix.get('MUFU.EX2', 0)} of {sum(mix.values()):,} instructions"
    )


WORDS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    (
        "SM",
        (
            "Streaming multiprocessor. A GPU is dozens of them to well over a hundred; each works"
            " by itself and has registers, shared memory and tensor cores of its own."
        ),
        _sm,
    ),
    (
        "block",
        (
            "The threads that share one piece of work, here a tile of queries against tiles of"
            " keys. A block is put on one SM and stays there until it ends; others wait until there"
            " is room."
        ),
        _block,
    ),
    (
        "warp",
        (
            "32 threads that take each step together. An SM has four schedulers; each picks in"
            " every cycle a warp that is not waiting, so the more warps there are, the more waiting"
            " is hidden."
        ),
        _warp,
    ),
    (
        "registers of a thread",
        "Where a thread keeps the values that it computes with, 32 bits each.",
        _registers,
    ),
    (
        "registers of a block",
        (
            "Those of all its threads. They are taken for as long as the block lives, and in steps"
            " of 8 a thread."
        ),
        _room("registers"),
    ),
    (
        "shared memory",
        (
            "Fast memory of the SM that all threads of a block see; tiles of queries, keys and"
            " values lie here. The system keeps 1 KiB of every block."
        ),
        _room("shared_memory"),
    ),
    (
        "tensor memory",
        (
            "Where matrix products of 10.x and 11.0 leave their sums. A block that finds none free"
            " waits."
        ),
        _room("tensor_memory"),
    ),
    ("occupancy", "Warps that an SM holds at once over the most that it could hold.", _occupancy),
    ("limited by", "What ends first, so that no further block fits.", limit_text),
    (
        "spill",
        (
            "A value for which no register was left goes to local memory, behind the caches, and"
            " comes back when it is needed."
        ),
        _spilled,
    ),
    (
        "matrix products",
        (
            "Instructions that multiply tiles on tensor cores. HMMA: each warp by itself. HGMMA:"
            " four warps together, from shared memory. UTCHMMA: one thread starts them, the sums go"
            " to tensor memory. Counted as they stand in the code: a loop counts once."
        ),
        _matrix,
    ),
    (
        "copies",
        (
            "Instructions that bring tiles into shared memory while the SM computes: LDGSTS by"
            " every thread, TMA as whole tiles."
        ),
        _copies,
    ),
    (
        "exponentials",
        (
            "Powers of two (MUFU.EX2), of which the softmax is made. They run on a unit of their"
            " own, a few per cycle."
        ),
        _exponentials,
    ),
)
