"""Compile many kernels at once, before anything launches them. Imports triton."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import driver

from .launch import Launch
from .nvidia_tools import serialized


def compile_together(launches: Iterable[Launch]) -> None:
    """Fills Triton's cache for the current GPU, with what nvdisasm reads of each kernel beside it.

    By threads: Triton's passes and ptxas run without Python's lock. What does not compile fails
    again, with its reason, when it is to be launched, so that nobody asks the pool for it.
    """
    target = driver.active.get_current_target()
    jobs = [(made.source(target), target, made.options) for made in launches]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for job in jobs:
            pool.submit(_compile, *job)


def _compile(source: ASTSource, target: GPUTarget, options: dict[str, Any]) -> None:
    serialized(triton.compile(source, target=target, options=options).asm)
