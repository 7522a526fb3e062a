"""harness/measure/pace.py: rates that this machine can have, without changing it for cases."""

import torch

from attnbench.harness.measure.pace import PRODUCTS, SCORES, pace

CPU = torch.device("cpu")


def test_there_is_a_rate_for_each_dtype_and_for_scores() -> None:
    found = pace(CPU, ["fp32", "bf16"])
    assert set(found["flops_per_s"]) == {"fp32", "bf16"}
    assert all(1e7 < rate < 1e15 for rate in found["flops_per_s"].values())
    assert 1e6 < found["scores_per_s"] < 1e14
    assert 1e7 < found["bytes_per_s"] < 1e14


def test_a_dtype_that_cannot_be_multiplied_is_left_out(monkeypatch) -> None:
    def refuse(*_: object) -> float:
        raise RuntimeError("not implemented for 'Half'")

    monkeypatch.setattr("attnbench.harness.measure.pace._flops_per_s", refuse)
    assert pace(CPU, ["fp16"])["flops_per_s"] == {}


def test_no_tensor_is_larger_than_what_a_worker_frees_when_it_starts() -> None:
    """serve.warm_pools frees 2 x 4 scores of 256 x 256 in fp32: 2 MiB."""
    rows, columns = SCORES["cpu"]
    assert 4 * max(*(n**2 for n in PRODUCTS["cpu"]), rows * columns) <= 2 * 4 * 256 * 256 * 4
