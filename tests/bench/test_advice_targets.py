"""How soon advice answers from rows, and how exact its bytes are. `make bench` runs these."""

import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from attnbench.harness.advise.shapes import ModelShapes, implementations
from attnbench.harness.devices.environment import fix_threads
from attnbench.harness.devices.this_device import this_device
from attnbench.harness.measure.peak_memory import peak
from attnbench.harness.models.resolve import model_of
from attnbench.harness.rows.run_store import runs
from attnbench.reports.advise.memory import Memory
from attnbench.reports.advise.stored import Device, stored_rows
from tests.conftest import environment
from tests.reports.fake_advice import inquiry

TINY = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "torch_dtype": "float32",
    "vocab_size": 100,
}
MEASURED_TOKENS, TOKENS = 512, 1024


def test_rows_answer_within_a_second(tiny, tmp_path):
    """The command as a whole, Python's start included; torch is not imported."""
    asked = ["advise", str(tiny), "--context", "256", "--device", "cpu", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "attnbench", *asked]
    run = partial(
        subprocess.run, env=environment(), capture_output=True, text=True, check=True, timeout=600
    )
    run([*command, "--measure", "--quiet"])

    def seconds() -> float:
        start = time.perf_counter()
        assert json.loads(run([*command, "--json"]).stdout)["missing"] == []
        return time.perf_counter() - start

    best = min(seconds() for _ in range(5))
    assert best <= 1.0


def calls_of_a_real_model(name: str, tokens: int) -> list[int]:
    """Peak bytes of the attention calls of a small Llama with random weights, run end to end.

    With the mask that the model makes for all layers, which rows count as kept between calls.
    """
    transformers = pytest.importorskip("transformers")
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.llama import modeling_llama

    fix_threads()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**TINY, attn_implementation=name)
    model = transformers.LlamaForCausalLM(config).eval()
    eager = modeling_llama.eager_attention_forward
    function = eager if name == "eager" else ALL_ATTENTION_FUNCTIONS[name]
    peaks: list[int] = []

    def measured(layer, q, k, v, mask, **named):
        found = peak(
            lambda: None, lambda _: function(layer, q, k, v, mask, **named)[0], torch.device("cpu")
        ).peak_bytes
        peaks.append(found + (0 if mask is None else mask.nbytes))
        return function(layer, q, k, v, mask, **named)

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(modeling_llama, "eager_attention_forward", measured)
        patch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, name, measured)
        model(torch.randint(0, TINY["vocab_size"], (1, tokens)))
    assert len(peaks) == TINY["num_hidden_layers"]
    return peaks


@pytest.fixture
def tiny(tmp_path) -> Path:
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(TINY))
    return path


@pytest.mark.parametrize(
    ("name", "source"), [("eager", "by the exact bytes measured at"), ("sdpa", "by the formula")]
)
def test_rows_of_half_the_length_predict_calls_of_a_real_model_within_1_percent(
    tiny, tmp_path, name, source
):
    command = ["advise", str(tiny), "--context", str(MEASURED_TOKENS), "--phase", "prefill"]
    command += ["--device", "cpu", "--out", str(tmp_path), "--measure", "--quiet"]
    words = [sys.executable, "-m", "attnbench", *command]
    subprocess.run(words, env=environment(), check=True, timeout=600)
    here = this_device("cpu")
    shapes = ModelShapes(model=model_of(str(tiny)), batch=1, dtype="fp32", device="cpu")
    asked = inquiry(shapes=shapes, implementations=implementations(), contexts=(TOKENS,))
    (one,) = shapes.asked("prefill", TOKENS)
    assert one.problem is not None
    rows = stored_rows(
        runs(tmp_path),
        Device(kind=here.kind, facts=here.facts),
        [one.problem],
        asked.implementations,
    )
    (chosen,) = (one for one in asked.implementations if one.name == name)
    need = Memory(inquiry=asked, rows=rows).need(chosen, "prefill", TOKENS)
    assert need.source.startswith(source)
    predicted = need.attention_bytes + one.cached_bytes - shapes.input_bytes(one.problem)
    off_ratio = predicted / max(calls_of_a_real_model(name, TOKENS)) - 1
    assert abs(off_ratio) <= 0.01
