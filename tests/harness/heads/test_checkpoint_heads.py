"""checkpoint_heads: of our own models and tiny ones of Hugging Face's."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from attnbench.harness.files.errors import BadInput
from attnbench.harness.heads import removal
from attnbench.harness.heads.checkpoints.sequences import sequences_for
from attnbench.harness.heads.removal import GatedDecoder, Head
from attnbench.harness.heads.studies import checkpoint_heads, trained_heads
from attnbench.harness.heads.synthetic_tasks import Batch
from attnbench.harness.heads.training import Goal
from attnbench.impls.problem import Problem
from tests.harness.heads.test_checkpoint_files import decoder
from tests.harness.verbs.test_odd_files import ODD
from tests.made_runs import fake_run

pytest.importorskip("safetensors.torch")
transformers = pytest.importorskip("transformers")
CPU = torch.device("cpu")
UNUSED = Problem(batch=1, seq_len=8, d_model=8, heads=1)
TOKENS = torch.arange(24).view(2, 12) % 50


def tiny(family: str, **changes: Any) -> Any:
    torch.manual_seed(0)
    more = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None, **changes}
    if family == "gpt2":
        sizes = {"vocab_size": 50, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **more))
    llama = {
        "vocab_size": 50,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
    }
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**llama, **more))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    for family in ("gpt2", "llama"):
        tiny(family).save_pretrained(root / family)
    return {family: root / family for family in ("gpt2", "llama")}


@pytest.fixture
def folder(folders: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the tiny Llama that a test may spoil."""
    shutil.copytree(folders["llama"], tmp_path / "model")
    return tmp_path / "model"


def finding_of(path: Path, tokens: Path | None = None) -> dict[str, Any]:
    (found,) = checkpoint_heads.run(
        UNUSED, CPU, 0, checkpoint="mine", path=str(path), tokens=tokens and str(tokens)
    )
    return found.stored()


def change_config(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


# ---- a factor for each head ----------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_model_of_transformers_computes_and_attends_as_it_does_there(
    folders: dict[str, Path], family: str
) -> None:
    model = checkpoint_heads.opened(folders[family], CPU)
    plain = type(tiny(family)).from_pretrained(folders[family], attn_implementation="eager")
    with torch.no_grad():
        wanted = plain(TOKENS, output_attentions=True)
    torch.testing.assert_close(model.logits(TOKENS), wanted.logits, atol=1e-5, rtol=1e-5)
    for seen, p in zip(model.looked_at(TOKENS), wanted.attentions, strict=True):
        torch.testing.assert_close(seen.weights.float(), p, atol=1e-5, rtol=1e-5)
        assert seen.outputs.shape == (2, 4, 12, 8)


def test_without_a_head_is_the_model_with_its_columns_of_the_output_projection_zero(
    folders: dict[str, Path],
) -> None:
    model = checkpoint_heads.opened(folders["llama"], CPU)
    plain = tiny("llama")
    with torch.no_grad():
        plain.model.layers[1].self_attn.o_proj.weight[:, 16:24] = 0
        wanted = plain(TOKENS).logits
    batch = Batch(TOKENS, TOKENS)
    found = removal.without(model, [Head(1, 2)], batch, lambda logits, _: logits)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    found = removal.without(model, [], batch, lambda logits, _: logits)
    torch.testing.assert_close(found, model.logits(TOKENS))


# ---- a finding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_finding_has_every_head(folders: dict[str, Path], family: str) -> None:
    found = finding_of(folders[family])
    assert found["layer_heads"] == [4, 4]
    assert found["model_type"] == family
    assert found["tokens"] == 48
    assert found["token_source"] == "24 random tokens, said twice"
    assert len(found["sequence_loss_nats"]) == 16
    single = found["single_sequence_loss_nats"]
    assert [[len(head) for head in layer] for layer in single] == [[16] * 4] * 2
    assert found["pruned_heads_left"] == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert found["pruned_sequence_loss_nats"][0] == pytest.approx(found["sequence_loss_nats"])
    assert len(found["weight_rows"]) == len(found["drawn_heads"]) == 8
    assert found["kv_heads"] == (2 if family == "llama" else 4)


def test_a_saved_decoder_is_looked_at_on_new_sequences_of_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(trained_heads.GOALS, "copy", Goal(right_ratio=1.0, limit_steps=20))
    monkeypatch.setattr(trained_heads, "LEARNING_RATES", (1e-3,))
    small = Problem(batch=1, seq_len=8, d_model=8, heads=1)
    *_, trained = trained_heads.run(small, CPU, 5, task="copy", heads=2, save_to=tmp_path)
    path = tmp_path / "copy-heads2-seed5.safetensors"
    found = finding_of(path)
    assert found["token_source"] == "new sequences of its task, copy"
    assert (found["trained_task"], found["trained_steps"]) == ("copy", "20")
    assert found["parameter_count"] == trained["parameter_count"]
    assert found["sentence"][0] in "abcdefgh"


# ---- tokens of the user's ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "no json", "[1]", "[50, 1]", "[[1, 2], [1]]", "[true, 1]", "[[[1, 2]]]", "[" * 9999],
)
def test_tokens_that_the_model_does_not_have_are_refused(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "t.json").write_text(text)
    model = GatedDecoder(decoder())
    with pytest.raises(BadInput, match=r"--tokens .*; wanted"):
        sequences_for(model.about, tmp_path, file, 0, CPU)


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_file_of_tokens_is_refused(tmp_path: Path, odd: str) -> None:
    (tmp_path / "private").write_text("[[1, 2], [3, 4]]")
    run = fake_run(tmp_path / "results", 1)
    ODD[odd](run.parent / "t.json")
    model = GatedDecoder(decoder())
    with pytest.raises(BadInput, match=r"--tokens .*; (wanted|save the file as UTF-8)"):
        sequences_for(model.about, tmp_path, run.parent / "t.json", 0, CPU)


# ---- bad folders ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, "quantized"),
        ({"model_type": "no_such_model"}, "wanted one that transformers"),
        ({"model_type": ["llama"]}, "wanted one that transformers"),
        ({"model_type": "bert"}, "wanted"),
        ({"hidden_size": 64}, "does not load it"),
        ({"num_hidden_layers": 3}, "weights are missing"),
        ({"num_hidden_layers": 10**9}, "1000000000; wanted at most 4096"),
        ({"num_attention_heads": "x"}, "does not load it"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_in_one_line(
    folder: Path, values: dict[str, Any], said: str
) -> None:
    change_config(folder, **values)
    (problem,) = checkpoint_heads.tried(CPU, None, path=str(folder), tokens=None).problems
    assert said in problem
    assert "\n" not in problem


def test_pickles_are_never_read(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02cos\nsystem\n.")
    (problem,) = checkpoint_heads.tried(CPU, None, path=str(folder), tokens=None).problems
    assert "0 safetensors files" in problem


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
    assert finding_of(folder)["layer_heads"] == [4, 4]
    assert not (tmp_path / "ran").exists()


def test_a_family_whose_heads_cannot_be_seen_is_refused(tmp_path: Path) -> None:
    config = transformers.BloomConfig(vocab_size=50, hidden_size=32, n_layer=1, n_head=4)
    transformers.BloomForCausalLM(config).save_pretrained(tmp_path)
    (problem,) = checkpoint_heads.tried(CPU, None, path=str(tmp_path), tokens=None).problems
    assert "wanted" in problem
    assert "\n" not in problem
