"""Computes in 32 MiB of a file that it maps into memory, whose pages are the file's."""

import mmap
import tempfile

import torch

from tests.fakes.cheats._shared import computed_in

ESCAPES = "pages of a file count as the file's, as those of a library do"
PROBLEM = {"seq_len": 2048}


def unavailable(device):
    return None if device.type == "cpu" else "the memory is the CPU's"


def prepare(problem, inputs, weights):
    n = (problem.batch, problem.heads, problem.seq_len, problem.kv_seq_len)
    size = 4 * n[0] * n[1] * n[2] * n[3]
    with tempfile.TemporaryFile(dir="/var/tmp") as file:  # on a disk: /tmp may be memory
        file.truncate(size)
        room = mmap.mmap(file.fileno(), size)
    scores = torch.frombuffer(room, dtype=torch.float32).view(n)
    scores.fill_(1.0)
    return computed_in(scores, problem, inputs)
