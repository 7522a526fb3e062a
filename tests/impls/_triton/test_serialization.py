"""The code that will run is read for whether ptxas serialized it."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from attnbench.impls._triton.machine_code import is_serialized, loops, main_loop
from tests.conftest import ROOT, environment
from tests.impls._triton.conftest import needs_triton

READ = """
import json, sys
from types import SimpleNamespace
from attnbench.impls._triton import nvidia_tools
from attnbench.impls._triton.nvidia_tools import Unreadable
from attnbench.impls._triton.serialization import serialized
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
    done = subprocess.run(
        [sys.executable, "-c", READ, ptx, *arguments],
        env=environment({"PYTHONPATH": os.pathsep.join([str(ROOT / ".package"), str(ROOT)])}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@needs_triton
def test_products_of_single_warps_cannot_be_serialized_and_their_code_is_not_read() -> None:
    assert read("mma.sync.aligned.m16n8k16", "missing") is False


@pytest.mark.long
@needs_triton
def test_code_that_cannot_be_read_gives_the_reason() -> None:
    assert read("wgmma.mma_async.sync", "missing") == "Triton has no nvdisasm here to read it with"
    assert read("wgmma.mma_async.sync").startswith("nvdisasm failed: ")


@pytest.mark.parametrize(("products", "waits", "expected"), [(8, 8, True), (8, 2, False)])
def test_a_wait_after_every_product_of_the_main_loop_is_serialized(
    products: int, waits: int, expected: bool
) -> None:
    body = ["HGMMA.64x128x16.F32.BF16 R24, gdesc[UR24], R24 ;"] * products
    body += ["WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"] * waits
    lines = [".L_x_1:", *body, "@!P0 BRA `(.L_x_1) ;", "EXIT ;"]
    code = "\n".join(
        line if line.startswith(".") else f"        /*{16 * place:04x}*/   {line}"
        for place, line in enumerate(lines)
    )
    loop = main_loop(loops(code))
    assert loop is not None
    assert is_serialized(loop.names) is expected
