"""How far gradients reach back through attention, a GRU and convolutions, by norm and by path.

The norm of d loss / d x_t over the distance from the last token, whose output is the loss; random
first weights, as torch draws them, and the mean of all values. Exact: gradients that are 0, and the
shortest and longest chain of operations from the loss to the first token in autograd's graph, which
are the path length and the sequential steps of Vaswani et al. 2017, table 1.
"""

from collections import deque
from collections.abc import Callable, Iterator
from math import ceil, log, log2
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as sdpa

from ....impls.problem import Problem
from ...studies._repeats import mean_fields
from ..findings import GradientDistance

QUESTION = "How far back do gradients reach, and over how many steps?"
WIDTH, KERNEL = 32, 3
LENGTHS = (8, 16, 32, 64)
REPEATS = 12
FADE_FROM = 1  # tokens: the last one's own output is no distance
FIT_MOST = 32  # tokens: beyond, an exponential fade is near the smallest numbers of a dtype

Model = Callable[[list[Tensor]], Tensor]
"""From tokens, a tensor [width] each, to the last output."""


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[GradientDistance]:
    """One finding per model and length; norms are geometric means over draws.

    `fitted_tokens`: the longest distance that `fade_per_token` is fitted to.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        for name, make in MODELS.items():
            for length in LENGTHS:
                drawn = [norms(make(length), length) for _ in range(REPEATS)]
                reached = [distance for distance in range(length) if drawn[0][distance] > 0]
                slopes = [slope(one, reached) for one in drawn]
                shortest, longest = path_steps(make(length), length)
                yield GradientDistance(
                    model=name,
                    seq_len=length,
                    width=WIDTH,
                    reach_tokens=max(reached),
                    shortest_path_steps=shortest,
                    longest_path_steps=longest,
                    gradient_norms=[
                        _geometric([one[distance] for one in drawn]) for distance in range(length)
                    ],
                    fitted_tokens=min(FIT_MOST, max(reached)),
                    **mean_fields("fade_per_token", slopes),
                )


def norms(model: Model, length: int) -> list[float]:
    """Of d loss / d x_t, at distances 0, 1, ... from the last token."""
    tokens = [torch.randn(WIDTH, dtype=torch.float64, requires_grad=True) for _ in range(length)]
    loss = (model(tokens) * torch.randn(WIDTH, dtype=torch.float64)).sum()
    grads = torch.autograd.grad(loss, tokens, allow_unused=True)
    return [0.0 if grad is None else float(grad.norm()) for grad in reversed(grads)]


def slope(found: list[float], reached: list[int]) -> float:
    """Of ln norm over the distance, by least squares; 0 keeps, negative fades."""
    at = [one for one in reached if FADE_FROM <= one <= FIT_MOST]
    if len(at) < 3:
        return 0.0
    x = torch.tensor(at, dtype=torch.float64)
    y = torch.tensor([log(found[one]) for one in at], dtype=torch.float64)
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x * x).sum())


def path_steps(model: Model, length: int) -> tuple[int | None, int | None]:
    """The fewest and the most operations between the loss and the first token; None: no path."""
    tokens = [torch.randn(WIDTH, dtype=torch.float64, requires_grad=True) for _ in range(length)]
    root = model(tokens).sum().grad_fn
    first = tokens[0].view_as(tokens[0]).grad_fn
    assert root is not None
    assert first is not None
    leaf = first.next_functions[0][0]
    assert leaf is not None
    fewest, most = {root: 0}, {root: 0}
    waiting = deque([root])
    while waiting:  # breadth first: the first visit is the shortest way
        node = waiting.popleft()
        for after, _ in node.next_functions:
            if after is not None and after not in fewest:
                fewest[after] = fewest[node] + 1
                waiting.append(after)
    for node in _ordered(root):
        for after, _ in node.next_functions:
            if after is not None:
                most[after] = max(most.get(after, 0), most[node] + 1)
    return fewest.get(leaf), most.get(leaf)


def _ordered(root: Any) -> list[Any]:
    """Each node before those that it leads to."""
    found: list[Any] = []
    seen: set[Any] = set()
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            waiting.append((node, True))
            waiting += [(after, False) for after, _ in node.next_functions if after is not None]
    return found[::-1]


# ---- the models ----------------------------------------------------------------------------------


def _attention(length: int) -> Model:
    """One causal layer of one head: only its last query matters."""
    w_q, w_k, w_v = (nn.Linear(WIDTH, WIDTH, dtype=torch.float64) for _ in range(3))

    def last(tokens: list[Tensor]) -> Tensor:
        x = torch.stack(tokens)[None]  # [1, n, width]
        return sdpa(w_q(x[:, -1:]), w_k(x), w_v(x))[0, -1]

    return last


def _gru(length: int) -> Model:
    cell = nn.GRUCell(WIDTH, WIDTH, dtype=torch.float64)

    def last(tokens: list[Tensor]) -> Tensor:
        state = torch.zeros(1, WIDTH, dtype=torch.float64)
        for token in tokens:
            state = cell(token[None], state)
        return state[0]

    return last


def _convolutions(
    layers: Callable[[int], int], dilation: Callable[[int], int]
) -> Callable[[int], Model]:
    """Causal convolutions with ReLU, as many as reach the first token."""

    def make(length: int) -> Model:
        stack = [
            nn.Conv1d(WIDTH, WIDTH, KERNEL, dilation=dilation(one), dtype=torch.float64)
            for one in range(layers(length))
        ]

        def last(tokens: list[Tensor]) -> Tensor:
            x = torch.stack(tokens, 1)[None]  # [1, width, n]
            for number, one in enumerate(stack):
                reach = dilation(number) * (KERNEL - 1)
                x = torch.relu(one(nn.functional.pad(x, (reach, 0))))
            return x[0, :, -1]

        return last

    return make


def _geometric(values: list[float]) -> float:
    """The geometric mean; 0 if one is 0."""
    if min(values) == 0:
        return 0.0
    return float(torch.tensor(values, dtype=torch.float64).log().mean().exp())


MODELS: dict[str, Callable[[int], Model]] = {
    "attention": _attention,
    "gru": _gru,
    "convolutions": _convolutions(
        lambda length: ceil((length - 1) / (KERNEL - 1)), lambda layer: 1
    ),
    "dilated convolutions": _convolutions(
        lambda length: ceil(log2(length) / log2(KERNEL)), lambda layer: KERNEL**layer
    ),
}
