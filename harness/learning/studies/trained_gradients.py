"""How far back gradients reach before and after training, where one earlier token is the answer.

One token of a sequence is marked, and the last one asks for its symbol. Attention, recurrent layers
and causal convolutions are trained on it, equally wide, on equal batches. Then the gradient of the
right answer's logit by the embedding of the marked token, over its distance from the last: the same
quantity at first weights and at trained ones. A finding is one seed's training of one model.

A plain stack of convolutions that reaches the first token has 16 layers and learns nothing in these
steps: it answers no better than by chance, and its gradients say nothing. Nor does a plain RNN:
21 and 25 % of its answers were right with two seeds, after a GRU's and an LSTM's 100 %.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from ....impls.problem import Problem
from ..findings import TrainedGradients
from ..last_token import LAYERS, WIDTH, fade
from ..synthetic_tasks import Batch
from ..training import cosine, fit, one_thread

QUESTION = "How does the gradient over distance change by training?"
PARTS = {"model": ("attention", "gru", "lstm", "dilated convolutions")}
PART_S = 12.0
TOKENS, SYMBOLS = 32, 8
SEEDS, STEPS, BATCH = 5, 400, 32
JUDGED = 32  # sequences per distance
DRAWS = 7_907  # between the seeds of models, batches and judged sequences, a prime
RECURRENT: dict[str, Callable[..., nn.Module]] = {"gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """All steps in one call, which is twice as fast; no path through it is counted here."""

    def __init__(self, layer: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.layer = layer(WIDTH, WIDTH, batch_first=True)

    def forward(self, tokens: Sequence[Tensor]) -> Tensor:
        found: Tensor = self.layer(torch.stack([*tokens], 1))[0][:, -1]
        return found


class Asked(nn.Module):
    """Logits [batch, SYMBOLS] of the last token, from embedded tokens [batch, n, WIDTH]."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2 * SYMBOLS + 1, WIDTH)  # plain, marked; and the question
        self.layer = layer
        self.logits = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.logits(self.layer(x.unbind(1)))
        return found


def run(
    problem: Problem, device: torch.device, seed: int, *, model: str
) -> Iterator[TrainedGradients]:
    """`problem` is not used, and the device is the CPU: the shapes are those above."""
    for number in range(SEEDS):
        with one_thread(), torch.random.fork_rng([]):
            yield trained(model, seed + number)


def trained(name: str, seed: int) -> TrainedGradients:
    torch.manual_seed(seed)
    cell = RECURRENT.get(name)
    model = Asked(Recurrent(cell) if cell else LAYERS[name](TOKENS))
    before = gradient_norms(model, seed)
    losses = train(model, seed)
    after = gradient_norms(model, seed)
    tokens, places = judged(seed)
    with torch.no_grad():
        logits = model(model.embedding(tokens))
    wanted = answers(tokens, places)
    return TrainedGradients(
        model=name,
        train_seed=seed,
        seq_len=TOKENS,
        width=WIDTH,
        batch=BATCH,
        steps=STEPS,
        parameter_count=sum(one.numel() for one in model.parameters()),
        loss_nats=float(cross_entropy(logits, wanted)),
        accuracy_ratio=float((logits.argmax(-1) == wanted).double().mean()),
        step_loss_nats=losses,
        gradient_norms_before=before,
        gradient_norms_after=after,
        fade_per_token_before=fade(dict(enumerate(before, 1))),
        fade_per_token_after=fade(dict(enumerate(after, 1))),
    )


def train(model: Asked, seed: int) -> list[float]:
    """The loss in nats before each step."""
    generator = Generator().manual_seed(DRAWS + seed)

    def draw() -> Batch:
        places = torch.randint(TOKENS - 1, (BATCH,), generator=generator)
        tokens = drawn(generator, places)
        return Batch(tokens, answers(tokens, places))

    def loss(batch: Batch) -> Tensor:
        return cross_entropy(model(model.embedding(batch.tokens)), batch.targets)

    return fit(model, cosine(STEPS), draw, loss).losses


def drawn(generator: Generator, places: Tensor) -> Tensor:
    """Tokens [batch, TOKENS]: symbols, the one at its place marked, and in the end the question."""
    tokens = torch.randint(SYMBOLS, (len(places), TOKENS), generator=generator)
    tokens[torch.arange(len(places)), places] += SYMBOLS
    tokens[:, -1] = 2 * SYMBOLS
    return tokens


def answers(tokens: Tensor, places: Tensor) -> Tensor:
    return tokens.gather(1, places[:, None])[:, 0] - SYMBOLS


def judged(seed: int) -> tuple[Tensor, Tensor]:
    """Sequences that were not trained on, but by chance: the same ones with the marked token at
    each place in turn, so that distances differ in nothing else.
    """
    generator = Generator().manual_seed(2 * DRAWS + seed)
    others = torch.randint(SYMBOLS, (JUDGED, TOKENS - 2), generator=generator)
    marked = torch.randint(SYMBOLS, (JUDGED, 1), generator=generator) + SYMBOLS
    asked = torch.full((JUDGED, 1), 2 * SYMBOLS)
    tokens = [
        torch.cat([others[:, :place], marked, others[:, place:], asked], 1)
        for place in range(TOKENS - 1)
    ]
    return torch.cat(tokens), torch.arange(TOKENS - 1).repeat_interleave(JUDGED)


def gradient_norms(model: Asked, seed: int) -> list[float]:
    """Of d logit of the right answer / d x of the marked token, at distances 1, 2, ... from the
    question: geometric means over sequences; 0 if one is 0.
    """
    tokens, places = judged(seed)
    x = model.embedding(tokens).detach().requires_grad_()
    right = model(x).gather(1, answers(tokens, places)[:, None]).sum()
    (grad,) = torch.autograd.grad(right, x)
    norms = grad[torch.arange(len(places)), places].double().norm(dim=-1).view(-1, JUDGED)
    return [float(one) for one in norms.log().mean(-1).exp().flip(0)]
