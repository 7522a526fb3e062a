"""When a case has enough blocks."""

import pytest

from attnbench.harness.blocks import Sampling, calls_per_block
from attnbench.harness.scenario import Plan


def plan(**fields):
    return Plan(**{"processes": 1, "min_blocks": 6, "max_blocks": 11, "precision_ratio": 0.05, "budget_s": 2.0, **fields})


def feed(sampling, value, process=0):
    """Blocks whose latency is value(i), until the case has enough; how many there were."""
    blocks = 0
    while sampling.wants_block(process):
        sampling.add(process, [value(blocks)], None)
        blocks += 1
    return blocks


def test_steady_samples_stop_at_the_first_look():
    sampling = Sampling(plan=plan())
    assert feed(sampling, lambda i: 1.0 + 0.001 * (i % 2)) == 6
    assert sampling.stop == "ci"


def test_looks_come_at_6_8_and_11_blocks():
    # Wild at first, then steady: precise enough from the seventh block on, but nobody looks before the eighth.
    sampling = Sampling(plan=plan(precision_ratio=0.16))
    assert feed(sampling, lambda i: 1.5 if i == 0 else 1.0) == 8
    assert sampling.stop == "ci"


def test_noise_ends_at_the_plans_most_blocks():
    sampling = Sampling(plan=plan())
    assert feed(sampling, lambda i: 1.0 + i % 2) == 11
    assert sampling.stop == "blocks"


def test_budget_ends_it_but_never_before_three_blocks():
    sampling = Sampling(plan=plan())
    assert feed(sampling, lambda i: 5000.0 + 1000 * i) == 3
    assert sampling.stop == "budget"


def test_processes_take_turns_and_all_have_equally_many_blocks():
    sampling = Sampling(plan=plan(processes=3, min_blocks=2, max_blocks=6))
    order = []
    while any(sampling.wants_block(p) for p in range(3)):
        for process in range(3):
            while sampling.wants_block(process):
                order.append(process)
                sampling.add(process, [1.0 + 0.3 * process], None)
    assert order[:6] == [0, 0, 1, 1, 2, 2]
    assert [len(blocks) for blocks in sampling.block_ms] == [6, 6, 6]
    assert sampling.stop == "blocks"


def test_several_processes_stop_when_they_agree():
    sampling = Sampling(plan=plan(processes=3, min_blocks=2, max_blocks=6))
    for process in range(3):
        while sampling.wants_block(process):
            sampling.add(process, [1.0 + 0.001 * process], None)
    assert not any(sampling.wants_block(p) for p in range(3))
    assert sampling.stop == "ci"


def test_budget_with_processes_waits_for_a_third_process():
    sampling = Sampling(plan=plan(processes=5, min_blocks=2, max_blocks=6))
    for process in range(5):
        while sampling.wants_block(process):
            sampling.add(process, [3000.0], None)
    assert sampling.processes == 3
    assert sampling.stop == "budget"


@pytest.mark.parametrize(("call_ms", "calls"), [(0.001, 200), (1.0, 10), (3.0, 4), (10.0, 1), (5000.0, 1), (0.0, 200)])
def test_calls_fill_a_block_of_ten_ms(call_ms, calls):
    assert calls_per_block(call_ms, 10.0) == calls
