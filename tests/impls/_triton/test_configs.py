"""Which configurations are candidates, and for which problems the kernel in Gluon is one."""

import json
from dataclasses import asdict
from itertools import product
from typing import Any

import pytest

from attnbench.harness.run.group import COMPILE_TIMES
from attnbench.harness.scenario import load
from attnbench.harness.scenario.selection import Selection, select
from attnbench.impls import Problem
from attnbench.impls._triton.configs import KERNELS, LONGEST, Config, Kind, candidates, listed
from attnbench.impls.problem import Dtype

PLAIN: dict[str, Any] = {"batch": 3, "d_model": 1, "heads": 5, "d_k": 128, "d_v": 128}
HOPPER = {"gpu": "NVIDIA H200", "capability": 90}


def kind(**changes: Any) -> Kind:
    own = {name: changes.pop(name) for name in ("capability", "variant") if name in changes}
    problem = Problem(**{**PLAIN, "seq_len": 3000, "dtype": "bf16", **changes})
    return Kind.of(problem, **{**HOPPER, **own})


@pytest.mark.parametrize(
    ("capability", "dtype"),
    [(80, "bf16"), (89, "fp16"), (90, "bf16"), (100, "bf16"), (120, "fp16"), (90, "fp32")],
)
def test_every_problem_has_candidates_that_its_gpu_can_run(capability: int, dtype: Dtype) -> None:
    known = set(listed())
    widths, lengths = (1, 16, 64, 65, 128, 200, 256), (1, 16, 17, 10**6)
    for width, n_q, causal, kernel in product(widths, lengths, (False, True), KERNELS):
        shape = {"d_k": width, "d_v": width, "seq_len": n_q, "causal": causal}
        found = candidates(kernel, kind(**shape, dtype=dtype, capability=capability))
        assert 1 <= len(found) <= 4
        assert not found[-1].descriptors  # the last, for short sequences, must run everywhere
        for config in found:
            assert (kernel, config) in known
            assert config.descriptors <= (capability in (90, 100) and dtype != "fp32")
            if n_q <= 16 and kernel != "grad_kv":
                assert config.block_q == 16


@pytest.mark.parametrize(
    ("changes", "alike"),
    [
        ({"batch": 64, "heads": 8, "kv_heads": 2, "passes": "backward", "scope": "layer"}, True),
        ({"seq_len": 2**17}, True),
        ({"seq_len": 2**11 + 1}, True),
        ({"seq_len": 2**11}, False),
        ({"kv_seq_len": 9000}, True),
        ({"seq_len": 1}, False),
        ({"causal": True}, False),
        ({"mask": "local", "window": 100}, False),
        ({"softcap": 3.0}, False),
        ({"lengths": "q3000_q20", "batch": 1, "seq_len": 0}, False),
        ({"page": 16}, False),
        ({"capability": 80}, False),
        ({"variant": "portable"}, False),
    ],
)
def test_problems_that_differ_in_no_tile_are_of_one_kind(
    changes: dict[str, Any], alike: bool
) -> None:
    found = kind(**changes)
    assert (found == kind()) == alike
    fields = json.loads(json.dumps(asdict(found)))  # as the process that times gets it
    assert Kind(**fields | {"problem": Problem(**fields["problem"])}) == found


def test_what_is_timed_is_bounded_whatever_the_problem() -> None:
    found = kind(seq_len=2**20, batch=4096, heads=128, kv_heads=1, scope="layer").problem
    assert (found.seq_len, found.kv_seq_len) == (LONGEST, LONGEST)
    assert found.batch * found.heads == 32
    assert found.scope == "core"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"d_k": 64, "d_v": 64, "causal": True, "seq_len": 129}, None),
        ({"mask": "padding"}, "it takes no key mask"),
        ({"mask": "local", "window": 10}, "it takes no local mask"),
        ({"softcap": 1.0}, "it takes no softcap"),
        ({"sinks": True}, "it takes no sinks"),
        ({"page": 16}, "it takes no pages"),
        ({"lengths": "q3000", "batch": 1, "seq_len": 0}, "it takes no ragged batch"),
        ({"capability": 80}, "it is for compute capability 9.x; this is 8.0"),
        ({"capability": 100}, "it is for compute capability 9.x; this is 10.0"),
        ({"dtype": "fp32"}, "it takes fp16 and bf16 only"),
        ({"d_k": 129}, "heads are 129 wide; it takes 33 to 128"),
        ({"d_k": 32, "d_v": 32}, "heads are 32 wide; it takes 33 to 128"),
        ({"d_k": 100, "d_v": 44}, "no descriptor fits rows that are no multiple of 16 bytes"),
        (
            {"seq_len": 9, "kv_seq_len": 4000},
            "up to 16 queries leave most of its tiles of 128 empty",
        ),
        ({"seq_len": 128}, "sequences of up to 128 have one configuration"),
        ({"variant": "portable"}, "triton:portable leaves it out"),
    ],
)
def test_the_kernel_in_gluon_is_offered_where_it_works(
    changes: dict[str, Any], reason: str | None
) -> None:
    found = kind(**changes)
    assert found.why_not_gluon == reason
    assert any(config.gluon for config in candidates("forward", found)) == (reason is None)
    assert not any(one.gluon for name in KERNELS[1:] for one in candidates(name, found))


@pytest.mark.parametrize(
    "changes",
    [
        {"mask": "padding"},
        {"page": 16},
        {"lengths": "q3000", "batch": 1, "seq_len": 0},
        {"d_k": 100, "d_v": 100},
        {"variant": "pointers"},
    ],
)
def test_descriptors_are_no_candidates_where_they_do_not_fit(changes: dict[str, Any]) -> None:
    for kernel in KERNELS:
        found = candidates(kernel, kind(**changes))
        assert found
        assert not any(config.descriptors for config in found)
        assert any(config.descriptors for config in candidates(kernel, kind()))


# Of one kernel: the most that compiling took of a processor, by Triton 3.6 and 3.9, without the
# kernel in Gluon, which took 4 s; and what timing one takes at most.
KERNEL_S, TIMING_S = 2.0, 0.5


def test_a_kind_of_kernel_sweep_is_tuned_in_time_on_a_single_core() -> None:
    limit_s = load("kernel_sweep").limits.timeout_s * COMPILE_TIMES
    found = select(load("kernel_sweep"), "cuda", Selection()).cases
    for problem in {case.problem for case in found if case.backend == "triton"}:
        of = Kind.of(problem, **HOPPER)
        kernels: set[tuple[str, Config]] = {
            (kernel, config) for kernel in KERNELS for config in candidates(kernel, of)
        }
        assert len(kernels) <= 10
        assert len(kernels) * (KERNEL_S + TIMING_S) <= limit_s / 4
