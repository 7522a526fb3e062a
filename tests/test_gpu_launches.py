"""Kernels launched one by one, by Triton's interpreter."""

import sys

import pytest

from tests.conftest import ROOT, environment, ran
from tests.impls._triton.conftest import needs_triton

pytestmark = [needs_triton, pytest.mark.nightly]
TWO = "full 64x64 w4 s2 pointers"  # of grad_q and grad_kv, heads of 64


def launched(*words: str) -> tuple[int, list[str], str]:
    command = [sys.executable, "-m", "tests.gpu_day.launches", "--interpret", *words]
    done = ran(command, env=environment({"PYTHONPATH": f"{ROOT / '.package'}:{ROOT}"}), cwd=ROOT)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_each_kernel_is_launched_alone_and_compared() -> None:
    code, lines, _ = launched("--tokens", "100", "--only", TWO)
    assert code == 0
    assert [line.split(" ok: ")[0].strip() for line in lines] == [
        text
        for kernel in ("grad_q", "grad_kv")
        for text in (f"launching {kernel} d64 {TWO}", f"{kernel} d64 {TWO}")
    ]


def test_one_that_takes_too_long_is_ended_with_its_place_and_the_next_one_is_launched() -> None:
    code, lines, errors = launched("--tokens", "3000", "--seconds", "1", "--only", TWO)
    assert code == 1
    assert [line for line in lines if "launching" in line or "ended" in line] == [
        text
        for kernel in ("grad_q", "grad_kv")
        for text in (f"launching {kernel} d64 {TWO}", "ended with 1")
    ]
    assert errors.count("Timeout (0:00:01)!") == 2
    assert "launches.py" in errors
    assert "in launched" in errors
