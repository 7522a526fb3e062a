"""docs/gpu.py: the page on what a GPU does has the numbers that attnbench counts now."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    found = importlib.util.spec_from_file_location("gpu_page", DOCS / "gpu.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def row(program: ModuleType) -> dict:
    return json.loads(program.ROW.read_text())


def test_the_page_and_its_pictures_are_current(program: ModuleType, row: dict) -> None:
    for name, content in program.page(row).items():
        assert (DOCS / name).read_text(encoding="utf-8") == content, f"{name}: make pictures"


def test_the_example_is_the_kernel_that_is_listed_first(program: ModuleType, row: dict) -> None:
    assert program.is_example(row), "audit again: docs/gpu.py RUN"
    assert not program.is_example({**row, "causal": False})
    assert not program.is_example({**row, "config": {**row["config"], "stages": 1}})


def test_a_run_of_the_audit_gives_the_example(
    program: ModuleType, row: dict, tmp_path: Path
) -> None:
    others = [{**row, "d_k": 128}, {**row, "status": "error"}, row]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in others))
    assert program.example(tmp_path) == row


def test_its_numbers_are_those_of_the_shape(program: ModuleType, row: dict) -> None:
    found = program.facts(row)
    assert found["programs"] == 32 * 4 * 16
    assert found["full"] * found["wave"] + found["left"] == found["programs"]
    # 4 N^2 d h B / 2 FLOPs, and the diagonal; Q, K, V and O of 2 bytes
    assert found["flops"] * 1e9 == 4 * 64 * 64 * (4096 * 4097 // 2)
    assert found["bytes"] == 4 * 4 * 16 * 4096 * 64 * 2 / 2**20
    assert found["sm_blocks"] == row["sm_block_count"]
    assert found["busy"] == row["tensor_busy_most_ratio"]
    # queries, stages of keys and values, barriers: all of a block's shared memory
    parts = found["q_kib"] + found["staged_kib"] + found["barriers_kib"]
    assert parts == found["shared_kib"]
    assert 0 <= found["barriers_kib"] <= 1
    assert found["decode"] < found["written"] < found["ridge"] < found["intensity"]


def test_another_kernel_changes_the_page(program: ModuleType, row: dict) -> None:
    more = program.page({**row, "thread_register_count": 200})
    assert more["gpu.md"] != program.page(row)["gpu.md"]
    assert "1 blocks" in re.sub(r"\s+", " ", more["gpu.md"])
    assert more["gpu-sm.svg"] != program.page(row)["gpu-sm.svg"]


def test_the_tiles_of_the_picture_are_those_that_the_kernel_computes(
    program: ModuleType, row: dict
) -> None:
    drawn = program.tiles_picture(program.facts(row))
    rows, per_row = 4096 // 128, 128 // 64
    whole = sum(per_row * tile for tile in range(rows))
    assert len(re.findall(r'class="f-0"', drawn)) == whole + 1  # and the legend's
    assert len(re.findall(r'class="f-1"', drawn)) == per_row * rows + 1
