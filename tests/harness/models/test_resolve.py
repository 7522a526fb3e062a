"""From what a user names to a model."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import resolve
from attnbench.harness.models.layers import Model
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_attention_heads": "four"}, "num_attention_heads: 'four'; wanted a whole number"),
        ({"model_type": None}, "model_type: nothing; wanted the name of a type"),
        ({"hidden_size": None}, "transformers refuses it"),
    ],
)
def test_what_is_wrong_is_said_by_the_reader_that_names_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str
) -> None:
    def refused(*_: Any) -> Model:
        raise BadInput("config.json: transformers refuses it")

    monkeypatch.setattr(resolve, "_by_transformers", refused)
    monkeypatch.setattr(resolve, "find_spec", lambda name: name)
    (folder / "config.json").write_text(json.dumps(TINY | change), encoding="utf-8")
    with pytest.raises(BadInput, match=said):
        model_of(str(folder))
