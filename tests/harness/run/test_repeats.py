"""Rows say whether a backend gives equal bits again, in its process and in others."""

from pathlib import Path

import pytest

from tests.harness.run.small_runs import axes, by_backend, run_in

BACKEND = """
import os, torch

def prepare(problem, inputs, weights):
    from attnbench.impls.layer import as_call

    numbers = torch.Generator().manual_seed({seed})

    def factors(like):  # of about one in two elements, by the last bit
        drawn = torch.randint(2, like.shape, generator=numbers, dtype=like.dtype)
        return 1 + 2.0**-23 * drawn

    fixed = factors(torch.empty({shape}))

    def attend(q, k, v):
        result = (q @ k.mT * problem.scale).softmax(-1) @ v
        return result * {factors}

    return as_call(problem, inputs, weights, attend)
"""
SHAPE = "problem.batch, problem.heads, problem.seq_len, problem.d_v"
SUSPECTS = {
    "steady": ("0", "fixed"),
    "noisy": ("os.getpid()", "factors(result)"),
    "own": ("os.getpid()", "fixed"),
}
PLAN = "plan={processes: 2, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"


@pytest.mark.long
def test_it_is_said_of_each_backend(tmp_path: Path) -> None:
    for name, (seed, factors) in SUSPECTS.items():
        text = BACKEND.format(seed=seed, factors=factors, shape=SHAPE)
        (tmp_path / f"{name}.py").write_text(text)
    flags = (*axes(",".join(SUSPECTS)), "--set", PLAN, "--device", "cpu")
    done = run_in(tmp_path, *flags, env={"ATTNBENCH_BACKENDS": str(tmp_path)})
    rows = by_backend(tmp_path / done.stdout.strip())
    assert {row["status"] for row in rows.values()} == {"ok"}
    fields = "repeats_exactly", "processes_repeat_exactly"
    assert {name: tuple(row[field] for field in fields) for name, row in rows.items()} == {
        "steady": (True, True),
        "noisy": (False, False),
        "own": (True, False),
    }
