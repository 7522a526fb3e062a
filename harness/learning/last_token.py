"""Layers that give a sequence's last token an output of all tokens: equally wide, equally called.

A layer gets the tokens one by one, [batch, WIDTH] each, so that autograd's graph tells them apart.
"""

from collections.abc import Callable, Sequence
from math import ceil, log, log2
from statistics import linear_regression
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.functional import scaled_dot_product_attention as sdpa

WIDTH, KERNEL = 32, 3
POSITION_SD = 0.02  # as in impls/block.py


class Attention(nn.Module):
    """One layer of one head, with learnt positions: only its last query matters."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.w_q, self.w_k, self.w_v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.position = nn.Parameter(POSITION_SD * torch.randn(length, WIDTH))

    def forward(self, tokens: Sequence[Tensor]) -> Tensor:
        x = torch.stack([*tokens], 1) + self.position
        return sdpa(self.w_q(x[:, -1:]), self.w_k(x), self.w_v(x))[:, 0]


class Recurrent(nn.Module):
    """Of a cell that torch.nn has. `radius`: the spectral radius that the recurrent weights, which
    are one matrix, are scaled to; None: as torch draws them.
    """

    def __init__(
        self, cell: type[nn.GRUCell | nn.LSTMCell | nn.RNNCell], radius: float | None = None
    ) -> None:
        super().__init__()
        self.cell = cell(WIDTH, WIDTH)
        if radius is not None:
            with torch.no_grad():
                drawn = self.cell.weight_hh
                drawn *= radius / torch.linalg.eigvals(drawn).abs().max()

    def forward(self, tokens: Sequence[Tensor]) -> Tensor:
        state: Any = None
        for token in tokens:
            state = self.cell(token, state)
        output: Tensor = state[0] if isinstance(state, tuple) else state  # an LSTM has two
        return output


class Convolutions(nn.Module):
    """Causal convolutions with ReLU and such dilations."""

    def __init__(self, dilations: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv1d(WIDTH, WIDTH, KERNEL, dilation=one) for one in dilations
        )
        self.reaches = [one * (KERNEL - 1) for one in dilations]

    def forward(self, tokens: Sequence[Tensor]) -> Tensor:
        x = torch.stack([*tokens], 2)  # [batch, width, n]
        for reach, one in zip(self.reaches, self.layers, strict=True):
            x = torch.relu(one(pad(x, (reach, 0))))
        return x[:, :, -1]


LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "attention": Attention,
    "gru": lambda length: Recurrent(nn.GRUCell),
    "lstm": lambda length: Recurrent(nn.LSTMCell),
    "rnn": lambda length: Recurrent(nn.RNNCell),
    "convolutions": lambda length: Convolutions([1] * ceil((length - 1) / (KERNEL - 1))),
    "dilated convolutions": lambda length: Convolutions(
        [KERNEL**layer for layer in range(ceil(log2(length) / log2(KERNEL)))]
    ),
}
"""By the number of tokens; convolutions are as many as reach the first one."""


def fade(norms: dict[int, float]) -> float | None:
    """Slope of ln norm over the distance in tokens, by least squares: 0 keeps, negative fades.

    None of fewer than three norms above 0.
    """
    known = {distance: log(norm) for distance, norm in norms.items() if norm > 0}
    return linear_regression([*known], [*known.values()]).slope if len(known) > 2 else None
