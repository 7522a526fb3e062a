"""What ptxas says of a kernel, and cuobjdump of the resources that it takes.

Imports triton.
"""

import re
from functools import cache
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from triton.backends.nvidia.compiler import get_ptxas

from ...impls._triton.nvidia_tools import Unreadable, read, run
from .architecture import RESERVED_SHARED_BYTES, Capability

# ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are ...
_NOTE = re.compile(r"\((C7[5-9]\d\d)\)\s+(?:Potential Performance Loss:\s+)?(.*)")


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
