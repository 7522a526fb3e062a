"""harness/audit/readings.py on a kernel compiled here."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT, environment, ran

READ = {"cuobjdump", "nvdisasm"}


@pytest.mark.skipif(find_spec("triton") is None, reason="needs triton: pip install triton")
def test_a_cubin_is_read_once_and_again_only_if_what_was_kept_is_broken(tmp_path: Path) -> None:
    done = ran(
        [sys.executable, "-m", "tests.harness.audit.read_again"],
        cwd=ROOT,
        env=environment({"TRITON_CACHE_DIR": str(tmp_path)}),
        check=True,
    )
    results = json.loads(done.stdout.splitlines()[-1])
    first, second, broken = (results[name] for name in ("first", "second", "broken"))
    # Triton has asked ptxas already, and what it said was read then.
    assert set(first["asked"]) >= READ
    assert "ptxas" not in first["asked"]
    assert any("instructions are serialized" in note for note in first["found"]["ptxas_notes"])
    assert second["asked"] == []
    assert set(broken["asked"]) >= {*READ, "ptxas"}  # Triton's cache does not keep what it said
    assert first["found"] == second["found"] == broken["found"]
    assert [results[name]["kept"] for name in results] == [1] * 4
    without = results["no_nvdisasm"]["found"]
    assert without["missing"]["instructions"] == "there is none"
    assert "instructions" not in without
    assert without["thread_register_count"] == first["found"]["thread_register_count"]
