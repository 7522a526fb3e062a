"""Samples as rounds: nothing is lost to the clock, and what is missing stays missing."""

import json

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.pytest_plugin.items import extra_info
from attnbench.harness.rows.record import Record, Status
from attnbench.impls.problem import Problem

CASE = Case(
    backend="sdpa:flash",
    problem=Problem(batch=2, seq_len=4096, d_model=512, heads=8, dtype="bf16", causal=True),
)


def record(**more: object) -> Record:
    return Record.of(CASE, Status.OK, "", {"device": "cuda", "attempt": 1, **more})


def test_what_was_not_measured_is_null():
    info = extra_info(record(), "a-run")
    own = {"run", "schema", "case", "device"}
    assert {name for name, value in info.items() if value is not None} == own
    # one block has a value and no interval
    single = extra_info(record(block_ms=[[[2.0, 4.0]]]), "a-run")
    assert single["latency_ms"] == pytest.approx(3.0)
    assert single["latency_low_ms"] is single["latency_high_ms"] is None
    json.dumps(single, allow_nan=False)
