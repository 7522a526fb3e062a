"""Terms of the tables of audited kernels."""

TERMS = (
    (
        "SM",
        "Streaming multiprocessor. A GPU has from dozens to well over a hundred; each works"
        " independently, with its own registers, shared memory and tensor cores.",
    ),
    (
        "block",
        "The threads that share one piece of work, here a tile of queries against tiles of keys. A"
        " block runs on one SM until it ends; other blocks wait until there is room.",
    ),
    (
        "warp",
        "32 threads that execute each step together. An SM has four schedulers; in every cycle each"
        " picks a warp that is not waiting, so more warps hide more waiting.",
    ),
    (
        "registers",
        "Where a thread keeps the values that it computes with, 32 bits each, at most 255. Those of"
        " all threads of a block are allocated as long as it lives, in steps of 8 per thread.",
    ),
    (
        "shared memory",
        "Fast memory of the SM that all threads of a block can access; it holds tiles of queries,"
        " keys and values. The system reserves 1 KiB per block.",
    ),
    (
        "tensor memory",
        "Where matrix products on 10.x and 11.0 keep their sums. A block waits until enough of it"
        " is free.",
    ),
    ("occupancy", "Warps resident on an SM over the most that it can hold."),
    ("limited by", "The resource that runs out first, so no further block fits."),
    (
        "spill",
        "A value without a register goes to local memory, behind the caches, and is loaded again"
        " when it is needed.",
    ),
    (
        "matrix products",
        "Instructions that multiply tiles on tensor cores. HMMA: each warp on its own. HGMMA: four"
        " warps together, from shared memory. UTCHMMA: one thread starts them, the sums go to"
        " tensor memory. Static count in the code: a loop counts once.",
    ),
    (
        "copies",
        "Instructions that bring tiles into shared memory while the SM computes: LDGSTS by every"
        " thread, TMA as whole tiles.",
    ),
    (
        "exponentials",
        "Powers of two (MUFU.EX2) for the softmax. They have a unit of their own, a few per cycle.",
    ),
)
