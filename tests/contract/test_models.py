"""`attnbench advise` reads the configurations that people bring, with and without transformers."""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, ran
from tests.contract.conftest import run_attnbench, users_environment

SMALL = ROOT / "tests" / "data" / "configs" / "small"
KEPT = ROOT / "results" / "reference" / "cpu-20261124-advise"
ASKED = ("--context", "8k", "--memory-gib", "24", "--beside-weights", "--device", "cpu")
# Bytes of keys and values at 8,192 tokens, computed by hand.
MIB = 1 << 20
BYTES = {
    "hybrid-output-gate": 24 * MIB,
    "mamba-hybrid": 16 * MIB,
    "vision-language-dense": 96 * MIB,
    "sparse-indexer": 22 * MIB,
    "hybrid-granite": 32 * MIB,
    "attn-type-list": 32 * MIB,
    "period-hybrid": 32 * MIB,
    "alibi-config": 128 * MIB,
    "state-of-linear-layers": 16 * MIB,
    "nvfp4-weights": 16 * MIB,  # in fp8, as its quantization says
    "dtype-in-text-config": 48 * MIB,
}
WITHOUT = '''"""transformers as if it were not installed."""
from importlib.machinery import PathFinder

found = PathFinder.find_spec.__func__


def others(cls, name, path=None, target=None):
    return None if name.partition(".")[0] == "transformers" else found(cls, name, path, target)


PathFinder.find_spec = classmethod(others)
'''
OF_ALL = """
import json, sys, attnbench
for path in sys.argv[1:]:
    found = attnbench.advise(path, context=8192, memory_gib=24, beside_weights=True, device="cpu")
    print(json.dumps({"bytes": [one["cache_bytes"] for one in found["memory"]],
                      "sentences": found["sentences"]}))
"""


