"""The budget of memory is what was asked for, also where nothing is foreseen: of own backends."""

from pathlib import Path

from tests.contract.conftest import Attnbench, only_run, rows

TAKES = """
import torch

VARIANTS = ("32", "96")

def prepare(problem, inputs, weights, *, variant):
    def call():
        taken = torch.zeros(int(variant) << 20, dtype=torch.uint8)
        return torch.nn.functional.scaled_dot_product_attention(*inputs) + taken[0]

    return call
"""
SHAPE = ("--batch", 1, "--seq-len", 32, "--d-model", 16, "--heads", 1)
LIMIT = ("--set", "limits.memory_gib=0.0625", "--set", "measure=[memory]")


def test_of_64_mib_a_backend_gets_32_and_not_96(attnbench: Attnbench) -> None:
    Path("takes.py").write_text(TAKES)
    backends = ("--device", "cpu", "--backends", "takes:32,takes:96")
    attnbench("run", *backends, *SHAPE, *LIMIT, "--runs", "runs", env={"ATTNBENCH_BACKENDS": "."})
    found = {row["backend"]: (row["status"], row["reason"]) for row in rows(only_run(Path("runs")))}
    assert found["takes:32"] == ("ok", "")
    assert found["takes:96"][0] == "oom", found
    assert "64.0 MiB" in found["takes:96"][1]
