"""What values inputs have in which block, in a worker: new ones, and those that were checked."""

from dataclasses import replace
from pathlib import Path

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.measure.output_check import Fingerprint
from attnbench.harness.worker import measure
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import measurer_here, worker_config

pytestmark = pytest.mark.long

CHEATS = Path(__file__).parents[2] / "fakes" / "cheats"
PROBLEM = Problem(batch=2, seq_len=48, d_model=32, heads=4, kv_heads=2)


@pytest.fixture
def short_warm_up(monkeypatch):
    monkeypatch.setattr(measure, "WARM_UP_S", 0.02)
    monkeypatch.setattr(measure, "WARM_AGAIN_S", 0.02)


def sampled_on_cpu(names, problem, blocks):
    """A worker in this process that has sampled some blocks of the backends, and its events."""
    events = []
    config = worker_config(measure=("latency",), max_warm_up_s=0.05)
    measurer = measurer_here(config, events.append)
    cases = [Case(backend=name, problem=problem) for name in names]
    measurer.check(cases)
    measurer.warm_up(cases)
    for _ in range(blocks):
        measurer.sample(cases, {case.id: 2 for case in cases})
    return measurer, events, cases


@pytest.mark.parametrize("names", [("fused", "sdpa", "naive"), ("sdpa", "performer:64")])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"dtype": "bf16", "passes": "forward+backward"},
        {"passes": "backward"},
        {"scope": "layer", "passes": "forward+backward"},
    ],
)
def test_honest_backends_follow_new_values_in_every_block(short_warm_up, names, change):
    measurer, events, cases = sampled_on_cpu(names, replace(PROBLEM, **change), blocks=4)
    measurer.confirm(cases)
    kinds = [event["event"] for event in events]
    assert "ended" not in kinds
    assert kinds.count("samples") == 4 * len(cases)


@pytest.mark.parametrize(
    ("names", "change"),
    [
        (("kv_cache", "kv_cache:blocks"), {"kv_dtype": "int8"}),
        (("kv_cache", "kv_cache:blocks"), {"kv_dtype": "fp8", "page": 16, "dtype": "bf16"}),
        (("kv_cache", "cascade"), {"prefix": 16, "seq_len": 32, "kv_seq_len": 64}),
        (("mla:absorbed", "mla:unabsorbed"), {"kv_heads": 4, "latent": 24, "d_k": 12, "rope": 4}),
    ],
)
def test_backends_over_stored_keys_follow_new_values_in_every_block(short_warm_up, names, change):
    test_honest_backends_follow_new_values_in_every_block(short_warm_up, names, change)


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (("fused", "sdpa", "naive"), ()),
        (("sdpa", "performer:64"), ()),
        (("fused", "cached_by_pointer"), (1,)),
    ],
)
def test_a_long_call_is_all_of_a_processes_warm_up(short_warm_up, monkeypatch, names, wrong):
    """What it gives with other signs is then never asked, and known of exact backends."""
    monkeypatch.setattr(measure, "WARM_UP_S", 0.0)
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(CHEATS))
    events = []
    measurer = measurer_here(
        worker_config(measure=("latency",), first_warm_up_s=0.0, max_warm_up_s=0.0), events.append
    )
    cases = [Case(backend=name, problem=replace(PROBLEM, kv_heads=4)) for name in names]
    measurer.warm_up(cases)
    assert not [event for event in events if event["event"] == "ended"]
    for _ in range(3):
        measurer.sample(cases, {case.id: 2 for case in cases})
    measurer.confirm(cases)
    ended = {event["case"]: event["status"] for event in events if event["event"] == "ended"}
    assert ended == {cases[place].id: "incorrect" for place in wrong}


LAYER, BACKWARD = {"scope": "layer"}, {"passes": "backward"}


@pytest.mark.parametrize(
    ("names", "change", "known"),
    [
        (("fused", "sdpa"), {}, True),
        (("fused", "sdpa"), {"passes": "forward+backward"}, True),
        (("fused", "linformer"), {}, False),
        (("fused", "sdpa"), LAYER, False),
        (("fused", "sdpa"), BACKWARD, False),
    ],
)
def test_new_values_without_a_known_result_alternate_with_checked_ones(
    short_warm_up, monkeypatch, names, change, known
):
    looks = []
    look = Fingerprint.look

    def noted(self, result, flipped, columns=None, **how):
        looks.append((measurer.blocks if measurer else 0, columns))
        return look(self, result, flipped, columns, **how)

    monkeypatch.setattr(Fingerprint, "look", noted)
    measurer = None
    measurer, _, cases = sampled_on_cpu(names, replace(PROBLEM, **change), blocks=0)
    for _ in range(6):
        measurer.sample(cases, {case.id: 2 for case in cases})
    of_block = [{id(columns): columns for block, columns in looks if block == n} for n in range(7)]
    assert list(of_block[0].values()) == [None]  # the warm-up
    drawn = [one for block in of_block[1::2] for one in block.values()]
    assert len({id(one) for one in drawn}) == 3
    assert None not in drawn
    for new, next_one in zip(of_block[1::2], of_block[2::2], strict=True):
        assert list(next_one.values()) == (list(new.values()) if known else [None])
