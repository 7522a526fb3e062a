"""Checkpoints: what the command line names, and folders that are no model."""

import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from attnbench.harness.files.errors import BadInput
from attnbench.harness.heads.checkpoint import Model, given
from attnbench.harness.heads.given import read_checkpoints
from attnbench.harness.heads.studies import checkpoint_heads
from tests.harness.heads.tiny_models import tiny
from tests.harness.verbs.test_odd_files import ODD
from tests.made_runs import fake_run

transformers = pytest.importorskip("transformers")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny("llama").save_pretrained(path := tmp_path_factory.mktemp("models") / "llama")
    return path


@pytest.fixture
def folder(llama: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    shutil.copytree(llama, tmp_path / "model")
    return tmp_path / "model"


def problem_of(folder: Path) -> str:
    (problem,) = checkpoint_heads.tried(CPU, None, path=str(folder), tokens=None)
    assert "\n" not in problem
    assert "wanted" in problem
    return problem


# ---- what the command line names -----------------------------------------------------------------


def test_two_of_one_name_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, other := tmp_path / "sub" / "model")
    with pytest.raises(BadInput, match="wanted different names"):
        read_checkpoints([str(folder), str(other)])
    assert len(read_checkpoints([str(folder), f"b={other}"])) == 2


@pytest.mark.parametrize("make", ["missing", "folder", "text", "pipe"])
def test_what_is_no_model_is_refused_before_anything_starts(tmp_path: Path, make: str) -> None:
    path = tmp_path / "model"
    if make == "folder":
        path.mkdir()
    elif make == "text":
        path.write_text("x")
    elif make == "pipe":
        os.mkfifo(path)
    with pytest.raises(BadInput, match=r"--checkpoint .*; wanted the folder of a Hugging Face"):
        read_checkpoints([str(path)])


def test_tokens_need_a_checkpoint() -> None:
    with pytest.raises(BadInput, match="--tokens needs --checkpoint"):
        read_checkpoints([], "x.json")


# ---- folders that do not fit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, "quantized"),
        ({"model_type": "no_such_model"}, "wanted a decoder that transformers"),
        ({"model_type": ["llama"]}, "wanted a decoder that transformers"),
        ({"model_type": "bert"}, "wanted"),
        ({"hidden_size": 64}, "does not load and run it"),
        ({"num_hidden_layers": 3}, "weights are missing"),
        ({"num_hidden_layers": 10**9}, "1000000000; wanted at most 4096"),
        ({"num_attention_heads": "x"}, "does not load and run it"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_in_one_line(
    folder: Path, values: dict[str, Any], said: str
) -> None:
    change_config(folder, **values)
    assert said in problem_of(folder)


def change_config(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", struct.pack("<Q", 1 << 62), b"\x80\x02."])
def test_what_is_no_safetensors_file_is_refused(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    assert "not a whole safetensors file" in problem_of(folder)


def test_pickles_are_never_read(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02cos\nsystem\n.")
    assert "other formats hold pickles, which are never read" in problem_of(folder)


def test_weights_beyond_the_memory_budget_are_refused(llama: Path) -> None:
    with pytest.raises(BadInput, match=r"memory budget, 1000 bytes, in fp32.*--memory-gib"):
        Model(llama, CPU, most_bytes=1000)


def test_nothing_that_a_folder_names_is_used_as_code(folder: Path, tmp_path: Path) -> None:
    (folder / "modeling_llama.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "some/model"}')
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text("raise SystemExit")
    change_config(
        folder,
        auto_map={"AutoModelForCausalLM": "modeling_llama.Model"},
        _attn_implementation="kernels-community/flash-attn",
        attn_implementation="kernels-community/flash-attn",
        transformers_weights="elsewhere.bin",
        fusion_config={"x": True},
        output_attentions=True,
    )
    assert Model(folder, CPU).heads == [4, 4]
    assert not (tmp_path / "ran").exists()


def test_a_family_whose_heads_cannot_be_seen_is_refused(tmp_path: Path) -> None:
    config = transformers.BloomConfig(vocab_size=50, hidden_size=32, n_layer=1, n_head=4)
    transformers.BloomForCausalLM(config).save_pretrained(tmp_path)
    assert "its heads cannot be seen; wanted a newer family" in problem_of(tmp_path)


# ---- tokens of the user's ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(llama: Path) -> Model:
    return Model(llama, CPU)


@pytest.mark.parametrize(
    "text", ["[1]", "[50, 1]", "[[1, 2], [1]]", "[true, 1]", "[[[1, 2]]]", "[" * 9999, "[]"]
)
def test_tokens_that_the_model_does_not_have_are_refused(
    model: Model, tmp_path: Path, text: str
) -> None:
    (file := tmp_path / "t.json").write_text(text)
    with pytest.raises(BadInput, match=r"--tokens .*; wanted"):
        given(model, file)


def test_a_file_of_tokens_that_is_not_there_is_refused(model: Model, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"--tokens .*: no such file; wanted a JSON list of token"):
        given(model, tmp_path / "t.json")


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_file_of_tokens_is_refused(model: Model, tmp_path: Path, odd: str) -> None:
    (tmp_path / "private").write_text("[[1, 2], [3, 4]]")
    run = fake_run(tmp_path / "results", 1)
    ODD[odd](run.parent / "t.json")
    with pytest.raises(BadInput, match=r"--tokens .*; (wanted|save the file as UTF-8)"):
        given(model, run.parent / "t.json")


def test_text_needs_a_tokenizer_that_can_be_read(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "folder", tmp_path)
    (file := tmp_path / "t.txt").write_text("some text, said once")
    tokenizer = tmp_path / "tokenizer.json"
    with pytest.raises(
        BadInput, match=r"text, and tokenizer.json of .* cannot be read \(No such file"
    ):
        given(model, file)
    tokenizer.write_text("{}")
    with pytest.raises(BadInput, match=r"wanted one that the package tokenizers wrote, or a JSON"):
        given(model, file)
    words = {word: number for number, word in enumerate(["some", "text", ",", "said", "once"])}
    kind = {"type": "WordLevel", "vocab": words, "unk_token": "some"}
    whole = {"version": "1.0", "model": kind, "pre_tokenizer": {"type": "BertPreTokenizer"}}
    tokenizer.write_text(json.dumps(whole))
    assert given(model, file).looked_at.tokens.tolist() == [[0, 1, 2, 3, 4]]
