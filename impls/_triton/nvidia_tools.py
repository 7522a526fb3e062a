"""Whether a kernel runs its matrix products one at a time, by its machine code, which nvdisasm, a
program of NVIDIA that ships with Triton, reads. Imports triton.
"""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from triton import knobs
from triton.runtime.cache import get_cache_manager

from . import machine_code
from .machine_code import is_serialized, loops, main_loop

TOOL_S = 120.0
ANSWER = "attnbench-serialized.json"
ASYNCHRONOUS = "wgmma.mma_async"  # in PTX: only such products can be serialized


class Unreadable(Exception):
    """A tool gives no answer; the message is the reason."""


def serialized(asm: Mapping[str, Any]) -> bool:
    """Of the `asm` of a compiled kernel, its PTX and cubin. Raises Unreadable.

    Asked of the very code that will run. The answer is kept in Triton's cache, by the machine code
    and the code that reads it: nvdisasm takes as long as ptxas.
    """
    if ASYNCHRONOUS not in asm.get("ptx", ""):
        return False
    cubin = bytes(asm["cubin"])
    reader = Path(str(machine_code.__file__)).read_bytes()
    manager = get_cache_manager(hashlib.sha256(reader + cubin).hexdigest())
    if (path := manager.get_file(ANSWER)) is not None:
        with suppress(OSError, ValueError):  # broken: it is read again
            return json.loads(Path(path).read_text()) is True
    main = main_loop(loops(disassembly(cubin)))
    answer = main is not None and is_serialized(main.names)
    with suppress(OSError):  # a full disk: it is only slower
        manager.put(json.dumps(answer), ANSWER, binary=False)
    return answer


def disassembly(cubin: bytes) -> str:
    """Raises Unreadable."""
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        # -ndf leaves out the analysis of jumps, which takes half the time and is not needed here.
        return run([tool_path("nvdisasm"), "-ndf", "-c", file.name])


def tool_path(tool: str) -> str:
    """Raises Unreadable."""
    try:
        return str(getattr(knobs.nvidia, tool).path)
    except (RuntimeError, AttributeError):
        raise Unreadable(f"Triton has no {tool} here to read it with") from None


def run(command: list[str]) -> str:
    """What it prints. Raises Unreadable."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=True)
        return done.stdout
    except (OSError, subprocess.SubprocessError) as error:
        stderr = str(getattr(error, "stderr", None) or "").strip().splitlines()
        reason = f"{Path(command[0]).name} failed: {stderr[0] if stderr else error}"
        raise Unreadable(reason[:300]) from None
