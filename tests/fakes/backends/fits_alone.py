"""A correct backend that runs out of memory in a process that has run another backend."""

import sys

import torch


def prepare(problem, inputs, weights):
    q, k, v = inputs

    def call():
        if "attnbench.impls.naive" in sys.modules:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
        return (q @ k.mT * problem.scale).softmax(-1) @ v

    return call
