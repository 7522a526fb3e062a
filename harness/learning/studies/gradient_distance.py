"""How far gradients reach back through attention, recurrent layers and convolutions, by norm and by
path; and through a plain recurrent layer by the spectral radius of its recurrent weights.

The norm of d loss / d x_t over the distance from the last token, whose output is the loss; random
first weights, as torch draws them, and the mean of all values. Exact: gradients that are 0, and the
shortest and longest chain of operations from the loss to the first token in autograd's graph, which
are the path length and the sequential steps of Vaswani et al. 2017, table 1.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from graphlib import TopologicalSorter
from statistics import geometric_mean

import torch
from torch import Tensor, nn

from ....impls.problem import Problem
from ...studies._repeats import mean_fields
from ..findings import GradientDistance
from ..last_token import LAYERS, WIDTH, Recurrent, fade

QUESTION = "How far back do gradients reach, and over how many steps?"
LENGTHS = (8, 16, 32, 64)
REPEATS = 12
RADII = (0.5, 0.9, 1.1, 1.5, 2.0, 3.0)
FADE_FROM = 1  # tokens: the last one's own output is no distance
FIT_MOST = 32  # tokens: beyond, an exponential fade is near the smallest numbers of a dtype


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[GradientDistance]:
    """One finding per model and length, and per spectral radius at the longest length."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        for name, layer in LAYERS.items():
            for length in LENGTHS:
                yield _found(name, partial(layer, length), length)
        for radius in RADII:
            layer = partial(Recurrent, nn.RNNCell, radius)
            name = f"rnn, spectral radius {radius:g}"
            yield _found(name, layer, LENGTHS[-1], spectral_radius=radius)


def _found(name: str, layer: Callable[[], nn.Module], length: int, **of: float) -> GradientDistance:
    """Norms are geometric means over draws.

    `fitted_tokens`: the longest distance that `fade_per_token` is fitted to.
    """
    drawn = [norms(layer().double(), length) for _ in range(REPEATS)]
    reach = max(distance for distance, norm in enumerate(drawn[0]) if norm > 0)
    fitted = range(FADE_FROM, min(FIT_MOST, reach) + 1)
    fades = [fade({at: one[at] for at in fitted}) or 0.0 for one in drawn]
    shortest, longest = path_steps(layer().double(), length)
    return GradientDistance(
        model=name,
        seq_len=length,
        width=WIDTH,
        reach_tokens=reach,
        shortest_path_steps=shortest,
        longest_path_steps=longest,
        gradient_norms=[
            geometric_mean(some) if min(some) > 0 else 0.0 for some in zip(*drawn, strict=True)
        ],
        fitted_tokens=fitted[-1],
        **of,
        **mean_fields("fade_per_token", fades),
    )


def _tokens(length: int) -> list[Tensor]:
    return [torch.randn(1, WIDTH, dtype=torch.float64, requires_grad=True) for _ in range(length)]


def norms(model: nn.Module, length: int) -> list[float]:
    """Of d loss / d x_t, at distances 0, 1, ... from the last token."""
    tokens = _tokens(length)
    loss = (model(tokens) * torch.randn(WIDTH, dtype=torch.float64)).sum()
    grads = torch.autograd.grad(loss, tokens, allow_unused=True)
    return [0.0 if grad is None else float(grad.norm()) for grad in reversed(grads)]


def path_steps(model: nn.Module, length: int) -> tuple[int | None, int | None]:
    """The fewest and the most operations between the loss and the first token; None: no path."""
    tokens = _tokens(length)
    root = model(tokens).sum().grad_fn
    first = tokens[0].view_as(tokens[0]).grad_fn
    assert root is not None
    assert first is not None
    leaf = first.next_functions[0][0]
    assert leaf is not None
    fewest, most, after = {root: 0}, {root: 0}, {}
    waiting = deque([root])
    while waiting:  # breadth first: the first visit is the shortest way
        node = waiting.popleft()
        after[node] = [one for one, _ in node.next_functions if one is not None]
        for one in after[node]:
            if one not in fewest:
                fewest[one] = fewest[node] + 1
                waiting.append(one)
    for node in reversed([*TopologicalSorter(after).static_order()]):  # before what it leads to
        for one in after[node]:
            most[one] = max(most.get(one, 0), most[node] + 1)
    return fewest.get(leaf), most.get(leaf)
