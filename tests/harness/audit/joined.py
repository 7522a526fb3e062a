"""Disassemble kernels together and each by itself; print as JSON what differs, and how often
nvdisasm ran.

`python -m tests.harness.audit.joined`: a process of its own, so that no other test imports triton.
"""

import json
import re
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import torch
import triton

from attnbench.harness.audit.joined_code import disassemblies
from attnbench.harness.audit.main_loop import loop_fields
from attnbench.impls._triton import nvidia_tools
from attnbench.impls._triton.configs import Config
from attnbench.impls._triton.jobs import Job
from attnbench.impls._triton.machine_code import opcodes

CHOSEN = (
    ("forward", Config(128, 128, 8, 3, descriptors=True, gluon=True)),
    ("forward", Config(128, 64, 8, 3, descriptors=True)),
    ("grad_q", Config(64, 64, 4, 2)),
)
SMALL = (("grad_q", Config(16, 64, 4, 2)), ("forward", Config(64, 64, 4, 3)))


def cubins(capability: tuple[int, int], chosen: Sequence[Any]) -> list[bytes]:
    found = []
    for kernel, config in chosen:
        kind = {"dtype": "bf16", "d_k": 64, "d_v": 64, "causal": True}
        job = Job(kernel=kernel, config=config, capability=capability, **kind)
        found.append(triton.compile(*job.arguments()).asm["cubin"])
    return found


def read(some: Sequence[bytes]) -> dict[str, Any]:
    """What the audit takes from the code of each, and how often nvdisasm ran."""
    ran: list[str] = []
    run = nvidia_tools.run

    def noted(command: list[str], **how: Any) -> str:
        ran.append(command[0])
        return run(command, **how)

    with patch.object(nvidia_tools, "run", noted):
        codes = disassemblies(some)
    found = [
        {"unreadable": str(code)}
        if isinstance(code, nvidia_tools.Unreadable)
        else {
            "opcodes": opcodes(code),
            "lines": len(re.findall(r"^\s+/\*", code, re.MULTILINE)),
            **loop_fields(code),
        }
        for code in codes
    ]
    return {"found": found, "ran": len(ran)}


def main() -> None:
    torch.set_num_threads(1)
    hopper, ampere = cubins((9, 0), CHOSEN), cubins((8, 0), SMALL)
    blackwell = cubins((10, 0), SMALL)
    results = {
        "alone": [read([one])["found"][0] for one in (*hopper, *ampere, *blackwell)],
        "together": [read(hopper), read(ampere), read(blackwell)],
        "architectures": read([*hopper, *ampere, *blackwell]),
        "broken": read([hopper[0], hopper[1][:100], b"no cubin"]),
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
