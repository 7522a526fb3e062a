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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("repeats")
    for name, (seed, factors) in SUSPECTS.items():
        text = BACKEND.format(seed=seed, factors=factors, shape=SHAPE)
        (found / f"{name}.py").write_text(text)
    return found


def repeats(folder: Path, *changes: str) -> dict[str, tuple[bool | None, bool | None]]:
    env = {"ATTNBENCH_BACKENDS": str(folder)}
    given = [part for one in (PLAN, *changes) for part in ("--set", one)]
    done = run_in(folder, *axes(",".join(SUSPECTS)), *given, "--device", "cpu", env=env)
    rows = by_backend(folder / done.stdout.strip())
    assert {row["status"] for row in rows.values()} == {"ok"}
    fields = "repeats_exactly", "processes_repeat_exactly"
    return {name: tuple(row[field] for field in fields) for name, row in rows.items()}


@pytest.mark.long
def test_it_is_said_of_each_backend(folder: Path) -> None:
    assert repeats(folder) == {
        "steady": (True, True),
        "noisy": (False, False),
        "own": (True, False),
    }


@pytest.mark.long
def test_without_a_second_call_nothing_is_said(folder: Path) -> None:
    assert repeats(folder, "measure=[memory]") == dict.fromkeys(SUSPECTS, (None, None))
