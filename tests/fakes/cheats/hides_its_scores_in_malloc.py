"""Computes in 32 MiB that it takes from malloc in each call and frees before it returns."""

import ctypes

import torch

from tests.fakes.cheats._shared import computed_in

SHOWN = {"field": "outside_bytes", "least": 30000000}
PROBLEM = {"seq_len": 2048}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def unavailable(device):
    return None if device.type == "cpu" else "the memory is the CPU's"


def prepare(problem, inputs, weights):
    n = (problem.batch, problem.heads, problem.seq_len, problem.kv_seq_len)
    count = n[0] * n[1] * n[2] * n[3]

    def call():
        address = libc.malloc(4 * count)
        room = (ctypes.c_float * count).from_address(address)
        scores = torch.frombuffer(room, dtype=torch.float32).view(n)
        result = computed_in(scores, problem, inputs)()
        libc.free(address)
        return result

    return call
