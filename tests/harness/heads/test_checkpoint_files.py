"""harness/heads/checkpoints: our own format and Hugging Face's folders, good and bad ones."""

import os
import struct
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attnbench.harness.files.errors import BadInput
from attnbench.harness.heads.checkpoints import decoder_file
from attnbench.harness.heads.checkpoints.given import read_checkpoints
from attnbench.impls.modules.block import Decoder
from attnbench.impls.problem import Problem

safetensors = pytest.importorskip("safetensors.torch")
CPU = torch.device("cpu")
HEADS, LONGEST, VOCABULARY = 4, 12, 10


def decoder(seed: int = 0) -> Decoder:
    problem = Problem(batch=1, seq_len=LONGEST, d_model=16, heads=HEADS, causal=True, scope="layer")
    return Decoder(problem, VOCABULARY, 2, seed=seed, d_ff=24)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "mine.safetensors"
    decoder_file.save(decoder(), path, {"task": "copy", "train_seed": 3, "steps": 9})
    return path


# ---- our own format ------------------------------------------------------------------------------


def test_a_saved_decoder_computes_what_it_did(saved: Path) -> None:
    stored = decoder_file.read(saved, CPU)
    tokens = torch.arange(2 * LONGEST).view(2, LONGEST) % VOCABULARY
    assert torch.equal(stored.model(tokens)[0], decoder()(tokens)[0])
    assert stored.about == {"task": "copy", "train_seed": "3", "steps": "9"}
    assert stored.model.problem.heads == HEADS
    assert not any(one.requires_grad for one in stored.model.parameters())


NO_NUMBER = {"norm.weight": torch.full((16,), torch.nan)}


@pytest.mark.parametrize(
    ("tensors", "about", "said"),
    [
        ({}, {"format": None}, "not a decoder of attnbench"),
        ({}, {"heads": "3"}, "heads '3'"),
        ({}, {"heads": "0"}, "heads '0'"),
        ({}, {"heads": "9" * 5000}, "heads"),
        ({}, {"heads": None}, "heads ''"),
        ({"norm.weight": None}, {}, "norm.weight"),
        ({"position.weight": None}, {}, "position.weight"),
        ({"extra": torch.ones(1)}, {}, "extra"),
        ({"blocks.9999.x": torch.ones(1)}, {}, "blocks."),
        (NO_NUMBER, {}, "not a finite number"),
        ({"norm.weight": torch.ones(16).long()}, {}, "int64"),
        ({"embedding.weight": torch.ones(3)}, {}, "wanted"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(
    saved: Path, tensors: dict[str, Tensor | None], about: dict[str, str | None], said: str
) -> None:
    words = {"format": decoder_file.FORMAT, "heads": str(HEADS), **about}
    whole = {**safetensors.load_file(saved), **tensors}
    known, told = ({n: v for n, v in one.items() if v is not None} for one in (whole, words))
    safetensors.save_file(known, saved, metadata=told)
    with pytest.raises(BadInput) as refused:
        decoder_file.read(saved, CPU)
    (problem,) = refused.value.problems
    assert said in problem
    assert "wanted" in problem
    assert "\n" not in problem


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", struct.pack("<Q", 1 << 62), b"\x80\x02."])
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (path := tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(BadInput, match="wanted a whole safetensors file"):
        decoder_file.read(path, CPU)


def test_weights_beyond_the_memory_budget_are_refused(saved: Path) -> None:
    with pytest.raises(BadInput, match=r"--memory-gib"):
        decoder_file.read(saved, CPU, most_bytes=1000)


# ---- what the command line names -----------------------------------------------------------------


def test_two_of_one_name_are_refused(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (other := tmp_path / "sub" / "mine.safetensors").write_bytes(saved.read_bytes())
    with pytest.raises(BadInput, match="wanted different names"):
        read_checkpoints([str(saved), str(other)])
    assert len(read_checkpoints([str(saved), f"b={other}"])) == 2


@pytest.mark.parametrize("make", ["missing", "folder", "text", "pipe"])
def test_what_is_no_model_is_refused_before_anything_starts(tmp_path: Path, make: str) -> None:
    path = tmp_path / "model.safetensors"
    if make == "folder":
        path.mkdir()
    elif make == "text":
        (path := tmp_path / "model.bin").write_text("x")
    elif make == "pipe":
        os.mkfifo(path)
    with pytest.raises(BadInput, match=r"--checkpoint .*; wanted a .safetensors file"):
        read_checkpoints([str(path)])


def test_tokens_need_a_checkpoint_and_a_file(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--tokens belongs to --checkpoint"):
        read_checkpoints([], "x.json")
    with pytest.raises(BadInput, match="no such file"):
        read_checkpoints([str(saved)], str(tmp_path / "x.json"))
