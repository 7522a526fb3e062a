"""Every axis of a problem that has two values gets an answer: time, bytes and FLOPs of one over the
other, in the facts, in the terminal, and as the card of a scenario that asks for it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from attnbench.impls.problem import AXES, Problem
from attnbench.reports.exports import export
from attnbench.reports.subjects import contrasts
from tests.made_runs import made, run_of
from tests.reports.rendering import subject_of

PLAIN = {"batch": 2, "seq_len": 128, "d_model": 64, "heads": 4}
LONG_KEYS = {"kv_seq_len": 256, "causal": True, "causal_align": "bottom_right"}
LATENT = {"d_k": 24, "d_v": 16, "kv_seq_len": 256}
TWO: dict[str, Sequence[tuple[Any, Any, Mapping[str, Any]]]] = {
    "batch": [(1, 4, {})],
    "seq_len": [(64, 128, {}), (64, 256, {"kv_seq_len": 256}), (64, 128, {"causal": True})],
    "kv_seq_len": [(128, 256, {}), (128, 256, LONG_KEYS), (256, 512, LONG_KEYS)],
    "d_model": [
        (64, 128, {}),
        (64, 128, {"d_k": 16}),
        (64, 128, {"d_k": 16, "d_v": 16}),
        (64, 128, {"kv_heads": 2}),
    ],
    "heads": [
        (2, 4, {}),
        (4, 8, {"kv_heads": 4}),
        (4, 8, {"d_k": 16, "d_v": 16}),
        (4, 8, {"d_k": 16, "d_v": 16, "kv_heads": 4}),
        (1, 4, {"d_k": 16, "d_v": 16}),
    ],
    "kv_heads": [(1, 2, {}), (4, 1, {})],
    "d_k": [(16, 32, {}), (32, 64, {"d_v": 16})],
    "d_v": [(16, 64, {}), (16, 64, {"d_k": 16}), (32, 64, {"d_k": 32})],
    "lengths": [("1q300_2q100", "4q100", {}), ("2q128", "2q64", {"causal": True})],
    "dtype": [("fp32", "bf16", {})],
    "causal": [(False, True, {}), (True, False, {})],
    "causal_align": [("top_left", "bottom_right", {"kv_seq_len": 256, "causal": True})],
    "mask": [("none", "local", {}), ("local", "strided", {}), ("none", "padding", {})],
    "window": [(8, 16, {"mask": "local"}), (4, 8, {"mask": "strided"})],
    "softcap": [(0.0, 50.0, {}), (30.0, 50.0, {})],
    "sinks": [(False, True, {})],
    "passes": [("forward", "backward", {}), ("backward", "forward+backward", {})],
    "scope": [("core", "layer", {}), ("layer", "block", {})],
    "latent": [(0, 32, LATENT), (32, 64, LATENT | {"rope": 8})],
    "rope": [(0, 8, LATENT | {"latent": 32})],
    "page": [(0, 16, {"kv_seq_len": 256}), (16, 32, {"kv_seq_len": 256})],
    "kv_dtype": [("same", "int8", {"kv_seq_len": 256}), ("int8", "fp8", {"kv_seq_len": 256})],
    "prefix": [(0, 64, {"kv_seq_len": 256}), (64, 128, {"kv_seq_len": 256})],
}
TWO |= {
    name: [(axis.default, axis.default + 1, {})] for name, axis in AXES.items() if name not in TWO
}
"""Two values of each axis, and what else the problem is: with sizes that follow from it, such as
d_k of d_model, and with sizes that do not.
"""
CASES = [
    pytest.param(axis, *one, id=f"{axis}-{number}")
    for axis, every in TWO.items()
    for number, one in enumerate(every)
]


def contrasted(parent: Path, axis: str, first: Any, other: Any, of: Mapping[str, Any]) -> Path:
    """A made-up run of two backends with both values; the second takes twice as long."""
    pairs = []
    plain = {"d_model": 64, "heads": 4, "batch": 1} if axis == "lengths" else PLAIN
    for backend in ("fused", "sdpa"):
        for value, time_ms in ((first, 1.0), (other, 2.0)):
            problem = asdict(Problem(**{**plain, **of, axis: value})) | {"device": "cpu"}
            planned, row = made(f"{backend}-{axis}-{value}", problem, time_ms)
            row |= {"backend": backend, "kernel": backend}  # one kernel: two say nothing of heads
            pairs.append((planned | {"backend": backend}, row))
    return run_of(parent, *pairs, name="contrast", contrast=(axis,))


@pytest.mark.parametrize(("axis", "first", "other", "of"), CASES)
def test_every_axis_that_is_contrasted_gets_an_answer(
    axis: str, first: Any, other: Any, of: Mapping[str, Any], tmp_path: Path
) -> None:
    run = contrasted(tmp_path, axis, first, other, of)
    facts = [one for one in json.loads(export(run, "json").content) if one["answer"] == "contrasts"]
    mine = [one for one in facts if one["place"]["axis"] == axis]
    assert mine == facts, "of that axis alone"
    times = [one for one in mine if one["quantity"] == "time_ratio"]
    assert {one["place"]["backend"] for one in times} == {"fused", "sdpa"}
    for one in times:
        assert one["value"] == pytest.approx(2, rel=0.1)
        assert one["low"] < one["value"] < one["high"]
        assert one["mark"] == "confirmed"
        assert one["place"]["setting"] != one["place"]["base"]
    assert {one["quantity"] for one in mine} >= {"peak_bytes_ratio", "work_flops_ratio"}
    told = subject_of(contrasts, run)
    assert told.card is not None
    assert "Time: more for all" in told.card.sentence
