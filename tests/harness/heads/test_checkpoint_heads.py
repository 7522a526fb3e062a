"""checkpoint_heads: of tiny models, against transformers."""

import json
from pathlib import Path

import pytest
import torch

from attnbench.harness.heads import removal
from attnbench.harness.heads.checkpoint import Layer, Model
from attnbench.harness.heads.findings import CheckpointHeads
from attnbench.harness.heads.studies import checkpoint_heads
from attnbench.impls.problem import Problem
from tests.harness.heads.tiny_models import tiny

pytest.importorskip("transformers")
CPU = torch.device("cpu")
UNUSED = Problem(batch=1, seq_len=8, d_model=8, heads=1)
TOKENS = torch.arange(24).view(2, 12) % 50


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    for family in ("gpt2", "llama"):
        tiny(family).save_pretrained(root / family)
    return {family: root / family for family in ("gpt2", "llama")}


def finding_of(path: Path, tokens: Path | None = None, **limits: float) -> CheckpointHeads:
    given = {"checkpoint": "mine", "path": str(path), "tokens": tokens and str(tokens), **limits}
    (found,) = checkpoint_heads.run(UNUSED, CPU, 0, **given)
    return found


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_model_of_transformers_computes_and_attends_as_it_does_there(
    folders: dict[str, Path], family: str
) -> None:
    model = Model(folders[family], CPU)
    plain = type(tiny(family)).from_pretrained(folders[family], attn_implementation="eager")
    with torch.no_grad():
        wanted = plain(TOKENS, output_attentions=True)
    torch.testing.assert_close(model.logits(TOKENS), wanted.logits, atol=1e-5, rtol=1e-5)
    for seen, p in zip(model.seen(TOKENS), wanted.attentions, strict=True):
        torch.testing.assert_close(seen.weights, p, atol=1e-5, rtol=1e-5)
        assert (seen.kv_heads, seen.d_k, seen.d_v) == (2 if family == "llama" else 4, 8, 8)


def test_without_a_head_is_the_model_with_its_columns_of_the_output_projection_zero(
    folders: dict[str, Path],
) -> None:
    model = Model(folders["llama"], CPU)
    plain = tiny("llama")
    with torch.no_grad():
        plain.model.layers[1].self_attn.o_proj.weight[:, 16:24] = 0
        wanted = plain(TOKENS).logits
    found = model.logits(TOKENS, removal.gates_without(model, [(1, 2)], TOKENS))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    found = model.logits(TOKENS, removal.gates_without(model, [], TOKENS))
    torch.testing.assert_close(found, model.logits(TOKENS))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_finding_has_every_head(folders: dict[str, Path], family: str) -> None:
    found = finding_of(folders[family])
    assert (found.model_type, found.layer_heads) == (family, [4, 4])
    assert found.token_source == "24 random tokens, said twice"
    assert len(found.sequence_loss_nats) == 16
    single = found.single_sequence_loss_nats
    assert [[len(head) for head in layer] for layer in single] == [[16] * 4] * 2
    assert found.pruned_heads_left == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert found.pruned_sequence_loss_nats[0] == pytest.approx(found.sequence_loss_nats)
    shares = [found[f"{kind}_share"] for kind in ("itself", "near", "first", "far")]
    assert torch.tensor(shares).sum(0).flatten().tolist() == pytest.approx([1] * 8)


def test_the_users_tokens_are_scored_but_for_the_first(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    (file := tmp_path / "t.json").write_text(json.dumps(TOKENS.tolist()))
    found = finding_of(folders["gpt2"], file)
    logits = tiny("gpt2").eval()(TOKENS).logits[:, :-1]
    loss = torch.nn.functional.cross_entropy(logits.mT, TOKENS[:, 1:], reduction="none").mean(-1)
    assert found.sequence_loss_nats == pytest.approx(loss.tolist(), abs=1e-5)
    assert found.token_source == "2 sequences of 12 tokens from t.json"


def test_little_time_is_for_fewer_sequences(folders: dict[str, Path]) -> None:
    single = finding_of(folders["gpt2"], most_s=0.0).single_sequence_loss_nats
    assert len(single[0][0]) == checkpoint_heads.FEWEST_SEQUENCES


@pytest.mark.parametrize(
    ("gone", "rows", "pairs"),
    [([], 0, 0), ([0], 2 * 8, 0), ([0, 1], 3 * 2 * 8, 1), ([1, 2], 2 * 2 * 8, 0)],
)
def test_keys_and_values_are_saved_with_the_last_head_that_shares_them(
    gone: list[int], rows: int, pairs: int
) -> None:
    layers = [Layer(torch.zeros(1, 4, 2, 2), 2, 8, 8)] * 2
    gates = [torch.ones(4), torch.ones(4)]
    gates[1][gone] = 0
    assert checkpoint_heads.saved(layers, gates) == (rows, pairs / 4)
