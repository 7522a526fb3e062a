"""Replaces the harness's timers by some that read one microsecond, whatever was called."""

from torch.nn.functional import scaled_dot_product_attention

from attnbench.harness.measure import clock

CONVICTED = "impossible|clock"


def at_once(timer, calls, *_, **__):
    return clock.Samples(block_ms=[0.001] * calls, result=timer.call())


def prepare(problem, inputs, weights):
    def call():
        for timer in (clock.HostTimer, clock.CudaTimer):
            timer.sample = at_once
        return scaled_dot_product_attention(*inputs)

    return call
