"""When the cases of a group have enough blocks."""

import pytest

from attnbench.harness.run.sampling import Sampler, Sampling, calls_per_block
from attnbench.harness.scenario import Plan


def plan(**fields):
    return Plan(
        **{
            "processes": 1,
            "min_blocks": 6,
            "max_blocks": 11,
            "precision_ratio": 0.05,
            "budget_s": 2.0,
            **fields,
        }
    )


def feed(sampler, value):
    """Rounds over the processes, as group.py makes them; `value(name, process, block)` is in ms.
    Returns which process was asked when.
    """
    order = []
    progress = True
    while progress:
        progress = False
        for process in range(sampler.plan.processes):
            while wanting := sampler.wanting(process):
                progress = True
                order.append(process)
                for name in wanting:
                    sampling = sampler.samplings[name]
                    ms = value(name, process, sampling.blocks(process))
                    sampling.add(process, {"block_ms": [ms]}, ms / 1e3)
    return order


def of_processes(value, **fields):
    """A case alone; `value(process, block)` is in ms."""
    sampler = Sampler(plan(**fields), ["a"])
    order = feed(sampler, lambda name, process, block: value(process, block))
    return sampler.samplings["a"], order


THREE = {"processes": 3, "min_blocks": 2, "max_blocks": 6}


@pytest.mark.parametrize(
    ("value", "fields", "blocks", "stop"),
    [
        (lambda p, i: 1.0 + 0.001 * (i % 2), {}, [6], "ci"),  # at the first look
        # Wild at first, then steady: precise enough from the seventh block on, but nobody looks
        # before the eighth.
        (lambda p, i: 1.5 if i == 0 else 1.0, {"precision_ratio": 0.22}, [8], "ci"),
        (lambda p, i: 1.0 + i % 2, {}, [11], "blocks"),  # noise
        (lambda p, i: 5000.0 + 1000 * i, {}, [3], "budget"),  # never before three
        (lambda p, i: 1.0 + 0.3 * p, THREE, [6, 6, 6], "blocks"),
        (lambda p, i: 1.0 + 0.001 * p, THREE, [2, 2, 2], "ci"),  # they agree
        (lambda p, i: 3000.0, THREE | {"processes": 5}, [1, 1, 1], "budget"),  # waits for a third
        # Each process has half a second, and none takes another's: the first look has them all.
        (
            lambda p, i: (100.0, 300.0, 550.0, 550.0)[p],
            THREE | {"processes": 4},
            [3, 2, 1, 1],
            "budget",
        ),
    ],
)
def test_blocks_end_when_they_are_precise_or_many_or_the_time_is_spent(value, fields, blocks, stop):
    sampling, _ = of_processes(value, **fields)
    assert [len(one) for one in sampling.block_ms] == blocks
    assert sampling.stop == stop


def test_processes_take_turns():
    _, order = of_processes(lambda p, i: 1.0 + 0.3 * p, **THREE)
    assert order[:6] == [0, 0, 1, 1, 2, 2]


def noisy_ratio(name, process, block):
    """Each latency by itself is precise to 4 %, their ratio only to 7 %: the members' errors are
    opposite.
    """
    return 1.0 + (0.04 if (block % 2 == 0) == (name == "a") else 0.0)


def test_a_wide_pair_keeps_both_of_its_members_going():
    alone = Sampler(plan(precision_ratio=0.03), ["a", "b"])
    feed(alone, noisy_ratio)
    assert {sampling.stop for sampling in alone.samplings.values()} == {"ci"}
    paired = Sampler(plan(precision_ratio=0.03), ["a", "b"], [("a", "b")])
    feed(paired, noisy_ratio)
    assert [sampling.blocks(0) for sampling in paired.samplings.values()] == [11, 11]


def test_a_member_of_no_wide_pair_stops_while_others_go_on():
    sampler = Sampler(plan(precision_ratio=0.03), ["a", "b", "c"], [("a", "b")])
    feed(
        sampler,
        lambda name, process, block: 1.0 if name == "c" else noisy_ratio(name, process, block),
    )
    assert [sampling.blocks(0) for sampling in sampler.samplings.values()] == [11, 11, 6]


def test_a_partner_that_cannot_go_on_keeps_nobody_waiting():
    sampler = Sampler(plan(precision_ratio=0.03, budget_s=0.004), ["a", "b"], [("a", "b")])
    # a has spent its time after 5 blocks; its ratio to b stays wide, but more blocks of b alone
    # would not help.
    feed(
        sampler,
        lambda name, process, block: (
            noisy_ratio(name, process, block) * (1.0 if name == "a" else 0.1)
        ),
    )
    assert sampler.samplings["a"].stop == "budget"
    assert sampler.samplings["b"].blocks(0) == 6
    assert sampler.samplings["b"].stop == "ci"


def test_the_widest_ratio_of_each_member_is_told():
    sampler = Sampler(plan(), ["a", "b", "c"], [("a", "b"), ("b", "c")])
    feed(
        sampler,
        lambda name, process, block: 1.0 if name == "c" else noisy_ratio(name, process, block),
    )
    sampler.finish()
    widths = {name: sampling.pair_half_width_ratio for name, sampling in sampler.samplings.items()}
    assert widths["a"] == widths["b"] > widths["c"] > 0


@pytest.mark.parametrize(
    ("warm_ups", "stationary"),
    [([], None), ([True, True], True), ([True, None], None), ([True, False, None], False)],
)
def test_a_case_was_warm_only_if_every_process_was(warm_ups, stationary):
    assert Sampling(stationary=warm_ups).warmup_stationary is stationary


@pytest.mark.parametrize(
    ("call_ms", "calls"), [(0.001, 200), (1.0, 10), (3.0, 4), (10.0, 1), (5000.0, 1), (0.0, 200)]
)
def test_calls_fill_a_block_of_ten_ms(call_ms, calls):
    assert calls_per_block(call_ms, 10.0) == calls


def sampler_of(**call_ms):
    sampler = Sampler(plan(), call_ms)
    for name, ms in call_ms.items():
        sampler.samplings[name].call_ms = ms
    return sampler


def test_calls_that_take_about_equally_long_get_equal_numbers_of_calls():
    sampler = sampler_of(a=1.0, twin=1.2, far=4.0, tiny=0.01)
    assert sampler.calls(["a", "far", "tiny", "twin"], "cpu") == {
        "a": 9,
        "twin": 9,
        "far": 3,
        "tiny": 200,
    }
    assert sampler.calls(["far"], "cuda") == {"far": 5}


def test_the_number_of_calls_follows_the_work_of_a_disturbed_block():
    sampler = sampler_of(a=1.0)
    conditions = {"wall_s": 0.04, "waited_s": 0.04, "thread_ms": 2.0}
    sampler.samplings["a"].add(0, {"block_ms": [6.0], "conditions": conditions}, 0.006)
    assert sampler.calls(["a"], "cpu") == {"a": 5}
    conditions = conditions | {"waited_s": 0.0}
    sampler.samplings["a"].add(0, {"block_ms": [6.0], "conditions": conditions}, 0.006)
    assert sampler.calls(["a"], "cpu") == {"a": 2}
