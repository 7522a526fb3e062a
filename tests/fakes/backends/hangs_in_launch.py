"""A backend whose kernel the GPU never finishes, as far as the note of its launch tells."""

import time

import torch

from attnbench.impls._triton.attempts import Attempt


def prepare(problem, inputs, weights):
    def call():
        torch.cuda.get_device_name = lambda device: "a made-up GPU"
        with Attempt("hash of its code", torch.device("cuda", 0), "forward of Config(warps=8)"):
            time.sleep(3600)

    return call
