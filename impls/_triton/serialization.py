"""Whether a kernel that Triton has compiled runs its matrix products one at a time. Imports triton.

The audit asks the same of every listed configuration; here it is asked of the very code that will
run, which another version of Triton or ptxas may have made.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from triton import knobs

from .machine_code import is_serialized, main_loop

ASYNCHRONOUS = "wgmma.mma_async"  # in PTX: only such products can be serialized
TOOL_S = 60.0


class Unreadable(Exception):
    """The machine code cannot be read; the message is the reason."""


def serialized(asm: Mapping[str, Any]) -> bool:
    """Of the `asm` of a compiled kernel, its PTX and cubin. Raises Unreadable."""
    if ASYNCHRONOUS not in asm.get("ptx", ""):
        return False
    main = main_loop(_disassembly(asm["cubin"]))
    return main is not None and is_serialized(main.names)


def _disassembly(cubin: bytes) -> str:
    try:
        tool = str(knobs.nvidia.nvdisasm.path)
    except (RuntimeError, AttributeError):
        raise Unreadable("Triton has no nvdisasm here") from None
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool, "-ndf", "-c", file.name]  # without the analysis of jumps: twice as fast
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TOOL_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise Unreadable(f"{Path(tool).name} failed: {error}"[:200]) from None
    return done.stdout