@pytest.fixture(scope="session")
def kept_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"ATTNBENCH_CACHE": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="session")
def without(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a user who has no transformers."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "sitecustomize.py").write_text(WITHOUT)
    return {"PYTHONPATH": os.pathsep.join((str(ROOT / ".package"), str(folder)))}


def advised(config: Path, env: dict[str, str], *more: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the answer."""
    done = run_attnbench("advise", config, *ASKED, *more, "--json", env=env)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def changed(folder: Path, name: str, **fields: Any) -> Path:
    """A configuration with other fields."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads((SMALL / f"{name}.json").read_text()), **fields}))
    return path


def test_bytes_are_right_without_transformers(without: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", OF_ALL, *(str(SMALL / f"{name}.json") for name in BYTES)]
    done = ran(command, env=users_environment(without), cwd=tmp_path, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {name: {*one["bytes"]} for name, one in zip(BYTES, found, strict=True)} == {
        name: {size} for name, size in BYTES.items()
    }
    lines = dict(zip(BYTES, map(str, (one["sentences"] for one in found)), strict=True))
    assert (
        "9 layers of linear attention, each with a state of 134 KiB" in lines["hybrid-output-gate"]
    )
    assert "4 layers of Mamba-2" in lines["mamba-hybrid"]
    assert "2 layers of no attention" in lines["mamba-hybrid"]
    assert "6 layers of Mamba-2" in lines["hybrid-granite"]
    assert "pip install 'attnbench[hf]'" in lines["hybrid-granite"]
    assert "pip install" not in lines["nvfp4-weights"]  # whose defaults attnbench knows itself


@pytest.mark.parametrize(
    ("name", "code"), [("hybrid-output-gate", 0), ("sparse-indexer", 3), ("alibi-config", 3)]
)
@pytest.mark.parametrize("installed", [True, False])
def test_what_cannot_be_measured_is_named_and_the_exit_code_says_so(
    without: dict[str, str], kept_models: dict[str, str], name: str, code: int, installed: bool
) -> None:
    if installed:
        pytest.importorskip("transformers")
    done, found = advised(SMALL / f"{name}.json", kept_models if installed else without)
    assert done == code
    assert {one["cache_bytes"] for one in found["memory"]} == {BYTES[name]}
    named = {"sparse-indexer": "sparse attention to 1024 keys", "alibi-config": "ALiBi"}
    assert named.get(name, "linear attention") in " ".join(found["sentences"])


@pytest.mark.parametrize("installed", [True, False])
def test_a_state_counts_in_how_many_sequences_fit(
    without: dict[str, str], kept_models: dict[str, str], installed: bool
) -> None:
    if installed:
        pytest.importorskip("transformers")
    env = kept_models if installed else without
    asked = ("--context", "2k", "--memory-gib", "4")
    code, found = advised(SMALL / "state-of-linear-layers.json", env, *asked)
    assert code == 0
    assert found["sequences"] == [{"context": 2048, "fit": 143, "fit_paged": 143}]
    assert {one["state_bytes"] for one in found["memory"]} == {25_755_648}


def test_weights_and_cache_are_as_the_quantization_says(without: dict[str, str]) -> None:
    asked = ("advise", SMALL / "nvfp4-weights.json", "--context", "8k", "--memory-gib", "24")
    done = run_attnbench(*asked, "--device", "cpu", "--json", env=without, check=True)
    found = json.loads(done.stdout)
    products = 4 * (2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 2048)
    rest = 2 * 32000 * 1024 + (2 * 4 + 1) * 1024
    assert found["weight_bytes"] == products * 9 // 16 + rest * 2
    assert found["kv_dtype"] == "fp8"


def test_the_dtype_is_read_where_it_is_written(kept_models: dict[str, str]) -> None:
    pytest.importorskip("transformers")
    code, found = advised(SMALL / "dtype-in-text-config.json", kept_models)
    assert (code, found["dtype"], found["dtype_guess"]) == (0, "bf16", None)
    assert {one["cache_bytes"] for one in found["memory"]} == {BYTES["dtype-in-text-config"]}


def test_an_unknown_field_is_a_caution_and_numbers_of_python_are_read(
    without: dict[str, str], tmp_path: Path
) -> None:
    more = {"attn_of_next_year": 3, "router_jitter": float("nan"), "limits": [0.0, float("inf")]}
    code, found = advised(changed(tmp_path, "vision-language-dense", text_config={
        **json.loads((SMALL / "vision-language-dense.json").read_text())["text_config"], **more,
    }), without)  # fmt: skip
    assert code == 3
    assert found["cautions"] == ["'attn_of_next_year' is not known, and may change attention"]
    assert {one["cache_bytes"] for one in found["memory"]} == {BYTES["vision-language-dense"]}


def test_a_refusal_names_the_layer_whose_bytes_cannot_be_known(without: dict[str, str]) -> None:
    done = run_attnbench("advise", SMALL / "deepseek-v4.json", *ASKED, env=without)
    assert done.returncode == 2
    assert "compress_ratios: 4 in layer 2: what it keeps for a token is not known" in done.stderr


def test_rows_of_an_earlier_run_are_found_with_and_without_transformers(
    without: dict[str, str], tmp_path: Path
) -> None:
    """It said "Nothing is measured yet" over 22 rows of transformers' functions."""
    asked = ("advise", "llama-3-8b", "--context", "1k", "--memory-gib", "24", "--device", "cpu")

    def answer(env: dict[str, str]) -> dict[str, Any]:
        done = run_attnbench(*asked, "--out", tmp_path, "--json", env=env, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    nothing = answer(without)
    assert "Nothing has been timed yet" in nothing["answer"]
    meta = json.loads((KEPT / "run.json").read_text())
    meta["environment"] |= {"cpu": nothing["device_name"], "torch": version("torch")}
    run = tmp_path / meta["run"]
    run.mkdir()
    (run / "rows.jsonl").write_bytes((KEPT / "rows.jsonl").read_bytes())
    (run / "run.json").write_text(json.dumps(meta))
    for env in ({}, without):
        found = answer(env)
        assert "attn_implementation=" in found["answer"]
        backends = [one["backend"] for one in found["decisions"][0]["choices"]]
        assert "hf:eager" in backends
