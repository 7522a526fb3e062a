"""A correct backend that waits in its call while the folder WAITS_IN has a file `hold`, in every
problem but the first; `held` is there once it does, `pids` names a process that it leaves behind.
"""

import os
import subprocess
import time
from pathlib import Path

import torch


def prepare(problem, inputs, weights):
    folder = Path(os.environ["WAITS_IN"])
    first, me = folder / "first", str(problem.seq_len)
    if not first.exists():
        first.write_text(me)

    def call():
        if (folder / "hold").exists() and first.read_text() != me:
            program = f"echo $$ >>{folder}/pids; exec sleep 600"
            subprocess.run(["sh", "-c", f"env -i setsid sh -c '{program}' & exit 0"], check=True)
            (folder / "held").touch()
            while (folder / "hold").exists():
                time.sleep(0.02)
        return torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=problem.causal)

    return call
