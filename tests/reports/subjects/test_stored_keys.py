"""reports/subjects/stored_keys.py: pages, quantized keys and values, and a shared prefix."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.subjects import stored_keys
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import rows_of, subject_of

PLAIN_MS = {"sdpa": 10.0, "kv_cache": 11.0}


def step(backend: str, ms: float, keys: int = 4096, **stored: Any) -> Any:
    of = problem(1, kv_seq_len=keys, causal=True, causal_align="bottom_right")
    of |= {"page": 0, "kv_dtype": "same", **stored}
    size = 256 if stored.get("kv_dtype") == "int8" or stored.get("prefix") else 1024
    return made(backend, of, ms, peak_bytes=int(1024 * ms), input_bytes=size, session=str(stored))


def plain(keys: int = 4096) -> list[Any]:
    return [step(backend, ms, keys) for backend, ms in PLAIN_MS.items()]


def test_the_fastest_on_each_way_is_beside_the_fastest_on_plain_ones(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        *plain(),
        step("kv_cache", 40.0, page=16),
        step("kv_cache:blocks", 60.0, page=16),
        step("kv_cache", 30.0, kv_dtype="int8"),
        step("kv_cache:blocks", 20.0, kv_dtype="int8"),
    )
    pages, int8 = stored_keys.comparisons(rows_of(run))
    assert (pages.row["backend"], pages.base["backend"]) == ("kv_cache", "sdpa")
    assert pages.time.value == pytest.approx(4.0, rel=0.1)
    assert (int8.row["backend"], int8.ratio("input_bytes")) == ("kv_cache:blocks", 0.25)
    assert len(subject_of(stored_keys, run).lines) == 2


def test_the_longest_cache_is_told_and_both_ways_at_once_are_one(tmp_path: Path) -> None:
    both = {"page": 16, "kv_dtype": "fp8"}
    run = run_of(
        tmp_path,
        *plain(),
        *plain(8192),
        step("kv_cache", 20.0, **both),
        step("kv_cache", 30.0, keys=8192, **both),
    )
    (line,) = subject_of(stored_keys, run).lines
    assert line.endswith("= 8\u202f192).".replace(" ", "\u00a0"))


def test_a_shared_prefix_is_beside_a_copy_for_each_sequence(tmp_path: Path) -> None:
    of = {"prefix": 1024, "batch": 16}
    copies = [step(backend, ms, batch=16) for backend, ms in PLAIN_MS.items()]
    shared = [step("kv_cache", 12.0, **of), step("cascade", 2.5, **of)]
    alone = run_of(tmp_path / "alone", *copies, *shared)
    (one,) = stored_keys.comparisons(rows_of(alone))
    assert (one.row["backend"], one.ratio("input_bytes")) == ("cascade", 0.25)
    assert one.time.value == pytest.approx(0.25, rel=0.1)
    half = [step("sdpa", 5.0, batch=16, dtype="bf16"), step("kv_cache", 5.0, dtype="bf16", **of)]
    pages = step("kv_cache", 9.0, batch=16, page=16)
    both = run_of(tmp_path / "both", *copies, *shared, *half, pages)
    found = subject_of(stored_keys, both)
    assert found.card is None
    assert len(found.lines) == 3


@pytest.mark.parametrize("others", [[], [step("kv_cache", 9.0, keys=512, page=16)]])
def test_without_a_plain_call_of_the_same_problem_nothing_is_said(
    others: list[Any], tmp_path: Path
) -> None:
    run = run_of(tmp_path, *plain(), *others)
    assert stored_keys.comparisons(rows_of(run)) == []
    assert not subject_of(stored_keys, run).lines
    assert subject_of(stored_keys, run).lacking
