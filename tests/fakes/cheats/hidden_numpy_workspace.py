"""Computes in 32 MiB of numpy's that it takes in `prepare` and keeps between its calls."""

import numpy
import torch

from tests.fakes.cheats._shared import computed_in

SHOWN = {"field": "outside_bytes", "least": 30000000}
PROBLEM = {"seq_len": 2048}


def unavailable(device):
    return None if device.type == "cpu" else "numpy computes on the CPU"


def prepare(problem, inputs, weights):
    n = (problem.batch, problem.heads, problem.seq_len, problem.kv_seq_len)
    scores = torch.from_numpy(numpy.ones(n, dtype=numpy.float32))
    return computed_in(scores, problem, inputs)
