"""The training study: as fast as the same model written plainly, in ten minutes, and repeatable."""

import json
import math
import subprocess
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from attnbench.harness.cli.dry_run import DryRun
from attnbench.harness.learning import training
from attnbench.harness.learning.synthetic_tasks import TOKENS, UNSCORED, Batch, task
from attnbench.harness.scenario import load
from attnbench.harness.scenario.selection import Selection
from attnbench.harness.stats.intervals import ratio_interval
from attnbench.harness.studies import parts_of
from attnbench.impls.block import Block, Decoder
from tests.bench.conftest import rows_of
from tests.conftest import command_line, environment

SLOWER_RATIO = 1.05
BLOCKS, STEPS = 60, 10
MOST_S = 600
NEAR = 1e-6
CPU = torch.device("cpu")


class PlainAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.register_buffer("ahead", torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        batch, n, width = x.shape
        q, k, v = (
            part(x).view(batch, n, self.heads, -1).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        scores = q @ k.mT / math.sqrt(width // self.heads)
        p = scores.masked_fill(self.ahead, float("-inf")).softmax(-1)
        return self.o((p @ v).transpose(1, 2).flatten(2))


class PlainDecoder(nn.Module):
    """As textbooks write it: the decoder of impls/block.py without a choice of backends."""

    def __init__(self, vocabulary: int, depth: int, heads: int) -> None:
        super().__init__()
        width, inner = training.D_MODEL, training.D_FF
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(TOKENS, width)
        self.blocks = nn.ModuleList(
            nn.ModuleList(
                (
                    nn.LayerNorm(width),
                    PlainAttention(width, heads),
                    nn.LayerNorm(width),
                    nn.Linear(width, inner),
                    nn.Linear(inner, width),
                )
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.logits = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.position.weight[: tokens.shape[1]]
        for norm_1, attention, norm_2, up, down in self.blocks:
            x = x + attention(norm_1(x))
            x = x + down(gelu(up(norm_2(x))))
        return self.logits(self.norm(x))


def plain_like(model: Decoder, vocabulary: int, depth: int, heads: int) -> PlainDecoder:
    """With the same weights."""
    plain = PlainDecoder(vocabulary, depth, heads)
    pairs = [
        (plain.embedding.weight, model.embedding.weight),
        (plain.position.weight, model.position.weight),
        (plain.logits.weight, model.logits.weight),
    ]
    for mine, theirs in zip(plain.blocks, model.blocks, strict=True):
        assert isinstance(theirs, Block)
        w, attention = theirs.attention.weights(), mine[1]
        pairs += [
            *zip(mine[0].parameters(), theirs.norm_1.parameters(), strict=True),
            (attention.q.weight, w.w_q), (attention.q.bias, w.b_q),
            (attention.k.weight, w.w_k), (attention.k.bias, w.b_k),
            (attention.v.weight, w.w_v), (attention.v.bias, w.b_v),
            (attention.o.weight, w.w_o), (attention.o.bias, w.b_o),
            *zip(mine[2].parameters(), theirs.norm_2.parameters(), strict=True),
            *zip(mine[3].parameters(), theirs.up.parameters(), strict=True),
            *zip(mine[4].parameters(), theirs.down.parameters(), strict=True),
        ]  # fmt: skip
    with torch.no_grad():
        for mine, theirs in pairs:
            mine.copy_(theirs)
    return plain


def test_a_step_is_as_fast_as_that_of_the_same_model_written_plainly() -> None:
    """Blocks of both in turns, and their paired ratio; they compute the same."""
    of, heads = task("copy"), 8
    ours = training.decoder(of, heads, CPU, 0)
    plain = plain_like(ours, of.vocabulary, of.depth, heads)
    batch = of.draw(torch.Generator().manual_seed(0), training.BATCH)
    with training.one_thread():
        torch.testing.assert_close(plain(batch.tokens), ours(batch.tokens)[0], atol=1e-5, rtol=1e-4)
        optimizers = [training.optimizer_of(model) for model in (ours, plain)]

        def plain_step(batch: Batch) -> Tensor:
            logits = plain(batch.tokens)
            loss = cross_entropy(
                logits.flatten(0, 1), batch.targets.flatten(), ignore_index=UNSCORED
            )
            optimizers[1].zero_grad()
            loss.backward()
            optimizers[1].step()
            return loss.detach()

        steps = (
            lambda: training.training_step(ours, batch, optimizers[0]),
            lambda: plain_step(batch),
        )
        times: list[list[list[float]]] = [[], []]
        for _ in range(BLOCKS):
            for place, step in enumerate(steps):
                begun = time.perf_counter()
                for _ in range(STEPS):
                    step()
                times[place].append([(time.perf_counter() - begun) / STEPS * 1e3])
    found = ratio_interval([times[0]], [times[1]])
    print(f"ours over plain: {found.value:.3f} ({found.low:.3f} to {found.high:.3f})")
    assert found.low <= SLOWER_RATIO, found


def test_equal_seeds_give_equal_losses_in_another_process(tmp_path: Path) -> None:
    part = ("--only", "trained_heads-majority-heads8")
    losses = []
    for name in ("one", "other"):
        rows = rows_of("run", "what_heads_learn", *part, out=tmp_path / name)
        (row,) = [row for row in rows if row["kind"] == "study"]
        losses.append([loss for one in row["findings"] for loss in one["step_loss_nats"]])
    assert len(losses[0]) == len(losses[1])
    assert max(abs(a - b) for a, b in zip(*losses, strict=True)) <= NEAR


def test_the_shipped_study_is_planned_within_ten_minutes() -> None:
    """By what `--dry-run` says: cases by this machine's pace, parts as declared."""
    dry = DryRun(load("what_heads_learn", ["device=cpu"]), Selection())
    found = dry.forecast()
    parts_s = sum(found.expected[one.id].about_s for one in dry.selected.studies)
    print(f"planned: {found.about_s:.0f} s, of which {parts_s:.0f} s for trainings")
    assert len(dry.selected.studies) == len(parts_of("trained_heads"))
    assert parts_s < found.about_s <= MOST_S


def test_the_shipped_study_takes_ten_minutes_at_most(tmp_path: Path) -> None:
    """On two idle cores; rows show what each part took."""
    command = command_line(
        "run", "what_heads_learn", "--device", "cpu", "--out", tmp_path, "--quiet"
    )
    begun = time.monotonic()
    env = {**environment(), "OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    taken_s = time.monotonic() - begun
    lines = (Path(done.stdout.strip()) / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert {row["status"] for row in rows} == {"ok"}
    print(f"{taken_s:.0f} s")
    assert taken_s <= MOST_S
