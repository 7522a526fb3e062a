"""The inputs of a problem: all backends get the same numbers, new ones in each round.

Numbers are drawn by place from a seed (impls/shared/inputs.py), in place through `.data`, so that
views, captured graphs and version counters stay as they are. Each round of blocks has a seed
of its own, which the worker learns as the round begins. Between two calls of a block the keys and
values of one token in 16 are scaled, so that no two timed calls have the same inputs; the last call
has the numbers of the round's seed again, and its result can be judged (judge.py).

If only the backward pass is measured, its graph holds what the forward pass saved. So the inputs
stay, and the output's gradient gets the new numbers.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from math import ceil
from random import Random

import torch
from torch import Tensor

from ...impls.backend import Inputs
from ...impls.problem import Problem
from ...impls.shared.inputs import draw_inputs
from ..cases.costs import minimal_bytes
from ..devices.host import cpu_cache_bytes
from ..rows.plans import reads_a_cache
from .correctness import widen
from .judge import write_gradient
from .prepared_call import Tensors, draw_gradient, make_gradient, make_tensors

LEAST_CHANGE, MOST_CHANGE = 0.25, 0.5
"""Of tokens' keys and values, as a share, up or down. Below 0.02 a bf16 result may not show it."""
ONE_OF = 16
"""Of so many tokens one is scaled. What one of 4 096 makes of a result is lost in bf16."""


class InputValues:
    """Inputs, weights and, with a backward pass, the output's gradient of one problem.

    `order`: how they lie in memory (impls.input_order). `seed`: of the numbers that they have now;
    `first_seed`: of those that `prepare` saw, and of the weights, which stay. `turns`: of copies of
    keys and values, where each call reads others.
    """

    def __init__(
        self, problem: Problem, device: torch.device, seed: int, order: str = "heads"
    ) -> None:
        self.problem, self.device, self.order = problem, device, order
        self.seed = self.first_seed = seed
        self.tensors: Tensors = make_tensors(problem, device, seed, order)
        self.gradient: Tensor | None = make_gradient(problem, device, seed, order)
        self.turns: Turns | None = None
        self._versions = self._count_writes()

    def draw(self, seed: int) -> None:
        """Give all that a timed call reads the numbers of a seed. The first seed's are given to
        every input, so that they end `widen`.
        """
        self.seed = seed
        if self.problem.passes != "backward" or seed == self.first_seed:
            draw_inputs(self.problem, self.tensors.inputs, seed)
        self.draw_gradient()
        if self.turns is not None:
            self.turns.renew()

    def draw_gradient(self) -> None:
        """Give the output's gradient the numbers of the present seed."""
        if self.gradient is not None:
            draw_gradient(self.gradient.data, self.seed)

    def judged_gradient(self, places_seed: int) -> Tensor:
        """The output's gradient of a judged call: zero but for the judged rows."""
        assert self.gradient is not None
        found = torch.empty_like(self.gradient)
        write_gradient(found, self.problem, places_seed)
        return found

    def widen(self) -> None:
        """Scale the queries until scores reach WIDE_SCORE; `draw` ends it."""
        widen(self.problem, self.tensors.inputs, self.seed)

    def written(self) -> str:
        """The names of tensors that a backend wrote to in place, by torch's count; "" if none."""
        found = self._count_writes()
        names = [name for name, count in found.items() if count != self._versions[name]]
        self._versions = found
        return ", ".join(names)

    def _count_writes(self) -> dict[str, int]:
        return {name: tensor._version for name, tensor in _named(self.tensors)}


class EachCall:
    """Called before each call of a block, so that it reads numbers of its own.

    `last`: the numbers of the round's seed are back.
    """

    def __init__(self, values: InputValues) -> None:
        self._turns, self._random = values.turns, Random(secrets.randbits(63))
        self._rows = list(_token_rows(values, self._random))
        self._first = [row().clone() for row in self._rows]

    def __call__(self, *, last: bool) -> None:
        if self._turns is not None:
            self._turns.take_next()
        change = self._random.choice((-1, 1)) * self._random.uniform(LEAST_CHANGE, MOST_CHANGE)
        factor = 1.0 if last else 1.0 + change
        for row, first in zip(self._rows, self._first, strict=True):
            torch.mul(first, factor, out=row())

    def restore(self) -> None:
        """After the block: every number of the tensors is that of the seed. Those of copies come
        back in `Turns.renew_taken`, which is none of a block's time.
        """
        if self._turns is not None:
            self._turns.take_first()
        for row, first in zip(self._rows, self._first, strict=True):
            row().copy_(first)


def _rows(tensor: Tensor, axis: int, first: int) -> Tensor:
    """The numbers of one token of ONE_OF in a tensor, which may get other memory (Turns)."""
    return tensor.data.movedim(axis, 0)[first::ONE_OF]


def _token_rows(values: InputValues, random: Random) -> Iterator[Callable[[], Tensor]]:
    """Of keys and values, or of their scales where they are codes; of the output's gradient if only
    the backward pass is measured. Stored in pages: tokens of each page.
    """
    named, axis = values.tensors.inputs.named(), -2
    changed = [named["key"], named["value"]]
    if values.problem.passes == "backward":
        assert values.gradient is not None
        changed = [values.gradient]
    elif "key_scale" in named:
        changed, axis = [named["key_scale"], named["value_scale"]], -1
    for tensor in {id(one): one for one in changed if one.numel()}.values():
        yield partial(_rows, tensor, axis, random.randrange(min(ONE_OF, tensor.shape[axis])))


def _named(tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Each tensor under the name of its field."""
    yield from tensors.inputs.named().items()
    if weights := tensors.weights:
        yield from ((name, getattr(weights, name)) for name in weights.__dataclass_fields__)


# ---- keys and values that take turns -------------------------------------------------------------
# In a model the keys and values of all other layers pass through the caches between two calls of
# one layer. A CPU's caches cannot be emptied, and a buffer that is swept between calls would drive
# out the program too, which a model's layers share. So there are copies, and each call reads the
# next one from memory; nothing is prepared again. On a GPU the clock flushes the L2 instead.

TIMES_THE_CACHE = 2  # beside the last level the cores have caches of their own
UNKNOWN_CACHE_BYTES = 256 << 20  # where the kernel does not know; above most
NOT_READ = (
    "its call reads what it made of its inputs before, not the inputs, so that no other copy can"
    " take their place in cold caches; set plan.caches to warm"
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
