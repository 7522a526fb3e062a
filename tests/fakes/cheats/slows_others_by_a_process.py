"""Starts a process that keeps a core busy for half a minute."""

import subprocess
import sys

from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "its worker is stopped, with all that it has started, while others are measured"
BUSY = "import time; end = time.time() + 30\nwhile time.time() < end: pass"


def prepare(problem, inputs, weights):
    subprocess.Popen([sys.executable, "-c", BUSY])
    return lambda: scaled_dot_product_attention(*inputs)
