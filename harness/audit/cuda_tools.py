"""NVIDIA's programs that Triton carries: ptxas made the cubin, cuobjdump and nvdisasm read it.
Importing this imports triton.
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


class Unreadable(Exception):
    """Why a tool said nothing, in words."""


class Usage(NamedTuple):
    """What the loader is told of a kernel. `static_shared_bytes`: what is reserved for the system
    not counted.
    """

    thread_register_count: int
    thread_stack_bytes: int
    static_shared_bytes: int


def usage(cubin: bytes, capability: Capability) -> Usage:
    """Raises Unreadable."""
    said = _read("cuobjdump", cubin, "-res-usage")
    numbers = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", said)
    if numbers is None:
        raise Unreadable("cuobjdump -res-usage names no registers")
    registers, stack, shared = map(int, numbers.groups())
    # From compute capability 9.0 on the cubin declares the system's part too.
    return Usage(
        registers, stack, max(0, shared - RESERVED_SHARED_BYTES) if capability >= (9, 0) else shared
    )


def disassembly(cubin: bytes) -> str:
    """Raises Unreadable."""
    # The analysis of jumps that is left out takes half the time, and is lost on us.
    return _read("nvdisasm", cubin, "-ndf", "-c")


@cache
def ptxas_version(capability: Capability) -> str | None:
    """Of the ptxas that Triton uses for this compute capability; None where it does not say."""
    try:
        said = _run([_ptxas(capability), "--version"])
    except Unreadable:
        return None
    found = re.search(r"\bV(\d+(?:\.\d+)+)", said)
    return found[1] if found else None


@cache
def known_to_ptxas(capability: Capability) -> frozenset[Capability]:
    """For what the ptxas of this compute capability can make code; empty where it does not say."""
    try:
        said = _run([_ptxas(capability), "--help"])
    except Unreadable:
        return frozenset()
    return frozenset(
        (int(major), int(minor)) for major, minor in re.findall(r"'sm_(\d{1,2})(\d)'", said)
    )


def _ptxas(capability: Capability) -> str:
    try:
        return str(get_ptxas(_arch(capability)).path)
    except RuntimeError as error:
        raise Unreadable(str(error)) from None


def _arch(capability: Capability) -> int:
    return 10 * capability[0] + capability[1]


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
        raise Unreadable(f"Triton has no {tool} here, which would read it") from None


def _run(command: list[str]) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=TOOL_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        stderr = str(getattr(error, "stderr", None) or "").strip().splitlines()
        raise Unreadable(
            f"{Path(command[0]).name} failed: {stderr[0] if stderr else error}"[:300]
        ) from None
