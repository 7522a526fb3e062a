"""The study of generation: its gate, its counts, and what it times."""

import pytest
import torch

from attnbench.harness.rows.findings import Finding
from attnbench.harness.studies import generation
from attnbench.impls import Decoder, Problem
from attnbench.impls.modules.multi_head_attention import MultiHeadAttention

CPU = torch.device("cpu")
SHAPE = Problem(batch=1, seq_len=33, d_model=16, heads=2, causal=True)
PROMPT = torch.zeros(1, 1, dtype=torch.int64)


class Watch:
    """Other work wanted the same cores, all the time."""

    def before(self) -> None: ...

    def after(self) -> dict[str, float]:
        return {"wall_s": 1.0, "waited_s": 0.5}


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    problem = Problem(batch=1, seq_len=1, kv_seq_len=32, d_model=16, heads=4, kv_heads=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation, "conditions_for", lambda device: Watch())
        return list(generation.run(problem, CPU, 0, process=1))


@pytest.mark.long
def test_every_exact_backend_that_can_is_timed_at_every_number_of_tokens(findings) -> None:
    assert {one.backend for one in findings} >= {"naive", "fused", "sdpa", "sdpa:math"}
    assert not {one.backend for one in findings} & {"torch_mha", "rnn", "linformer", "compiled"}
    assert {one.tokens for one in findings} == {8, 16, 32}
    for one in findings:
        assert one.complaint == ""
        assert one.error_ratio <= 2
        assert one.cached_step_ms > 0
        assert one.full_total_ms > one.full_step_ms
        assert one.contended_blocks == one.blocks == 4


def test_bytes_and_flops_are_counted(findings) -> None:
    last = findings[-1]
    assert last.cache_bytes == 32 * 2 * (4 + 4) * 4  # tokens, key and value heads, widths, fp32
    # A step without a cache computes as much for every token as with one for the newest.
    assert last.full_step_flops == last.cached_total_flops
    assert last.full_total_flops > last.cached_total_flops > last.cached_step_flops


def test_steps_that_forget_a_cached_token_do_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    extend = MultiHeadAttention.extend

    def forgetful(self, x, keys, values, length):
        if length == 20:
            keys[:, :, 3] = 0
        return extend(self, x, keys, values, length)

    monkeypatch.setattr(MultiHeadAttention, "extend", forgetful)
    _, complaint = generation.gate(Decoder(SHAPE, 64, 1, seed=0), PROMPT, 32)
    assert complaint.startswith("cached steps are not the full causal pass: ")
    found = list(
        generation.run(Problem(batch=1, seq_len=32, d_model=16, heads=2), CPU, 0, process=1)
    )
    assert all(one.complaint and one["full_step_ms"] is one["blocks"] is None for one in found)
