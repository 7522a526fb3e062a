"""Ids are readable, stable and unique."""

from dataclasses import replace

from attnbench.harness.case import Case, case_of, group_cases
from attnbench.impls.problem import Problem

PLAIN = Problem(batch=1, seq_len=4096, d_model=512, heads=8, dtype="bf16")


def test_usual_values_are_left_out_of_the_id():
    assert Case(backend="fused", problem=PLAIN).id == "fused-b1-n4096-d512-h8-bf16-forward-core"


def test_every_field_of_a_problem_shows_in_the_id():
    changes = {
        "batch": 2, "seq_len": 2048, "d_model": 1024, "heads": 4, "kv_seq_len": 64, "kv_heads": 2, "d_k": 32, "d_v": 16, "dtype": "fp16",
        "causal": True, "passes": "backward", "scope": "layer",
    }  # fmt: skip
    ids = {Case(backend="fused", problem=PLAIN).id}
    for name, value in changes.items():
        fields = {"batch": 1, "seq_len": 4096, "d_model": 512, "heads": 8, "dtype": "bf16", name: value}
        ids.add(Case(backend="fused", problem=Problem(**fields)).id)
    cross = {"batch": 1, "seq_len": 4096, "d_model": 512, "heads": 8, "kv_seq_len": 8192, "causal": True}
    ids |= {Case(backend="fused", problem=Problem(**cross, causal_align=align)).id for align in ("top_left", "bottom_right")}
    assert len(ids) == len(changes) + 3
    assert set(changes) | {"causal_align"} == set(Problem.__dataclass_fields__)


def test_a_case_survives_the_way_through_a_row():
    case = Case(backend="sdpa:flash", problem=replace(PLAIN, causal=True))
    assert case_of({**case.fields(), "group": 3}) == case


def test_a_group_holds_all_backends_of_all_its_problems():
    other = Problem(batch=1, seq_len=4096, d_model=512, heads=1, dtype="bf16")
    (group,) = group_cases(("naive", "fused"), [(PLAIN, other)])
    assert [(case.backend, case.problem.heads) for case in group.cases] == [("naive", 8), ("fused", 8), ("naive", 1), ("fused", 1)]
