"""How far back gradients reach through attention and through recurrent layers.

The norm of d loss / d x_t over the distance from the last token, whose output is the loss; random
first weights, as torch draws them. A recurrent layer multiplies a gradient by its weights at every
step (Bengio, Simard and Frasconi 1994), attention looks at every token directly. fade_per_token is
the slope of the norm's logarithm.
"""

from collections.abc import Callable, Iterator
from math import log
from statistics import geometric_mean, linear_regression

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as sdpa

from ...impls.problem import Problem
from ..rows.findings import Finding
from ._shared import mean_fields

QUESTION = "How fast does a token's gradient fade with distance?"
TOKENS, WIDTH = 64, 32
REPEATS = 12
FIT_MOST = 32  # tokens: beyond, an exponential fade is near the smallest numbers of a dtype


class Attention(nn.Module):
    """One layer of one head, called as torch's recurrent layers are."""

    def __init__(self) -> None:
        super().__init__()
        self.w_q, self.w_k, self.w_v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return sdpa(self.w_q(x[-1:]), self.w_k(x), self.w_v(x)), None


MODELS: dict[str, Callable[[], nn.Module]] = {
    "attention": Attention,
    "gru": lambda: nn.GRU(WIDTH, WIDTH),
    "lstm": lambda: nn.LSTM(WIDTH, WIDTH),
    "rnn": lambda: nn.RNN(WIDTH, WIDTH),
}


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """A finding per model. `problem` is not used, and the device is the CPU."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        for name, model in MODELS.items():
            drawn = [norms(model().double()) for _ in range(REPEATS)]
            yield Finding(
                model=name,
                seq_len=TOKENS,
                width=WIDTH,
                gradient_norms=[geometric_mean(some) for some in zip(*drawn, strict=True)],
                fitted_tokens=FIT_MOST,
                **mean_fields("fade_per_token", [fade(one) for one in drawn]),
            )


def norms(model: nn.Module) -> list[float]:
    """At distances 0, 1, ... from the last token."""
    x = torch.randn(TOKENS, WIDTH, dtype=torch.float64, requires_grad=True)
    loss = (model(x)[0][-1] * torch.randn(WIDTH, dtype=torch.float64)).sum()
    found: list[float] = torch.autograd.grad(loss, x)[0].norm(dim=-1).flip(0).tolist()
    return found


def fade(norms: list[float]) -> float:
    """Slope of ln norm over the distance in tokens, by least squares, without distance 0."""
    distances = range(1, FIT_MOST + 1)
    return linear_regression(distances, [log(norms[one]) for one in distances]).slope
