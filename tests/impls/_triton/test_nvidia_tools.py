"""The code that will run is read for whether ptxas serialized it."""

import json
import os
import sys
from typing import Any

import pytest

from tests.conftest import ROOT, environment, ran
from tests.impls._triton.conftest import needs_triton

READ = """
import json, sys
from types import SimpleNamespace
from attnbench.impls._triton import nvidia_tools
from attnbench.impls._triton.nvidia_tools import Unreadable, serialized
if "missing" in sys.argv:
    nvidia_tools.knobs = SimpleNamespace(nvidia=SimpleNamespace())
try:
    found = serialized({"ptx": sys.argv[1], "cubin": b"no cubin"})
except Unreadable as reason:
    found = str(reason)
print(json.dumps(found))
"""


def read(ptx: str, *arguments: str) -> Any:
    """In a process of its own, which imports triton."""
    done = ran(
        [sys.executable, "-c", READ, ptx, *arguments],
        env=environment({"PYTHONPATH": os.pathsep.join([str(ROOT / ".package"), str(ROOT)])}),
        check=True,
    )
    return json.loads(done.stdout)


pytestmark = [needs_triton, pytest.mark.long]


def test_products_of_single_warps_cannot_be_serialized_and_their_code_is_not_read() -> None:
    assert read("mma.sync.aligned.m16n8k16", "missing") is False


def test_code_that_cannot_be_read_gives_the_reason() -> None:
    assert read("wgmma.mma_async.sync", "missing") == "Triton has no nvdisasm here to read it with"
    assert read("wgmma.mma_async.sync").startswith("nvdisasm failed: ")
