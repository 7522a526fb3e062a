"""Whether a kernel that Triton has compiled runs its matrix products one at a time. Imports triton.

The audit asks the same of every listed configuration; here it is asked of the very code that will
run, which another version of Triton or ptxas may have made.
"""

from collections.abc import Mapping
from typing import Any

from .machine_code import is_serialized, loops, main_loop
from .nvidia_tools import disassembly

ASYNCHRONOUS = "wgmma.mma_async"  # in PTX: only such products can be serialized


def serialized(asm: Mapping[str, Any]) -> bool:
    """Of the `asm` of a compiled kernel, its PTX and cubin. Raises Unreadable."""
    if ASYNCHRONOUS not in asm.get("ptx", ""):
        return False
    main = main_loop(loops(disassembly(asm["cubin"])))
    return main is not None and is_serialized(main.names)
