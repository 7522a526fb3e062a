"""NVIDIA's programs that ship with Triton: ptxas makes cubins, cuobjdump and nvdisasm read them.

Imports triton.
"""

import re
import subprocess
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from triton import knobs
from triton.backends.nvidia.compiler import get_ptxas

from .architecture import RESERVED_SHARED_BYTES, Capability

TOOL_S = 120.0
# ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are ...
_NOTE = re.compile(r"\((C7[5-9]\d\d)\)\s+(?:Potential Performance Loss:\s+)?(.*)")


class Unreadable(Exception):
    """A tool gives no answer; the message is the reason."""


class Usage(NamedTuple):
    """The resources of a kernel. `static_shared_bytes`: without the system's reserve."""

    thread_register_count: int
    thread_stack_bytes: int
    static_shared_bytes: int


def usage(cubin: bytes, capability: Capability) -> Usage:
    """Raises Unreadable."""
    output = _read("cuobjdump", cubin, "-res-usage")
    numbers = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", output)
    if numbers is None:
        raise Unreadable("cuobjdump -res-usage names no registers")
    registers, stack, shared = map(int, numbers.groups())
    if capability >= (9, 0):  # the cubin then declares the system's reserve too
        shared = max(0, shared - RESERVED_SHARED_BYTES)
    return Usage(registers, stack, shared)


def disassembly(cubin: bytes) -> str:
    """Raises Unreadable."""
    # -ndf leaves out the analysis of jumps, which takes half the time and is not needed here.
    return _read("nvdisasm", cubin, "-ndf", "-c")


def ptxas_notes(ptx: str, capability: Capability) -> list[str]:
    """What ptxas says of a kernel's code when asked again. Raises Unreadable."""
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    if target is None:
        raise Unreadable("the PTX names no target")
    with NamedTemporaryFile("w", suffix=".ptx") as source, NamedTemporaryFile() as cubin:
        source.write(ptx)
        source.flush()
        command = [_ptxas(capability), "-v", f"--gpu-name={target[1]}", source.name]
        return notes_of(_run([*command, "-o", cubin.name], of_errors=True))


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
        return _run([_ptxas(capability), option])
    except (RuntimeError, Unreadable):
        return ""


def _read(tool: str, cubin: bytes, *options: str) -> str:
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return _run([tool_path(tool), *options, file.name])


def tool_path(tool: str) -> str:
    """Raises Unreadable."""
    try:
        return str(getattr(knobs.nvidia, tool).path)
    except (RuntimeError, AttributeError):
        raise Unreadable(f"Triton has no {tool} here to read it with") from None


def _run(command: list[str], *, of_errors: bool = False) -> str:
    """What it prints, or writes to standard error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=True)
        return done.stderr if of_errors else done.stdout
    except (OSError, subprocess.SubprocessError) as error:
        stderr = str(getattr(error, "stderr", None) or "").strip().splitlines()
        reason = f"{Path(command[0]).name} failed: {stderr[0] if stderr else error}"
        raise Unreadable(reason[:300]) from None
