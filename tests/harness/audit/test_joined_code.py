"""harness/audit/joined_code.py on kernels compiled here."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT, environment

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    pytest.importorskip("triton", reason="needs triton: pip install triton")
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.audit.joined"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_code_that_is_read_together_says_the_same_as_alone(results: dict[str, Any]) -> None:
    alone, together = results["alone"], results["together"]
    assert [one["ran"] for one in together] == [1, 1, 1]
    assert [found for one in together for found in one["found"]] == alone
    assert all(len(one["opcodes"]) > 500 for one in alone)
    assert len({len(one["opcodes"]) for one in alone}) == len(alone) == 7


def test_code_for_several_architectures_is_read_one_by_one(results: dict[str, Any]) -> None:
    assert results["architectures"] == {"found": results["alone"], "ran": 7}


def test_what_is_no_cubin_does_not_hide_the_code_of_others(results: dict[str, Any]) -> None:
    first, *others = results["broken"]["found"]
    assert first == results["alone"][0]
    assert [one["unreadable"].partition(":")[0] for one in others] == ["nvdisasm failed"] * 2
