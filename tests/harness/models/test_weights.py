"""Bytes of weights from the headers of safetensors files."""

import json
import struct
from pathlib import Path

import pytest
import torch

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models.config_file import weight_bytes

safetensors = pytest.importorskip("safetensors.torch")


def save(path: Path, **shapes: tuple[int, ...]) -> None:
    tensors = {name: torch.zeros(shape, dtype=torch.bfloat16) for name, shape in shapes.items()}
    safetensors.save_file(tensors, path, metadata={"format": "pt"})


def test_all_tensors_of_all_files_count(tmp_path: Path) -> None:
    assert weight_bytes(tmp_path) is None
    save(tmp_path / "model-1.safetensors", a=(3, 5), b=(7,))
    save(tmp_path / "model-2.safetensors", c=(2, 2))
    assert weight_bytes(tmp_path) == 2 * (15 + 7 + 4)


def test_an_index_says_which_files_belong_to_the_model(tmp_path: Path) -> None:
    save(tmp_path / "model-1.safetensors", a=(3, 5))
    save(tmp_path / "other.safetensors", c=(100, 2))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}), encoding="utf-8")
    assert weight_bytes(tmp_path) == 30
    more = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    index.write_text(json.dumps(more), encoding="utf-8")
    with pytest.raises(BadInput, match=r"model-2.safetensors is not there"):
        weight_bytes(tmp_path)


def headed(header: str) -> bytes:
    """With four bytes of tensors."""
    return struct.pack("<Q", len(header)) + header.encode() + b"1234"


def entry(*offsets: object) -> str:
    places = ", ".join(map(str, offsets))
    return f'{{"dtype": "U8", "shape": [4], "data_offsets": [{places}]}}'


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\xff" * 8, struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 50) + b"{}"),
        *(headed("[" * 100_000 + "]" * 100_000), headed('{"a": {}}'), headed('{"a": [0, 4]}')),
        *(headed(f'{{"a": {entry(*two)}}}') for two in ((-4, 4), (0, 4.0), (0, "Infinity"), (4,))),
        *(headed(f'{{"a": {entry(*two)}}}') for two in ((0, True), (0, "9" * 5000), (0, 1 << 63))),
        headed(f'{{"a": {entry(4, 0)}, "b": {entry(0, 4)}}}'),
        headed(f'{{"a": {entry(0, 4)}, "b": {entry(0, 4)}}}'),
        headed(f'{{"a": {entry(1, 4)}}}'),
        headed(" " * (8 << 20) + f'{{"a": {entry(0, 4)}}}'),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(BadInput, match="not a whole safetensors file"):
        weight_bytes(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(headed(f'{{"a": {entry(0, 4)}}}'))
    assert weight_bytes(tmp_path) == 4


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save(path, a=(64, 64))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadInput, match="not a whole safetensors file"):
        weight_bytes(tmp_path)
