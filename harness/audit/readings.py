"""What the tools say of a cubin, kept beside it in Triton's cache: cuobjdump of the resources that
it takes, nvdisasm of its code, ptxas of what will be slow. Imports triton.

Disassembling takes longer than Triton needs to find a kernel in its cache, so a second audit would
spend its time here. The key is the cubin's content, the tools, and the code that reads them.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

from triton.backends.nvidia.compiler import get_ptxas
from triton.runtime.cache import get_cache_manager

from ...impls._triton import machine_code, nvidia_tools
from ...impls._triton.machine_code import opcodes
from ...impls._triton.nvidia_tools import Unreadable, disassembly, read, run
from . import sass
from .occupancy import RESERVED_SHARED_BYTES, Capability
from .sass import OF_CYCLES, OF_PRODUCTS, loop_fields, mix, spilled_bytes

FILE = "attnbench-reading.json"
TOOLS = ("cuobjdump", "nvdisasm")
READERS = (__file__, str(sass.__file__), str(machine_code.__file__))
BY_DISASSEMBLY = (
    *("spill_store_bytes", "spill_load_bytes", "instruction_count", "instructions"),
    *("loop_spill_store_bytes", "loop_spill_load_bytes", *OF_PRODUCTS, *OF_CYCLES),
)
# ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are ...
_NOTE = re.compile(r"\((C7[5-9]\d\d)\)\s+(?:Potential Performance Loss:\s+)?(.*)")


Reading = tuple[dict[str, Any], dict[str, str]]
"""Fields of a kernel's row, with `static_shared_bytes`, and why others are missing."""


def reading(cubin: bytes, capability: Capability, notes: Callable[[], list[str]]) -> Reading:
    """What an earlier audit read, or what the tools say now. `notes` asks ptxas for its notes; it
    may raise Unreadable.
    """
    manager = get_cache_manager(_key(cubin, capability))
    if (path := manager.get_file(FILE)) is not None:
        with suppress(OSError, ValueError, KeyError):  # broken: it is read again
            kept = json.loads(Path(path).read_text())
            return kept["found"], kept["missing"]
    found, missing, complete = _read(cubin, capability, notes)
    if complete:
        with suppress(OSError):  # a full disk: it is only slower
            manager.put(json.dumps({"found": found, "missing": missing}), FILE, binary=False)
    return found, missing


def _key(cubin: bytes, capability: Capability) -> str:
    """Of 64 hexadecimal digits, as Triton wants it."""
    parts = [_reader(), repr(ptxas_version(capability)), *map(_tool, TOOLS)]
    return hashlib.sha256("\n".join(parts).encode() + cubin).hexdigest()


@cache
def _reader() -> str:
    """The code that reads what the tools say: another version may read something else."""
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in READERS)).hexdigest()


def _tool(name: str) -> str:
    try:
        return nvidia_tools.tool_path(name)
    except Unreadable:
        return ""


def _read(
    cubin: bytes, capability: Capability, notes: Callable[[], list[str]]
) -> tuple[dict[str, Any], dict[str, str], bool]:
    """The last: whether every tool gave an answer."""
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    unread: dict[str, str] = {}
    asked: tuple[tuple[Callable[[], Mapping[str, Any]], tuple[str, ...]], ...] = (
        (lambda: usage(cubin, capability)._asdict(), Usage._fields),
        (lambda: _of_code(disassembly(cubin)), BY_DISASSEMBLY),
        (lambda: {"ptxas_notes": notes()}, ("ptxas_notes",)),
    )
    for ask, names in asked:
        try:
            found |= ask()
        except Unreadable as reason:
            unread |= dict.fromkeys(names, str(reason))
    if "instructions" in found:
        if "loop_instructions" not in found:
            missing |= dict.fromkeys(OF_PRODUCTS, "no loop of it multiplies matrices")
        if "loop_tensor_cycles" not in found:
            missing |= dict.fromkeys(OF_CYCLES, "no loop of it has HGMMA, whose cycles are known")
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


class Usage(NamedTuple):
    """The resources of a kernel. `static_shared_bytes`: without the system's reserve."""

    thread_register_count: int
    thread_stack_bytes: int
    static_shared_bytes: int


def usage(cubin: bytes, capability: Capability) -> Usage:
    """Raises Unreadable."""
    output = read("cuobjdump", cubin, "-res-usage")
    numbers = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", output)
    if numbers is None:
        raise Unreadable("cuobjdump -res-usage names no registers")
    registers, stack, shared = map(int, numbers.groups())
    if capability >= (9, 0):  # the cubin then declares the system's reserve too
        shared = max(0, shared - RESERVED_SHARED_BYTES)
    return Usage(registers, stack, shared)


def ptxas_notes(ptx: str, capability: Capability) -> list[str]:
    """What ptxas says of a kernel's code when asked again. Raises Unreadable."""
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    if target is None:
        raise Unreadable("the PTX names no target")
    with NamedTemporaryFile("w", suffix=".ptx") as source, NamedTemporaryFile() as cubin:
        source.write(ptx)
        source.flush()
        command = [_ptxas(capability), "-v", f"--gpu-name={target[1]}", source.name]
        return notes_of(run([*command, "-o", cubin.name], of_errors=True))


def notes_of(log: str) -> list[str]:
    """What ptxas -v says of code that will be slow, as "C7515: wgmma.mma_async instructions are
    serialized due to ...".
    """
    return [f"{code}: {text}" for code, text in _NOTE.findall(log)]


def _ptxas(capability: Capability) -> str:
    return str(get_ptxas(10 * capability[0] + capability[1]).path)


@cache
def ptxas_version(capability: Capability) -> str | None:
    """Of the ptxas that Triton uses for this compute capability; None if it does not print it."""
    found = re.search(r"\bV(\d+(?:\.\d+)+)", _ptxas_output(capability, "--version"))
    return found[1] if found else None


@cache
def known_to_ptxas(capability: Capability) -> frozenset[Capability]:
    """What the ptxas of this compute capability can make code for; empty if unknown."""
    found = re.findall(r"'sm_(\d{1,2})(\d)'", _ptxas_output(capability, "--help"))
    return frozenset((int(major), int(minor)) for major, minor in found)


def _ptxas_output(capability: Capability, option: str) -> str:
    """Empty if ptxas gives none."""
    try:
        return run([_ptxas(capability), option])
    except (RuntimeError, Unreadable):
        return ""
