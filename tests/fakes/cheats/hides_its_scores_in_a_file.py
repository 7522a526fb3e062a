"""Computes in 32 MiB of a file that it maps into memory, whose pages are the file's."""

import tempfile

import torch

from tests.fakes.cheats._shared import computed_in

SHOWN = {"field": "outside_bytes", "least": 30000000}
PROBLEM = {"seq_len": 2048}


def unavailable(device):
    return None if device.type == "cpu" else "the memory is the CPU's"


def prepare(problem, inputs, weights):
    n = (problem.batch, problem.heads, problem.seq_len, problem.kv_seq_len)
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        count = n[0] * n[1] * n[2] * n[3]
        scores = torch.from_file(file.name, shared=True, size=count, dtype=torch.float32).view(n)
    scores.fill_(1.0)
    return computed_in(scores, problem, inputs)
