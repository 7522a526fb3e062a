"""Keys and values that take turns, so that each call reads its own from memory.

In a model the keys and values of all other layers pass through the caches between two calls of one
layer. A CPU's caches cannot be emptied, and a buffer that is swept between calls would drive out
the program too, which a model's layers share. So there are copies, and each call gets the next one.
Its tensors get other memory; nothing is prepared again. On a GPU the clock flushes the L2 instead.
"""

import os
from collections.abc import Callable
from dataclasses import asdict
from math import ceil

import torch
from torch import Tensor

from ...impls.backend import Inputs
from ...impls.problem import Problem
from ..cases.costs import minimal_bytes
from ..devices.host import cpu_cache_bytes
from ..rows.plans import reads_a_cache

TIMES_THE_CACHE = 2  # beside the last level the cores have caches of their own
UNKNOWN_CACHE_BYTES = 256 << 20  # where the kernel does not know; above most
NOT_READ = (
    "its call does not read the tensors of its inputs but what it made of them before, so that"
    " copies cannot take turns; set plan.caches to warm"
)
STORED = ("key", "value", "key_scale", "value_scale")


class Turns:
    """Copies of a problem's keys and values, the first of which is what its tensors have had.

    Of all copies the calls read twice the bytes of this process's last-level caches: one copy may
    do. Raises RuntimeError if they do not fit into memory.
    """

    def __init__(self, problem: Problem, inputs: Inputs) -> None:
        cache_bytes = cpu_cache_bytes(os.sched_getaffinity(0)) or UNKNOWN_CACHE_BYTES
        self.count = ceil(TIMES_THE_CACHE * cache_bytes / minimal_bytes(problem))
        named = inputs.named()
        kept = (named[name] for name in STORED if name in named)
        self._tensors = list({id(tensor): tensor for tensor in kept}.values())
        own = [tensor.data for tensor in self._tensors]
        self._memory = [own, *([data.clone() for data in own] for _ in range(self.count - 1))]
        self._turn = 0
        self._taken: set[int] = set()

    def renew(self) -> None:
        """Give all copies the numbers that the first one has now."""
        self._taken.update(range(self.count))
        self.renew_taken()
        self._turn = 0  # the second was written first

    def renew_taken(self) -> None:
        """Those that calls have had. The next call gets the one after them, which was not written
        lately.
        """
        own = self._memory[0]
        for turn in sorted(self._taken - {0}):
            for data, now in zip(self._memory[turn], own, strict=True):
                data.copy_(now)
        self._taken.clear()

    def are_read_by(self, call: Callable[[], object]) -> bool:
        """Whether the result follows the copies; their numbers are lost, but for the first's."""
        if self.count == 1:
            return True
        of_own = call()
        self._turn = 0  # not the first is to be lost
        self.take_next()
        for tensor in self._tensors:
            tensor.data.zero_()
        of_zeros = call()
        self.take_first()
        assert isinstance(of_own, Tensor)
        assert isinstance(of_zeros, Tensor)
        return not torch.equal(of_own, of_zeros)

    def take_next(self) -> None:
        """The tensors have the next copy from here on."""
        self._turn = (self._turn + 1) % self.count
        self._taken.add(self._turn)
        self._give(self._memory[self._turn])

    def take_first(self) -> None:
        """The tensors have their own memory again."""
        self._give(self._memory[0])

    def _give(self, copy: list[Tensor]) -> None:
        for tensor, data in zip(self._tensors, copy, strict=True):
            tensor.data = data  # without a trace in torch's count of writes


def turns_of(problem: Problem, inputs: Inputs) -> Turns | None:
    """None where no cache of keys and values is read, and on a GPU."""
    on_cpu = inputs.query.device.type == "cpu"
    return Turns(problem, inputs) if on_cpu and reads_a_cache(asdict(problem)) else None
