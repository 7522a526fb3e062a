"""From what a user names to a model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import kept, resolve
from attnbench.harness.models.resolve import model_of

TINY = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 128,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNBENCH_CACHE", str(tmp_path / "cache"))
    mine = tmp_path / "tiny"
    mine.mkdir()
    (mine / "config.json").write_text(json.dumps(TINY), encoding="utf-8")
    return mine


@pytest.mark.long
def test_a_folder_gives_its_name_its_layers_and_its_weights(folder: Path) -> None:
    torch = pytest.importorskip("safetensors.torch")
    import torch as t

    torch.save_file({"w": t.zeros(3, 3)}, folder / "model.safetensors")
    found = model_of(str(folder))
    assert (found.name, found.weight_bytes) == ("tiny", 36)
    assert [count for _, count in found.attention()] == [2]


def test_without_transformers_our_own_reader_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "find_spec", lambda _: None)
    assert model_of(str(folder)).read_by == "attnbench"


@pytest.mark.long
def test_with_transformers_its_answer_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    first = model_of(str(folder))
    assert first.read_by.startswith("transformers ")

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(resolve.subprocess, "run", refused)
    assert model_of(str(folder)) == first
    (folder / "config.json").write_text(json.dumps({**TINY, "hidden_size": 32}), encoding="utf-8")
    with pytest.raises(AssertionError, match="asked again"):
        model_of(str(folder))


@pytest.mark.long
def test_what_transformers_refuses_is_one_line_from_the_file(folder: Path) -> None:
    pytest.importorskip("transformers")
    (folder / "config.json").write_text('{"model_type": "unheard"}', encoding="utf-8")
    with pytest.raises(BadInput, match=r"config.json: model_type: 'unheard'; wanted one that"):
        model_of(str(folder))


def test_a_kept_answer_that_is_broken_is_asked_again(folder: Path) -> None:
    model = model_of("gemma-3-4b")
    kept.keep("0" * 64, model)
    assert kept.load("0" * 64) == model
    (path,) = (folder.parent / "cache" / "models").iterdir()
    for text in ("", "{}", "[1]", '{"layers": [{"type": "x", "count": 0}]}'):
        path.write_text(text, encoding="utf-8")
        assert kept.load("0" * 64) is None


@pytest.mark.long
def test_no_torch_is_imported_for_a_shipped_model() -> None:
    program = (
        "import sys; from attnbench.harness.models.resolve import model_of;"
        "model_of('llama-3-8b'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
