"""What a disassembly of machine code (SASS) says: how many instructions of each class, and how many
bytes of registers are spilled.

Counted as they stand in the code, not as often as they run: what stands in a loop counts once.
"""

import re
from collections import Counter
from collections.abc import Sequence

# /*0e10*/  @!P0 LDGSTS.E.BYPASS.128 [R12+0x4000], [R8.64] ;
_INSTRUCTION = re.compile(
    r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE
)

CLASSES = {  # of an opcode's beginning; the first that fits counts
    "HMMA": ("HMMA", "IMMA", "QMMA", "OMMA"),  # matrix products by one warp
    "HGMMA": (
        "HGMMA",
        "IGMMA",
        "QGMMA",
    ),  # by four warps together, from shared memory: compute capability 9.0
    "UTCHMMA": (
        "UTCHMMA",
        "UTCIMMA",
        "UTCQMMA",
        "UTCOMMA",
    ),  # into tensor memory: compute capability 10.x and 11.0
    "FFMA": ("FFMA",),  # multiply and add in fp32
    "MUFU.EX2": ("MUFU.EX2",),  # powers of two, of which the softmax is made
    "LDGSTS": ("LDGSTS",),  # asynchronous copies into shared memory, by every thread
    "TMA": (
        "UTMALDG",
        "UTMASTG",
        "UTMAREDG",
        "UTMAPF",
        "UBLKCP",
        "UBLKRED",
        "UBLKPF",
    ),  # whole tiles, by the copy engine of the SM
    "shared": ("LDS", "STS", "ATOMS"),  # LDSM and STSM, which move tiles of matrices, among them
    "global": ("LDG", "STG", "ATOMG", "RED."),
    "local": ("LDL", "STL"),  # where spilled registers go
}
OTHER = "other"
PADDING = "NOP"
_WIDTH_BYTES = {"128": 16, "64": 8, "16": 2, "U16": 2, "S16": 2, "8": 1, "U8": 1, "S8": 1}
_WORD_BYTES = 4


def opcodes(disassembly: str) -> list[str]:
    """Of nvdisasm's output, in order, without padding."""
    return [name for name in _INSTRUCTION.findall(disassembly) if name != PADDING]


def mix(names: Sequence[str]) -> dict[str, int]:
    """How many instructions of each class; together all there are."""
    counts = Counter(map(_class, names))
    return {name: counts[name] for name in (*CLASSES, OTHER)}


def spilled_bytes(names: Sequence[str]) -> tuple[int, int]:
    """Bytes per thread that are stored to local memory and loaded from it: what `ptxas -v` calls
    spill stores and spill loads.
    """
    stores, loads = (
        sum(_width_bytes(name) for name in names if name.startswith(kind))
        for kind in ("STL", "LDL")
    )
    return stores, loads


def _class(name: str) -> str:
    return next((known for known, begins in CLASSES.items() if name.startswith(begins)), OTHER)


def _width_bytes(name: str) -> int:
    return next(
        (_WIDTH_BYTES[part] for part in name.split(".")[1:] if part in _WIDTH_BYTES), _WORD_BYTES
    )
