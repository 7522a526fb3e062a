"""How near the predicted peak is to the measured one, on the CPU, at sizes that people run."""

import pytest
import torch

from attnbench.harness.measure.meta_memory import meta_peak_bytes
from attnbench.impls import Problem, load
from tests.harness.measure.test_peak_memory import weighed

CPU = torch.device("cpu")
LENGTHS = (512, 1024, 2048)
FORWARD_BYTES, TRAINING_BYTES = 16, 64
FLASH_RATIO = 0.001
HEADS = 8


def problem(seq_len, passes):
    return Problem(batch=1, seq_len=seq_len, d_model=512, heads=HEADS, passes=passes)


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize("seq_len", LENGTHS)
@pytest.mark.parametrize("name", ["naive", "fused"])
def test_plain_backends_peak_where_formula_and_meta_device_say(benchmark, name, seq_len, passes):
    shape = problem(seq_len, passes)
    measured = benchmark.pedantic(weighed, args=(name, shape), rounds=1).peak_bytes
    formula, (meta, _) = (
        load(name).peak_bytes(shape, CPU, torch.get_num_threads()),
        meta_peak_bytes(shape, load(name), CPU),
    )
    benchmark.extra_info.update(measured_bytes=measured, formula_bytes=formula, meta_bytes=meta)
    allowed = TRAINING_BYTES if shape.backward else FORWARD_BYTES
    assert abs(measured - formula) <= allowed
    assert abs(measured - meta) <= allowed + (8 * HEADS if shape.backward else 0)


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize("seq_len", LENGTHS)
def test_the_flash_kernel_peaks_where_its_formula_says(benchmark, seq_len, passes):
    shape = problem(seq_len, passes)
    measured = benchmark.pedantic(weighed, args=("sdpa", shape), rounds=1).peak_bytes
    formula = load("sdpa").peak_bytes(shape, CPU, torch.get_num_threads())
    benchmark.extra_info.update(measured_bytes=measured, formula_bytes=formula)
    assert abs(measured - formula) <= FLASH_RATIO * measured
