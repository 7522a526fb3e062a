"""Files of a checkpoint get to a device elsewhere whole, or not at all."""

import json
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.fleet import parts as module
from attnbench.harness.fleet.parts import Part, Shipped, ShippedFolder, parts_of, shipped
from attnbench.harness.learning.checkpoints.given import Checkpoint

ODD = b"\x00\xff" * 50


@pytest.fixture
def there(tmp_path: Path) -> ShippedFolder:
    (tmp_path / "there").mkdir()
    return ShippedFolder(tmp_path / "there")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As of Hugging Face's, with more than is read of it."""
    (path := tmp_path / "my model").mkdir()
    empty = (2).to_bytes(8, "little") + b"{}"
    for name in ("model.safetensors", "other.safetensors"):
        (path / name).write_bytes(empty)
    (path / "config.json").write_text("{}")
    (path / "tokenizer.json").write_bytes(ODD)
    (path / "modeling_mine.py").write_text("raise SystemExit")
    (path / "pytorch_model.bin").write_bytes(b"x")
    return path


def sent(one: Shipped, there: ShippedFolder) -> list[str]:
    return [there.keep(part) for file in one.files for part in parts_of(file)]


def test_of_a_folder_only_what_is_read_is_sent(folder: Path, there: ShippedFolder) -> None:
    (tokens := folder.parent / "some tokens.txt").write_text("")  # an empty file is a file too
    one = shipped(Checkpoint(name="mine", path=folder, tokens=tokens))
    assert set(sent(one, there)) == {""}
    found = {str(file.relative_to(there.path)) for file in there.path.rglob("*") if file.is_file()}
    assert found == {
        *("mine/config.json", "mine/model.safetensors", "mine/tokenizer.json"),
        "mine/tokens/some tokens.txt",
    }
    assert (there.path / "mine" / "tokenizer.json").read_bytes() == ODD
    assert there.here(one.request) == {
        "path": str(there.path / "mine"),
        "tokens": str(there.path / "mine" / "tokens" / "some tokens.txt"),
    }


def test_a_file_in_many_parts_arrives_whole_and_a_second_time(
    tmp_path: Path, there: ShippedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 7)
    (path := tmp_path / "x.safetensors").write_bytes(ODD)
    one = shipped(Checkpoint(name="mine", path=path))
    for _ in range(2):  # a device that was lost in the middle gets it again
        (file,) = one.files
        parts = list(parts_of(file))
        assert len(parts) == 15
        assert there.keep(parts[0]) == ""
        assert set(sent(one, there)) == {""}
    assert (there.path / one.request["path"]).read_bytes() == ODD
    assert one.request["path"] == "mine/x.safetensors"


@pytest.mark.parametrize("name", ["/etc/passwd", "mine/../../x", "x", "a/b/c/d", ""])
def test_nothing_is_kept_outside_of_a_checkpoints_folder(there: ShippedFolder, name: str) -> None:
    assert "not a name of a file" in there.keep(Part(name, 0, b"", 0, ""))
    assert list(there.path.iterdir()) == []


def test_what_cannot_be_sent_is_refused_before_anything_starts(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "absent.safetensors"}}))
    with pytest.raises(BadInput, match=r"absent\.safetensors is not there"):
        shipped(Checkpoint(name="mine", path=folder))
    index.unlink()
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").mkdir()
    with pytest.raises(BadInput, match=r"cannot be read \(not a plain file\); wanted a file"):
        shipped(Checkpoint(name="mine", path=folder))
