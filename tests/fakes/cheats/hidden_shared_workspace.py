"""Computes in 32 MiB of shared memory, mapped in `prepare` and kept between its calls."""

import mmap

import torch

from tests.fakes.cheats._shared import computed_in

SHOWN = {"field": "outside_bytes", "least": 30000000}
PROBLEM = {"seq_len": 2048}


def unavailable(device):
    return None if device.type == "cpu" else "the memory is the CPU's"


def prepare(problem, inputs, weights):
    n = (problem.batch, problem.heads, problem.seq_len, problem.kv_seq_len)
    room = mmap.mmap(-1, 4 * n[0] * n[1] * n[2] * n[3])  # anonymous and, by default, shared
    scores = torch.frombuffer(room, dtype=torch.float32).view(n)
    scores.fill_(1.0)
    return computed_in(scores, problem, inputs)
