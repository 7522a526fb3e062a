"""The shared inputs of a problem: give them other values in place, and notice who writes to them.

Values change by their signs, which needs no second copy and can be undone exactly. In scope "core"
keys and values are negated: every score and every output changes. In the other scopes every input
is negated. Beside that the signs of single columns can be drawn. The weights stay, since `prepare`
may have copied them. Writing goes through `.data`, which leaves the version counters of tensors
alone: a backend cannot tell by them that values are new.

In scope "core" the result is known without computing it. A column of q and the same column of k
with other signs leave every score as it is. A column of v with another sign changes the sign of
that column of the output, and nothing else. So such a problem has 2 to the power of its columns
inputs, unlike each other in half of their numbers, whose outputs and gradients follow exactly, to
the bit, from one that was checked. It holds for exact attention only: what approximates it may mix
columns. A softcap and a mask are functions of the score, so they change nothing in this; sinks stay
as they are, and so do their gradients.

In a layer the columns are those of its inputs, and of a backward pass alone those of the output's
gradient. There nobody knows the result.

After the last block the inputs get new random numbers from a seed, which the judge knows too.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import mul

import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE, draw_inputs
from ...impls.kv_tensors import multiply
from ...impls.problem import Problem
from .cold_keys import Turns
from .correctness import widen
from .prepared_call import Tensors, draw_gradient, make_gradient, make_tensors
from .raw_memory import Array

SCALE_BY = 0.1  # of a factor: enough to change every bit of the mantissa but the first
FEWEST_COLUMNS = 16  # whose result is unknown: values that came twice would look like a cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSigns:
    """Factors 1 and -1, [batch, heads, 1, columns] or, in a layer, [batch, 1, columns].

    `inputs`: by the names of inputs; none if only the backward pass is measured. `gradient`: of the
    output's gradient. `results`: of the output, or of the gradients of q, k and v, and [1] of the
    sinks', as numbers on the host; None if unknown.
    """

    inputs: dict[str, Tensor]
    gradient: Tensor
    results: tuple[Array, ...] | None


def draw(problem: Problem, device: torch.device, generator: torch.Generator) -> ColumnSigns | None:
    """None where there are too few columns. `generator` is one of the CPU."""
    p = problem
    batch = 1 if p.page or p.prefix else p.batch  # all sequences read the same numbers

    def signs(*shape: int) -> Tensor:
        return 2 * torch.randint(2, (batch, *shape), generator=generator) - 1

    def placed(drawn: Tensor) -> Tensor:
        return drawn.to(device, TORCH_DTYPE[p.dtype])

    def of_queries(of_keys: Tensor) -> Tensor:
        return of_keys.repeat_interleave(p.heads // p.kv_heads, 1)

    layer = p.scope != "core"
    if layer or p.passes == "backward":
        shape = (1, p.d_model) if layer else (p.heads, 1, p.d_v)
        gradient = placed(signs(*shape))
        if gradient.numel() < FEWEST_COLUMNS:
            return None
        forward = layer and p.passes != "backward"
        names = ("query", "key", "value") if forward else ()
        inputs = {name: placed(signs(*shape)) for name in names}
        return ColumnSigns(inputs=inputs, gradient=gradient, results=None)
    if p.latent:
        cache, query = signs(1, 1, p.latent + p.rope), signs(p.heads, 1, p.d_k)
        inputs = {"query": placed(query), "key": placed(cache), "value": placed(cache)}
        return ColumnSigns(inputs=inputs, gradient=placed(signs(p.heads, 1, p.d_v)), results=None)
    key, value = signs(p.kv_heads, 1, p.d_k), signs(p.kv_heads, 1, p.d_v)
    query, output = of_queries(key), of_queries(value)
    shared = {"prefix_key": key, "prefix_value": value} if p.prefix else {}
    results = [output]
    if p.backward:
        beside = [torch.ones(1)] if p.sinks else []
        results = [query, key, value, *shared.values(), *beside]
    inputs = {"query": query, "key": key, "value": value, **shared}
    return ColumnSigns(
        inputs={name: placed(signs) for name, signs in inputs.items()},
        gradient=placed(output),
        results=tuple(one.numpy() for one in results),
    )


class InputValues:
    """Inputs, weights and, with a backward pass, the output's gradient of one problem.

    `order`: how they lie in memory (impls.input_order). `flipped`: whether the inputs have the
    other signs now; `columns`: those of single columns, if they were drawn. `gradient`: dense and
    random, unless somebody writes into it until `restore`. `only_flipped`: results of a backend are
    known with the other signs only. `turns`: of copies of keys and values, where each call reads
    others.
    """

    def __init__(
        self, problem: Problem, device: torch.device, seed: int, order: str = "heads"
    ) -> None:
        self.problem, self.device, self.seed, self.order = problem, device, seed, order
        self.tensors: Tensors = make_tensors(problem, device, seed, order)
        self.gradient: Tensor | None = make_gradient(problem, device, seed, order)
        self.flipped = self.only_flipped = False
        self.columns: ColumnSigns | None = None
        self.turns: Turns | None = None
        self._random = torch.Generator().manual_seed(secrets.randbits(63))  # not a backend's guess
        self._differ = False
        self._narrow: Tensor | None = None  # the queries that `widen` scaled
        self._digests = {name: _digest(tensor) for name, tensor in self._named()}
        self._versions = self._count_writes()

    @property
    def follows_columns(self) -> bool:
        """Whether the results of exact backends follow the signs of columns."""
        p = self.problem
        return p.scope == "core" and p.passes == "forward" and not p.latent

    def flip(self, flipped: bool, columns: ColumnSigns | None = None) -> None:
        """Set the signs, of whole tensors and of columns.

        If only the backward pass is measured, its graph holds the inputs, so the gradient of the
        output changes instead; with both passes all of them change.
        """
        for tensor, factor in self._factors(flipped, columns):
            multiply(tensor.data, factor)
        self.flipped, self.columns = flipped, columns

    def renew(self) -> None:
        """Give the inputs values that they never had before."""
        columns = draw(self.problem, self.device, self._random)
        self.flip(self.only_flipped or not self.flipped, columns)

    def repeat(self) -> None:
        """Give the inputs values that a call had before, whose results were checked: with one sign
        or the other, or, of a backward pass alone, of which one was never called, with that one.
        """
        either = self.problem.passes != "backward"
        flipped = bool(torch.randint(2, (), generator=self._random))
        self.flip(self.only_flipped or (either and flipped))

    def draw(self, seed: int) -> None:
        """Give the inputs other random numbers; from now on those are their values."""
        self.flip(False)
        draw_inputs(self.problem, self.tensors.inputs, seed)
        self._digests = {name: _digest(tensor) for name, tensor in self._named()}

    def scale(self, *, new: bool) -> None:
        """Multiply what a timed call reads by factors near 1 and -1, unlike those before if `new`,
        else by 1, which writes as much. Nobody knows the result.
        """
        backward = self.problem.passes == "backward"
        read = (self.gradient,) if backward else self.tensors.inputs
        for tensor in {id(one): one for one in read if one is not None}.values():
            *batch, _, width = tensor.shape
            ones = torch.ones(*batch, 1, width)  # of single columns
            sizes = ones + SCALE_BY * (torch.rand(ones.shape, generator=self._random) - 0.5)
            signs = 2 * torch.randint(2, ones.shape, generator=self._random) - 1
            plain = tensor.dtype in TORCH_DTYPE.values()
            factors = signs * sizes if plain else signs  # drawn in any case: caches are to be alike
            multiply(tensor.data, factors if new else ones)

    def flip_inputs(self) -> None:
        """Change the inputs' signs for a whole call, forward and backward; call it again after."""
        for tensor in self._signed_inputs():
            multiply(tensor.data, -1.0)

    def widen(self) -> None:
        """Scale the queries until scores reach WIDE_SCORE; `restore` ends it."""
        query = self.tensors.inputs.query
        self._narrow = query.detach().to("cpu", copy=True)  # a device may be full
        widen(self.problem, self.tensors.inputs, self.seed)

    def use_dense_gradient(self) -> None:
        """Give the output's gradient its first values again."""
        if self.gradient is not None:
            draw_gradient(self.gradient.data, self.seed + 1)

    def written(self) -> str:
        """The names of tensors that a backend wrote to in place, by torch's own count; cheap."""
        found = self._count_writes()
        names = [name for name, count in found.items() if count != self._versions[name]]
        self._versions = found
        return ", ".join(names)

    def written_to(self, *, thorough: bool = False) -> str:
        """A reason if a backend wrote, by torch's count of writes or also by all values."""
        names = self.written() or (self.changed() if thorough else "")
        return writes_to(names) if names else ""

    def changed(self) -> str:
        """The names of tensors that do not have their values, whoever changed them."""
        signs = self.flipped, self.columns
        self.flip(False)
        names = [
            name
            for name, tensor in self._named()
            if not all(map(torch.equal, _digest(tensor), self._digests[name]))
        ]
        self.flip(*signs)
        self._differ = self._differ or bool(names)
        return ", ".join(names)

    def restore(self) -> None:
        """Give every tensor its first values again, if `widen` or a backend changed one."""
        self.flip(False)
        if self._narrow is not None:
            self.tensors.inputs.query.data.copy_(self._narrow)
            self._narrow = None
        self.use_dense_gradient()
        if not (self._differ or self.changed()):
            return
        fresh = make_tensors(self.problem, self.device, self.seed, self.order)
        for (_, tensor), (_, values) in zip(self._named(), _named(fresh), strict=True):
            tensor.data.copy_(values.detach())
        self._differ = False
        self._versions = self._count_writes()

    def _factors(
        self, flipped: bool, columns: ColumnSigns | None
    ) -> Iterator[tuple[Tensor, Tensor | float]]:
        """The tensors that change, each once, and what turns their signs into the given ones."""
        drawn = [signs for signs in (self.columns, columns) if signs is not None]
        negated = -1.0 if flipped != self.flipped else 1.0
        inputs = self.tensors.inputs.named() if self.problem.passes != "backward" else {}
        signed = {id(tensor) for tensor in self._signed_inputs()}
        changed = {id(tensor): (name, tensor) for name, tensor in inputs.items()}
        for name, tensor in changed.values():
            factors = [signs.inputs[name] for signs in drawn if name in signs.inputs]
            yield from _product(tensor, factors, negated if id(tensor) in signed else 1.0)
        if self.gradient is not None:
            yield from _product(self.gradient, [signs.gradient for signs in drawn], negated)

    def _signed_inputs(self) -> Iterator[Tensor]:
        inputs = self.tensors.inputs
        signed = (inputs.key, inputs.value) if self.problem.scope == "core" else inputs
        prefix = [one for name, one in inputs.more.items() if name.startswith("prefix")]
        yield from {id(tensor): tensor for tensor in (*signed, *prefix)}.values()

    def _named(self) -> Iterator[tuple[str, Tensor]]:
        yield from _named(self.tensors)

    def _count_writes(self) -> dict[str, int]:
        return {name: tensor._version for name, tensor in self._named()}


def writes_to(names: str) -> str:
    return f"writes into its inputs ({names}), which it shares with other backends"


def _named(tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Each tensor once, under the name of its field."""
    seen: set[int] = set()
    weights = tensors.weights
    fields = [*tensors.inputs.named().items()]
    fields += (
        [(name, getattr(weights, name)) for name in weights.__dataclass_fields__] if weights else []
    )
    for name, tensor in fields:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def _product(
    tensor: Tensor, factors: list[Tensor], factor: float
) -> Iterator[tuple[Tensor, Tensor | float]]:
    """The tensor and the product of its factors; nothing if that is 1."""
    if factors:
        yield tensor, reduce(mul, factors, factor)
    elif factor != 1.0:
        yield tensor, factor


def _digest(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Sum and norm of each row: 8 bytes per row."""
    values = tensor.detach()
    values = values if values.dtype in TORCH_DTYPE.values() else values.float()  # codes, tables
    norms = torch.linalg.vector_norm(values, dim=-1, dtype=torch.float32)
    return values.sum(-1, dtype=torch.float32), norms
