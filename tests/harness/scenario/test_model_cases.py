"""Cases that name a model."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import Scenario, from_mapping, load_entries
from attnbench.impls.problem import Problem


def scenario(*cases: dict[str, Any], **grid: Any) -> Scenario:
    data = {"name": "mine", "question": "Which?", "backends": ["fused"], "grid": grid}
    return from_mapping({**data, "cases": list(cases)}, "mine.yaml")


def problems(found: Scenario, device: str = "cpu") -> list[Problem]:
    return [problem for group in found.problem_groups(device)[0] for problem in group]


def test_a_model_gives_the_shape_that_one_would_write_by_hand() -> None:
    by_hand = {"d_model": 4096, "heads": 32, "kv_heads": 8, "causal": True}
    named = problems(scenario({"model": "llama-3-8b", "N": "1k"}))
    assert named == problems(scenario({**by_hand, "seq_len": 1024}))


def test_each_distinct_attention_of_a_model_is_a_case() -> None:
    found = problems(scenario({"model": "gemma-3-4b", "seq_len": "2k"}))
    assert [(one.mask, one.window) for one in found] == [("local", 1023), ("none", 0)]
    whisper = problems(scenario({"model": "whisper-large", "seq_len": 448}))
    assert [(one.seq_len, one.kv_seq_len) for one in whisper] == [
        (1500, 1500),
        (448, 448),
        (448, 1500),
    ]


def test_a_grid_that_is_causal_makes_no_encoder_causal() -> None:
    (found,) = problems(scenario({"model": "vit-l"}, causal=True, mask="padding"))
    assert (found.seq_len, found.causal, found.mask) == (197, False, "none")


def test_phase_and_tensor_parallelism_change_the_shape() -> None:
    (decode,) = problems(
        scenario({"model": "llama-3-8b", "seq_len": 512, "phase": "decode", "tp": 16})
    )
    assert (decode.seq_len, decode.kv_seq_len, decode.heads, decode.kv_heads) == (1, 512, 2, 1)
    (training,) = problems(scenario({"model": "gpt2", "seq_len": 512, "phase": "training"}))
    assert training.passes == "forward+backward"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("{model: gpt9}", "no model 'gpt9'; did you mean gpt2?"),
        ("{model: 3, seq_len: 8}", "model: found 3; wanted text"),
        ("{model: gpt2}", "cases[0].seq_len: not given; wanted the context of gpt2"),
        ("{model: gpt2, seq_len: 2k}", "cases[0].seq_len: 2048; wanted at most the 1024 of gpt2"),
        ("{model: gpt2, seq_len: some}", "cases[0].seq_len: found 'some'"),
        ("{model: gpt2, seq_len: 8, heads: 3}", "cases[0].heads: the model says it"),
        ("{model: gpt2, seq_len: 8, tp: 5}", "12 heads cannot be divided by 5"),
        ("{model: gpt2, seq_len: 8, phase: late}", "cases[0].phase: found 'late'; wanted prefill"),
        ("{model: vit-l, phase: decode}", "vit-l has no attention in phase decode"),
        ("{model: gpt2, seq_len: 8, colour: red}", "colour"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(case: str, said: str) -> None:
    text = f"name: mine\nquestion: Which?\nbackends: fused\ncases:\n  - {case}\n"
    with pytest.raises(BadInput) as caught:
        load_entries(text)
    (line,) = caught.value.problems
    assert line.startswith("scenario:5:")
    assert said in line


@pytest.mark.long
def test_a_model_without_softmax_attention_is_refused_for_what_it_has(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    config = {"model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 64}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(BadInput, match="only Mamba, which is not measured"):
        scenario({"model": str(tmp_path), "seq_len": 8})
