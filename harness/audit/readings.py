"""What the tools say of a cubin, kept beside it in Triton's cache. Imports triton.

Disassembling takes longer than Triton needs to find a kernel in its cache, so a second audit would
spend its time here. The key is the cubin's content, the tools, and the code that reads them.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from triton.runtime.cache import get_cache_manager

from ...impls._triton import nvidia_tools
from ...impls._triton.machine_code import opcodes
from ...impls._triton.nvidia_tools import Unreadable
from .architecture import Capability
from .cuda_tools import notes_of, ptxas_version, usage
from .joined_code import disassemblies
from .main_loop import OF_CYCLES, OF_PRODUCTS, loop_fields
from .sass import mix, spilled_bytes

FILE = "attnbench-reading.json"
TOOLS = ("cuobjdump", "nvdisasm")
BY_DISASSEMBLY = (
    *("spill_store_bytes", "spill_load_bytes", "instruction_count", "instructions"),
    *("loop_spill_store_bytes", "loop_spill_load_bytes", *OF_PRODUCTS, *OF_CYCLES),
)
READERS = (disassemblies, loop_fields, mix, notes_of, opcodes, spilled_bytes, usage)
BY_USAGE = ("thread_register_count", "thread_stack_bytes", "static_shared_bytes")


Reading = tuple[dict[str, Any], dict[str, str]]
"""Fields of a kernel's row, with `static_shared_bytes`, and why others are missing."""


def kept(cubin: bytes, capability: Capability) -> Reading | None:
    """What an earlier audit read; None if there is nothing, or what there is is broken."""
    path = get_cache_manager(_key(cubin, capability)).get_file(FILE)
    if path is not None:
        with suppress(OSError, ValueError, KeyError):
            found = json.loads(Path(path).read_text())
            return found["found"], found["missing"]
    return None


def reading(
    cubin: bytes,
    capability: Capability,
    *,
    code: str | Unreadable,
    notes: Callable[[], list[str]],
) -> Reading:
    """Read and keep it. `notes` asks ptxas for its notes; it may raise Unreadable."""
    found, missing, complete = _read(cubin, capability, code, notes)
    if complete:
        with suppress(OSError):  # a full disk: it is only slower
            manager = get_cache_manager(_key(cubin, capability))
            manager.put(json.dumps({"found": found, "missing": missing}), FILE, binary=False)
    return found, missing


def _key(cubin: bytes, capability: Capability) -> str:
    """Of 64 hexadecimal digits, as Triton wants it."""
    parts = [_reader(), repr(ptxas_version(capability)), *map(_tool, TOOLS)]
    return hashlib.sha256("\n".join(parts).encode() + cubin).hexdigest()


@cache
def _reader() -> str:
    """The code that reads what the tools say: another version may read something else."""
    modules = {__name__, *(function.__module__ for function in READERS)}
    files = sorted(str(sys.modules[name].__file__) for name in modules)
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()


def _tool(name: str) -> str:
    try:
        return nvidia_tools.tool_path(name)
    except Unreadable:
        return ""


def _read(
    cubin: bytes, capability: Capability, code: str | Unreadable, notes: Callable[[], list[str]]
) -> tuple[dict[str, Any], dict[str, str], bool]:
    """The last: whether every tool gave an answer."""
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    unread: dict[str, str] = {}
    try:
        found |= usage(cubin, capability)._asdict()
    except Unreadable as reason:
        unread |= dict.fromkeys(BY_USAGE, str(reason))
    if isinstance(code, Unreadable):
        unread |= dict.fromkeys(BY_DISASSEMBLY, str(code))
    else:
        found |= _of_code(code)
        if "loop_instructions" not in found:
            missing |= dict.fromkeys(OF_PRODUCTS, "no loop of it multiplies matrices")
        if "loop_tensor_cycles" not in found:
            missing |= dict.fromkeys(OF_CYCLES, "no loop of it has HGMMA, whose cycles are known")
    try:
        found["ptxas_notes"] = notes()
    except Unreadable as reason:
        unread["ptxas_notes"] = str(reason)
    return found, missing | unread, not unread


def _of_code(code: str) -> Mapping[str, Any]:
    names = opcodes(code)
    stores, loads = spilled_bytes(names)
    return {
        "spill_store_bytes": stores,
        "spill_load_bytes": loads,
        "instruction_count": len(names),
        "instructions": mix(names),
        **loop_fields(code),
    }
