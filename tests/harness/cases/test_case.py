"""Ids are readable, stable and unique."""

from dataclasses import replace
from itertools import product

import pytest

from attnbench.harness.cases.case import Case, case_of, reported_pairs, without
from attnbench.harness.scenario import from_mapping
from attnbench.harness.scenario.selection import planned
from attnbench.impls.problem import AXES, Problem

PLAIN = Problem(batch=1, seq_len=4096, d_model=512, heads=8, dtype="bf16")


def test_every_field_of_a_problem_shows_in_the_id():
    shape = {"batch": 1, "seq_len": 4096, "d_model": 512, "heads": 8, "dtype": "bf16"}
    changes = {
        "batch": 2, "seq_len": 2048, "d_model": 1024, "heads": 4, "kv_seq_len": 64, "kv_heads": 2,
        "d_k": 32, "d_v": 16, "lengths": "4q1k", "dtype": "fp16", "causal": True,
        "mask": "padding", "softcap": 0.5, "sinks": True, "passes": "backward", "scope": "layer",
        "latent": 128, "page": 16, "kv_dtype": "int8", "prefix": 1024,
    }  # fmt: skip
    cross = {"kv_seq_len": 8192, "causal": True}
    details = ("causal_align", "window", "rope")
    others = {*AXES} - {*changes, *shape, *details}
    changes |= {name: AXES[name].default + 1 for name in others}
    several = [{}, *({name: value} for name, value in changes.items())]
    several += [cross | {"causal_align": align} for align in ("top_left", "bottom_right")]
    several += [{"mask": "local", "window": window} for window in (64, 0)]
    several += [{"latent": 128, "rope": 32}]
    ids = {Case(backend="fused", problem=Problem(**shape | one)).id for one in several}
    assert len(ids) == len(several)
    assert {name for one in several for name in one} == set(AXES)


def test_a_group_holds_every_case_side_by_side():
    data = {"name": "a", "question": "b?", "backends": ["naive", "fused"], "contrast": "heads"}
    grid = {"seq_len": 64, "d_model": 32, "heads": [1, 2]}
    (group,) = planned(from_mapping({**data, "grid": grid}, "here"), "cpu").groups
    assert [(case.problem.heads, case.backend) for case in group.cases] == list(
        product((1, 2), ("naive", "fused"))
    )
    assert len({case.id for case in group.cases}) == 4


def test_a_case_survives_the_way_through_a_row():
    plain = Case(backend="sdpa:flash", problem=replace(PLAIN, causal=True))
    assert plain.id == "sdpa:flash-b1-n4096-d512-h8-bf16-causal-forward-core"
    assert case_of({**plain.fields(), "group": 3, "python": None}) == plain


def cases(backends, *problems):
    return [Case(backend=backend, problem=problem) for problem in problems for backend in backends]


def named(pairs, known):
    """Pairs as (backend, heads) of each side."""
    by_id = {case.id: (case.backend, case.problem.heads) for case in known}
    return {(by_id[one], by_id[other]) for one, other in pairs}


def test_every_backend_is_compared_with_the_baseline_on_the_same_problem():
    known = cases(("naive", "fused", "sdpa"), PLAIN, replace(PLAIN, seq_len=8192, kv_seq_len=8192))
    pairs = reported_pairs(known, "fused", ())
    assert named(pairs, known) == {(("naive", 8), ("fused", 8)), (("sdpa", 8), ("fused", 8))}
    assert len(pairs) == 4


def test_without_a_baseline_the_first_backend_is_it():
    known = cases(("naive", "fused"), PLAIN)
    assert named(reported_pairs(known, None, ()), known) == {(("fused", 8), ("naive", 8))}
    assert named(reported_pairs(known, "sdpa", ()), known) == {(("fused", 8), ("naive", 8))}


def test_values_of_a_contrast_axis_are_compared_with_its_first_for_the_same_backend():
    known = cases(
        ("naive", "sdpa"), *(Problem(batch=1, seq_len=512, d_model=512, heads=h) for h in (1, 2, 8))
    )
    for contrast, wanted in ((("heads",), {2, 8}), ((), set())):
        found = named(reported_pairs(known, "naive", contrast), known)
        across = {pair for pair in found if pair[0][0] == pair[1][0]}
        both = product(("naive", "sdpa"), wanted)
        assert across == {((backend, h), (backend, 1)) for backend, h in both}


@pytest.mark.parametrize(
    ("one", "other"), [({}, {"d_k": 32}), ({"kv_seq_len": 256}, {"kv_seq_len": 512})]
)
def test_sizes_that_were_set_tell_problems_apart(one, other):
    shape = {"batch": 1, "seq_len": 512, "d_model": 512, "heads": 8}
    first, second = (Problem(**shape, **more) for more in (one, other))
    assert without(first, "heads") != without(second, "heads")
