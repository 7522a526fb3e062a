"""Linformer's projections in a small model that is trained with them, against exact attention.

A causal decoder cannot have them: a projected key is a mixture of all keys, later ones too. So the
model here sees the whole sequence, and can be asked only what its tokens do not tell: `copy` and
`text` ask for the next token, which it would read. In `recall` the pairs stand at the same places
of every sequence, where projections can learn to look; `two_relations` asks each token for others
a few places before it, which differ from token to token.

Keys and values are projected along N to a few rows by E and F, which all heads of the layer share
(Wang et al. 2020, arXiv:2006.04768). By kind:

    pooled               means of neighbours, never changed
    trained              parameters, which begin as these means
    trained_from_random  parameters, drawn as the paper draws them (normal, variance 1 / rank)
    random               the same, never changed

From means on, E and F take steps of a tenth of those of the other parameters. With steps as large
they move away from the means faster than the model learns to use them: `recall` with rank 12 for 48
tokens ended at 41 % right answers, with a tenth at 94 %, as with means alone. Random ones ended at
33 % with steps as large and 32 % with three times those (one seed, 300 steps).
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Generator, Tensor
from torch.nn.functional import linear

from ....impls.backend import Inputs
from ....impls.block import Decoder
from ....impls.layer import merge_heads, split_heads
from ....impls.linformer import core, pooled
from ....impls.multi_head_attention import MultiHeadAttention
from ....impls.problem import Problem
from .. import training
from ..findings import TrainedProjections
from ..synthetic_tasks import task as task_of
from ..training import Goal, Learning, held_out, one_thread

QUESTION = "What does a model learn with Linformer's projections in place of exact attention?"
PARTS = {"task": ("recall", "two_relations"), "seed_number": (0, 1, 2, 3, 4)}
PART_S = 40.0
KINDS = ("pooled", "trained", "trained_from_random", "random")
RATES = {"trained": 0.1, "trained_from_random": 1.0, "random": 1.0}
"""Of steps, over those of the other parameters."""
DRAWS = 104_729  # between the seeds of models and of projections, a prime
ATTENTIONS = ("exact", *KINDS)
TOKENS, RANK, HEADS = 48, 12, 4
GOALS = {"recall": Goal(0.98, 800), "two_relations": Goal(0.98, 800)}


def run(
    problem: Problem, device: torch.device, seed: int, *, task: str, seed_number: int
) -> Iterator[TrainedProjections]:
    """A finding per attention, one after the other, so that their times can be compared.

    `problem` is not used: the shapes are those of training.py.
    """
    with one_thread():
        for attention in ATTENTIONS:
            yield trained(task, attention, device, seed + seed_number)


def trained(name: str, attention: str, device: torch.device, seed: int) -> TrainedProjections:
    """One training: its curve, and what the model answers on new sequences."""
    of = task_of(name, TOKENS)
    model = training.decoder(of, HEADS, device, seed, tokens=TOKENS, causal=False)
    is_exact = attention == "exact"
    if not is_exact:
        project(model, attention, RANK, seed)
    rate = Learning(model, of, GOALS[name], seed)
    done = training.train(model, of, rate, seed)
    return TrainedProjections(
        **training.learnt(name, of, model, done, seed, held_out(of, seed, device), rate),
        attention=attention,
        rank=None if is_exact else RANK,
    )


class ProjectedAttention(MultiHeadAttention):
    """Of one length, that of `whole.problem`, whose weights it takes over."""

    def __init__(self, whole: MultiHeadAttention, kind: str, rank: int, seed: int) -> None:
        device, p = whole.weights().w_o.device, whole.problem
        super().__init__(p, whole.backend, device)
        self.load_state_dict(whole.state_dict())
        stride = -(-p.seq_len // rank)
        self.stride = stride if kind == "pooled" else 0
        if self.stride:
            return
        self.rate = RATES[kind]
        generator = Generator().manual_seed(DRAWS + seed)
        for name in ("e", "f"):
            if kind == "trained":
                start = pooled(torch.eye(p.seq_len), stride)  # [rank, n]
            else:
                start = torch.randn(rank, p.seq_len, generator=generator) * rank**-0.5
            # Adam's steps do not depend on the size of a gradient, so a factor sets their size.
            drawn = (start / self.rate).to(device)
            learns = kind != "random"
            self.register_parameter(name, torch.nn.Parameter(drawn, requires_grad=learns))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        need_weights: bool = False,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Output [batch, n, d_model]. There are no weights of single keys, and no mask."""
        if need_weights or mask is not None:
            raise ValueError("projected keys are mixtures of tokens: no weights of them, no mask")
        problem = replace(self.problem, batch=query.shape[0])
        w = self.weights()
        q, k, v = split_heads(problem, Inputs(query, key, value), w)
        o = core(q, self._projected(k, "e"), self._projected(v, "f"), problem)
        return linear(merge_heads(o), w.w_o, w.b_o), None

    def _projected(self, x: Tensor, name: str) -> Tensor:
        """[batch, heads, n, width] to [batch, heads, rank, width]."""
        if self.stride:
            return pooled(x, self.stride)
        projection: Tensor = getattr(self, name) * self.rate  # [rank, n]
        return projection @ x


def project(model: Decoder, kind: str, rank: int, seed: int) -> None:
    """Put projections into every block of a decoder that is not causal. Raises ValueError if it is:
    a projected key is a mixture of all keys, later ones too.
    """
    if model.problem.causal:
        raise ValueError("projected keys are mixtures of all tokens; wanted a model that sees all")
    for place, block in enumerate(model.own_blocks):
        block.attention = ProjectedAttention(block.attention, kind, rank, seed + place)
